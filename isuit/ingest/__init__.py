"""Reading cohorts: Parquet, CSV, Arrow files and Arrow tables, validated, sorted and hashed.

Invariants, which docs/canonical-form.md explains: the hash depends on the values alone, not on how they are stored;
what cannot be read is refused with column, count and rows; no refusal holds a value; distinct riders and sites are
held in memory, outcomes need not be.
"""

from isuit.ingest.cohort import Cohort, Report
from isuit.ingest.databases import Query
from isuit.ingest.dialects import parse_csv
from isuit.ingest.layout import parse_mapping
from isuit.ingest.reading import read_cohort
from isuit.ingest.refusals import Refusal, RefusedCohort
from isuit.ingest.writing import refuse_to_overwrite, write_canonical

__all__ = [
    "Cohort",
    "Query",
    "Refusal",
    "RefusedCohort",
    "Report",
    "parse_csv",
    "parse_mapping",
    "read_cohort",
    "refuse_to_overwrite",
    "write_canonical",
]
