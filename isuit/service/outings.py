"""Where the data of a fit are: outcomes along the metric by site, and which skills were out in which condition.

Counts of what the store holds now, so without whoever was erased since. Of riders only three words leave: nobody, fewer
than ten, ten and more.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np

from isuit.pages.packing import packed
from isuit.store.query import rows

BINS = 24  # of equal width between the ends of the curves
SKILL_FROM, SKILL_STEP, SKILLS = -3.0, 0.5, 13  # estimated skills, to the nearest half
FEW = 10  # riders


def outings(
    connection: duckdb.DuckDBPyConnection,
    cohort_hash: str,
    fit_id: str,
    sites: list[str | None],
    ends: tuple[float, float],
) -> dict[str, Any] | None:
    """Packed for the page: counts by place and bin, in the order of `sites` (None: all); None for a single metric."""
    lower, upper = ends
    if upper <= lower:
        return None
    place = f"least({BINS - 1}, greatest(0, floor((metric - ?) / (? - ?) * {BINS})))::INTEGER"
    at = [lower, upper, lower]
    counts = np.zeros((len(sites), BINS), np.int64)
    number = {site: row for row, site in enumerate(sites)}
    everywhere = number.get(None)
    for site, bin_, outcomes in rows(
        connection,
        f"SELECT site, {place} AS bin, count(*) FROM all_outcomes WHERE cohort_hash = ? GROUP BY ALL",
        [*at, cohort_hash],
    ):
        if everywhere is not None:
            counts[everywhere, bin_] += outcomes
        if site is not None and site in number:
            counts[number[site], bin_] += outcomes
    riders = np.zeros((SKILLS, BINS), np.int64)
    level = f"least({SKILLS - 1}, greatest(0, round((skill_mean - ({SKILL_FROM})) / {SKILL_STEP})))::INTEGER"
    found = rows(
        connection,
        f"SELECT {level} AS level, {place} AS bin, count(DISTINCT o.rider) FROM all_outcomes o "
        "JOIN all_skills s ON s.rider = o.rider AND s.fit_id = ? WHERE cohort_hash = ? GROUP BY ALL",
        [*at, fit_id, cohort_hash],
    )
    for skill, bin_, number_of in found:
        riders[skill, bin_] = 1 if number_of < FEW else 2
    return {
        "lower": lower,
        "upper": upper,
        "bins": BINS,
        "counts": packed(counts.ravel(), "u2" if counts.max(initial=0) < 2**16 else "u4"),
        "skill_from": SKILL_FROM,
        "skill_step": SKILL_STEP,
        "skills": SKILLS,
        "riders": packed(riders.ravel() if found else np.zeros(0, np.uint8), "u1"),
    }
