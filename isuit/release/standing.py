"""Where a store stands: what attackers achieve against cells as large as its own, beside what readers get.

For the operator's eyes. The figures are measured, on simulated cohorts, by `benchmarks/disclosure.py`; the table is in
docs/disclosure.md. Of a private release a bound is proved, and computed here from its cost.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from statistics import NormalDist
from typing import NamedTuple

from isuit.published.releases import Standing
from isuit.release.policy import Policy
from isuit.release.private.accounting import UNIT
from isuit.release.private.releasing import Costs


class Measured(NamedTuple):
    """What attackers achieve; a coin has 0.5 (`Standing` says who they are)."""

    ordinary: float
    expert: float
    one_outcome: float
    departure: float


class Useful(NamedTuple):
    """What readers get (`Standing` says what each is), on 5,000 riders at 153 places."""

    rmse: float
    coverage: tuple[float, float]
    released: float


# By riders of a cell: with the default noise, and without any.
WITH_NOISE = {
    16: Measured(0.78, 0.96, 0.56, 0.63),
    24: Measured(0.61, 0.88, 0.56, 0.58),
    40: Measured(0.64, 0.83, 0.53, 0.59),
}
WITHOUT_NOISE = {
    16: Measured(0.97, 1.00, 0.80, 0.71),
    24: Measured(0.87, 1.00, 0.72, 0.63),
    40: Measured(0.79, 0.99, 0.63, 0.69),
}
USEFUL_WITH_NOISE = Useful(0.200, (0.949, 0.959), 1.0)
USEFUL_WITHOUT_NOISE = Useful(0.157, (0.937, 0.955), 1.0)
# Of private releases, by what one costs (rho): that of epsilon 2 with a delta of 1e-6, all for one release.
USEFUL_PRIVATE = {0.0881: Useful(0.187, (0.937, 0.953), 0.61)}
SOURCE = (
    "attackers of benchmarks/disclosure.py, 40 to 400 simulated cells of each size; readers where cells differ in level"
)


def standing(riders: Iterable[int], policy: Policy) -> list[Standing]:
    """The rows of the table that a release's cells fall into, by the number of riders of each."""
    if policy.private is not None:
        return [_proved(policy, part) for part in ("release", "budget")]
    table = WITH_NOISE if policy.noise > 0 else WITHOUT_NOISE
    useful = USEFUL_WITH_NOISE if policy.noise > 0 else USEFUL_WITHOUT_NOISE
    sizes = sorted(table)
    cells = dict.fromkeys(sizes, 0)
    for number in riders:
        cells[sizes[max(bisect_right(sizes, number) - 1, 0)]] += 1
    other = "" if policy.noise in (0.0, Policy().noise) else f"; measured with noise {Policy().noise:g}, yours is other"
    return [
        Standing(
            mode="threshold",
            riders=size,
            cells=cells[size],
            known_ordinary=table[size].ordinary,
            known_expert=table[size].expert,
            one_outcome=table[size].one_outcome,
            departure=table[size].departure,
            rmse=useful.rmse,
            coverage=useful.coverage,
            released=useful.released,
            source=SOURCE + other,
        )
        for size in sizes
    ]


def _proved(policy: Policy, part: str) -> Standing:
    """No attacker does better: Gaussian noise of cost rho has an AUC of at most the normal's at the root of rho."""
    assert policy.private is not None
    costs = Costs.of(policy.private)
    units = costs.release if part == "release" else costs.budget
    bound = round(NormalDist().cdf(math.sqrt(units / UNIT)), 2)
    # The nearest that was measured and costs no more; a release that costs less than any is worse than these tell.
    measured = [cost for cost in USEFUL_PRIVATE if cost <= units / UNIT * 1.01]
    useful = USEFUL_PRIVATE[max(measured)] if measured and part == "release" else None
    said = "this release" if part == "release" else f"all {policy.private.releases} releases"
    return Standing(
        mode="private",
        riders=None,
        cells=None,
        known_ordinary=bound,
        known_expert=bound,
        one_outcome=bound,
        departure=bound,
        rmse=useful.rmse if useful else None,
        coverage=useful.coverage if useful else None,
        released=useful.released if useful else None,
        source=f"proved bound for {said} together, any size of cell (docs/private-releases.md)",
    )
