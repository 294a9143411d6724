"""The private mode of releases: differentially private by person over the series' life (docs/private-releases.md)."""
