"""docs/canonical-form.md in Python's standard library, written from that page and sharing nothing with isuit.

An outcome here is a list: rider, site or null, observed_at (ISO 8601 text with an offset) or null, the metric as
decimal text or several as a mapping from their names, outcome.
"""

import hashlib
import struct
from datetime import UTC, datetime


def line(outcome: list) -> bytes:
    rider, site, observed_at, metric, result = outcome
    if observed_at is not None:
        instant = datetime.fromisoformat(observed_at).astimezone(UTC)
        observed_at = instant.strftime("-%m-%dT%H:%M:%S.%fZ")
        observed_at = f"{instant.year:04d}{observed_at}"  # %Y does not pad years before 1000 everywhere
    texts = [metric[name] for name in names(metric)] if isinstance(metric, dict) else [metric]
    bits = [struct.pack(">d", float(text) + 0.0).hex() for text in texts]
    fields = [str(rider), "" if site is None else str(site), observed_at or "", *bits, "1" if result else "0"]
    return "\t".join(fields).encode() + b"\n"


def names(metric: dict) -> list:
    return sorted(metric, key=str.encode)


def form(outcomes: list) -> tuple:
    metric = outcomes[0][3]
    several = isinstance(metric, dict) and len(metric) > 1
    return ("isuit-c2", names(metric)) if several else ("isuit-c1", ["metric"])


def canonical(outcomes: list) -> bytes:
    version, metrics = form(outcomes)
    columns = "\t".join(["rider", "site", "observed_at", *metrics, "outcome"])
    header = f"{version}\n{columns}\n{len(outcomes)}\n"
    return header.encode() + b"".join(sorted(line(outcome) for outcome in outcomes))


def cohort_hash(outcomes: list) -> str:
    return form(outcomes)[0] + ":" + hashlib.sha256(canonical(outcomes)).hexdigest()
