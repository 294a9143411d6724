"""`isuit rederive RELEASE`: make a release again from the store, as it was then, and compare the rows.

Inside the store only: a release is made from personal outcomes, which no auditor outside has. Fits that were recorded
later are left out; riders who were erased since are gone, and with them the rows can differ. What a row goes through
after the fit has rules with a number (`noise.RULES`), and only those of today can be followed again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from isuit.audit.rederivation import Verdict
from isuit.errors import NotFound
from isuit.published import ReleaseRederivation, ReleaseRow
from isuit.release import dates
from isuit.release.making import make_release
from isuit.release.noise import RULES
from isuit.service.private_releases import private_release_again
from isuit.service.releases import series_before, source_of
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.releases import release_bins, release_lines, release_members, release_records

NUMBERS = ("difficulty", "difficulty_se", "expert_difficulty")


def rederive_release(store_path: Path, reference: str, wait: float = DEFAULT_WAIT) -> ReleaseRederivation:
    """Compare a recorded release with what the store gives today."""
    day = dates.read_date(reference)
    with open_store(store_path, wait=wait) as store:
        releases = release_records(store.connection)
        record = next((found for found in releases if found.release_date == day), None)
        if record is None:
            raise NotFound("the store has no release of that date; `isuit status` says how many it has.")
        lines = release_lines(store.connection, record.release_id)
        members = release_members(store.connection, record.release_id)
        erased = any(
            len(members.get((entry.curve, entry.bin), ())) < entry.riders
            for entry in release_bins(store.connection, record.release_id)
        )
        earlier = [found for found in releases if found.release_date < day]
        series = series_before(record, earlier)
        if series.policy.private is None:
            draft = make_release(source_of(store, record.made_at), day, series)
        else:
            draft = private_release_again(store.connection, day, series)
        again = draft.rows
    recorded = [ReleaseRow.model_validate_json(line) for line in lines]
    differences = _differences(recorded, again)
    # A value that lies on the border between two steps can fall to either side on another processor.
    step = series.policy.rounding + 1e-9
    earlier_rules = series.policy.private is None and json.loads(record.policy).get("rules", 1) != RULES
    verdict: Verdict | Literal["earlier-rules"]
    if [row.line() for row in again] == lines:
        verdict = "identical"
    elif erased:
        verdict = "erased"
    elif earlier_rules:
        verdict = "earlier-rules"
    elif differences is not None and all(change <= step for change in differences):
        verdict = "equivalent"
    else:
        verdict = "diverged"
    notes = ["riders behind this release were erased since"] if erased else []
    if earlier_rules and verdict != "identical":
        version = json.loads(record.metadata)["tool_version"]
        notes.append(
            f"its noise and rounding follow rules of isuit {version}, which only that version can follow again"
        )
    if series.policy.private is not None:
        notes.append("from the sums on record: their noise was drawn once, and cannot be derived from outcomes")
    return ReleaseRederivation(
        release=record.release_id,
        verdict=verdict,
        largest_difference=None if differences is None else max(differences, default=0.0),
        rows=len(lines),
        rows_again=len(again),
        notes=notes,
    )


def _differences(before: list[ReleaseRow], after: list[ReleaseRow]) -> list[float] | None:
    """Each numeric difference; None where rows or words differ."""
    if [row.key for row in before] != [row.key for row in after]:
        return None
    found = []
    for left, right in zip(before, after, strict=True):
        if left.model_dump(exclude=set(NUMBERS)) != right.model_dump(exclude=set(NUMBERS)):
            return None
        for name in NUMBERS:
            one, two = getattr(left, name), getattr(right, name)
            if (one is None) != (two is None):
                return None
            if one is not None:
                found.append(abs(one - two))
    return found
