"""The digest over a release's rows, and what is declared of a dimension's metric.

A row is one line of JSON with its keys in the order of `isuit.published.ReleaseRow`; the digest of a release is the
SHA-256 of these lines, each ending in LF, so that `head -n -1 atlas.jsonl | sha256sum` computes it. Other formats carry
the same rows: read back into the model they give the same lines and the same digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import rfc8785

from isuit.release.names import FLOATS, INTEGERS


def lines_digest(lines: Iterable[str]) -> str:
    state = hashlib.sha256()
    for line in lines:
        state.update(line.encode() + b"\n")
    return state.hexdigest()


def line_of(row: Mapping[str, Any], fields: Iterable[str]) -> str:
    """A row that was read as a line of a release, without its LF: its `fields` in their order, measures as floats."""
    written = {name: float(row[name]) if name in FLOATS and row[name] is not None else row[name] for name in fields} | {
        name: int(row[name]) for name in INTEGERS if row[name] is not None
    }
    return json.dumps(written, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def metadata_digest(metadata: Mapping[str, Any]) -> str:
    """What the log's event of a release holds of its metadata: SHA-256 of their canonical JSON without the proof."""
    return hashlib.sha256(rfc8785.dumps({name: metadata[name] for name in metadata if name != "proof"})).hexdigest()


def with_proof(metadata: str, proof: Mapping[str, Any] | None) -> str:
    """The metadata as a file carries them: what is recorded, and the proof that it is."""
    if proof is None:
        return metadata
    about = json.loads(metadata) | {"proof": proof}
    return json.dumps(about, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class Declared(NamedTuple):
    """What the operator says of a dimension. Its name says nothing for certain: `temp` may be of air or water."""

    units: str | None = None  # in UDUNITS, such as knot or m s-1
    standard_name: str | None = None  # of the CF conventions, such as wind_speed
