"""Two scales of one truth: the link between them is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isuit.estimator.linking import FEWEST_COMMON, FittedCurve, Link, Skill, link

from .cohorts import parabola

# On the second scale, where riders are stronger and more alike, the same skill is a smaller number.
SCALE, OFFSET = 0.8, 1.5
METRIC = np.linspace(3, 35, 33)
FIRST = FittedCurve(2.0, METRIC, parabola(METRIC), np.full(METRIC.size, 0.1))
SECOND = FittedCurve(2.0 * SCALE, METRIC, (parabola(METRIC) - OFFSET) / SCALE, np.full(METRIC.size, 0.1))
SKILLS = np.random.default_rng(1).standard_normal(40)
SHARED = (SKILLS, (SKILLS - OFFSET) / SCALE)


def found(first: FittedCurve, second: FittedCurve, common: tuple[np.ndarray, np.ndarray] = SHARED) -> Link:
    result = link(first, second, common)
    assert isinstance(result, Link), result
    return result


def test_the_link_leads_from_the_second_scale_to_the_first() -> None:
    step = found(FIRST, SECOND)
    assert (step.scale, step.offset) == pytest.approx((SCALE, OFFSET))
    assert step.carried(Skill(-1.0, 0.3)).mean == pytest.approx(SCALE * -1.0 + OFFSET)
    back = found(SECOND, FIRST, SHARED[::-1])
    there_and_back = back.after(step)
    assert (there_and_back.scale, there_and_back.offset) == pytest.approx((1.0, 0.0))


def test_the_more_certain_of_the_two_links_weighs_more() -> None:
    noisy = (SKILLS + np.random.default_rng(2).normal(0.3, 1.0, SKILLS.size), SHARED[1])
    by_curve = found(replace(FIRST, se=FIRST.se / 10), replace(SECOND, se=SECOND.se / 10), noisy)
    by_riders = found(replace(FIRST, se=FIRST.se * 10), replace(SECOND, se=SECOND.se * 10), noisy)
    gaps = noisy[0] - SCALE * noisy[1]
    assert by_curve.offset == pytest.approx(OFFSET, abs=0.02)
    assert by_riders.offset == pytest.approx(gaps.mean(), abs=0.02)
    assert by_curve.se < 0.1 * np.hypot(0.1, SCALE * 0.1) + 1e-9  # two links tell more than one
    assert by_riders.se == pytest.approx(gaps.std(ddof=1) / np.sqrt(gaps.size), rel=0.05)


def test_fits_that_cannot_be_compared() -> None:
    few = tuple(skills[: FEWEST_COMMON - 1] for skills in SHARED)
    elsewhere = replace(SECOND, metric=METRIC + 40)
    nothing = replace(SECOND, metric=METRIC[:0], difficulty=METRIC[:0], se=METRIC[:0])
    reasons = [
        link(FIRST, SECOND, (few[0], few[1])),
        link(FIRST, elsewhere, SHARED),
        link(FIRST, nothing, SHARED),
        link(FIRST, SECOND, (SKILLS + 1.0, SHARED[1])),
    ]
    assert [str(reason).split(": ")[1] for reason in reasons] == [
        "they share 4 other riders, too few to link them",
        "they share too little of the metric's range",
        "they share too little of the metric's range",
        "the riders they share and the difficulty curve disagree",
    ]


def test_a_change_counts_when_chance_does_not_explain_it() -> None:
    step = Link(SCALE, OFFSET, 0.1)
    before, after = Skill(0.5, 0.3), Skill(-1.0, 0.25)
    spread = np.sqrt(0.3**2 + (SCALE * 0.25) ** 2 + 0.1**2)
    change = step.change(before, after)
    assert change.by == pytest.approx(SCALE * -1.0 + OFFSET - 0.5)
    assert change.allowed == pytest.approx(1.96 * spread, rel=1e-4)
    assert not change.is_drift
    for direction in (-1, 1):
        moved = replace(after, mean=(0.5 + direction * 2.0 * spread - OFFSET) / SCALE)
        assert step.change(before, moved).is_drift


def test_uncertainty_grows_along_a_chain() -> None:
    chain = Link(0.5, 1.0, 0.3).after(Link(2.0, 0.5, 0.8))
    assert (chain.scale, chain.offset) == (1.0, 1.25)
    assert chain.se == pytest.approx(0.5)
    assert Link.to_itself().carried(Skill(0.7, 0.2)) == Skill(0.7, 0.2)
