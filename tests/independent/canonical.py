"""docs/canonical-form.md in Python's standard library, written from that page and sharing nothing with isuit.

An outcome here is a list: rider, site or null, observed_at (ISO 8601 text with an offset) or null, the metric as
decimal text, outcome.
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
    bits = struct.pack(">d", float(metric) + 0.0).hex()
    fields = [str(rider), "" if site is None else str(site), observed_at or "", bits, "1" if result else "0"]
    return "\t".join(fields).encode() + b"\n"


def canonical(outcomes: list) -> bytes:
    header = f"isuit-c1\nrider\tsite\tobserved_at\tmetric\toutcome\n{len(outcomes)}\n"
    return header.encode() + b"".join(sorted(line(outcome) for outcome in outcomes))


def cohort_hash(outcomes: list) -> str:
    return "isuit-c1:" + hashlib.sha256(canonical(outcomes)).hexdigest()
