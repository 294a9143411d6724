"""The log, its commitments, verification and re-derivation."""
