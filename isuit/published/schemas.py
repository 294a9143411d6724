"""The published schemas by file name, and which of them each command's `--json` follows."""

from __future__ import annotations

import json

from isuit.published import audit, cohorts, comparing, experiment, fits, persons, proofs, releases, stores
from isuit.published.base import Published

SCHEMAS: dict[str, type[Published]] = {
    "fit": fits.FitSummary,
    "fit-record": fits.FitRecord,
    "fits": fits.FitList,
    "show": fits.FitDetail,
    "report": fits.PageWritten,
    "score": fits.ScoreReport,
    "score-conditions": fits.ScoredConditions,
    "atlas": fits.Atlas,
    "trajectory": fits.Trajectory,
    "rank": comparing.Ranking,
    "compare": comparing.Comparison,
    "alias": comparing.Aliases,
    "hash": cohorts.CohortRead,
    "canonicalise": cohorts.Canonicalised,
    "refused-cohort": cohorts.CohortRefused,
    "add": cohorts.Added,
    "series": cohorts.SeriesList,
    "pseudonymise": cohorts.Pseudonymised,
    "verify": audit.VerifyReport,
    "head": audit.HeadReport,
    "rotate-key": audit.KeyRotated,
    "proof": proofs.Proof,
    "prove": audit.Proved,
    "check-proof": audit.ProofCheck,
    "witness": audit.Witnessed,
    "rederive": audit.RederiveReport,
    "bundle": audit.BundleReport,
    "bundle-manifest": audit.BundleManifest,
    "erasure-plan": persons.ErasurePlan,
    "erasure-receipt": persons.ErasureReceipt,
    "erasure-receipt-copy": persons.RequesterCopy,
    "show-rider": persons.RiderReport,
    "reinstate": persons.Reinstated,
    "release-row": releases.ReleaseRow,
    "release-metadata": releases.ReleaseMetadata,
    "export-atlas": releases.ExportReport,
    "check-release": releases.ReleaseCheck,
    "rederive-release": releases.ReleaseRederivation,
    "init": stores.Created,
    "status": stores.Status,
    "latent-demo": experiment.ExperimentStats,
}

# What a command prints with --json; the name of the schema is the command's own where nothing else is said.
PRINTED: dict[str, tuple[str, ...]] = {
    "score": ("score", "score-conditions"),
    "hash": ("hash", "refused-cohort"),
    "canonicalise": ("canonicalise", "refused-cohort"),
    "add": ("add", "refused-cohort"),
    "rederive": ("rederive", "rederive-release"),
    "delete-rider": ("erasure-receipt", "erasure-plan"),
    "receipt": ("erasure-receipt-copy",),
}


def printed_by(command: str) -> tuple[str, ...]:
    """The names of the schemas that this command's JSON may follow."""
    return PRINTED.get(command, (command,))


def schema_text(name: str) -> str:
    """A schema as published: JSON Schema 2020-12, as a reader of the JSON meets it."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"isuit/{name}"}
    described = SCHEMAS[name].model_json_schema(mode="serialization")
    return json.dumps(schema | described, indent=2, ensure_ascii=False) + "\n"
