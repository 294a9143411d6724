"""Where a store stands: its cells by the size at which attackers were measured, or what is proved for a private one."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from release_lab import FIRST, Lab, draw

from isuit.release.policy import Policy, policy_of
from isuit.release.standing import (
    USEFUL_PRIVATE,
    USEFUL_WITH_NOISE,
    USEFUL_WITHOUT_NOISE,
    WITH_NOISE,
    WITHOUT_NOISE,
    standing,
)

TOPIC = {"activity": "kite", "dimension": "wind", "lower": 0, "width": 4, "bins": 9}


def test_every_cell_is_in_the_row_of_the_largest_size_that_it_reaches() -> None:
    sizes = sorted(WITH_NOISE)
    found = standing([10, sizes[0], sizes[1], sizes[1] + 1, 5_000], Policy())
    assert [row.riders for row in found] == sizes
    assert [row.cells for row in found] == [2, 2, *[0] * (len(sizes) - 3), 1]
    assert found[0].known_ordinary == WITH_NOISE[sizes[0]].ordinary
    assert {row.rmse for row in found} == {USEFUL_WITH_NOISE.rmse}


def test_a_store_without_noise_is_told_so() -> None:
    found = standing([30], Policy(noise=0.0))
    assert [row.known_expert for row in found] == [row.expert for row in WITHOUT_NOISE.values()]
    assert all(
        plain.expert > noisy.expert for plain, noisy in zip(WITHOUT_NOISE.values(), WITH_NOISE.values(), strict=True)
    )
    assert "yours is other" in standing([30], Policy(noise=0.3))[0].source


def test_a_private_release_has_the_bound_that_is_proved() -> None:
    """Epsilon 2 in one release: a cost of 0.0882, whose root is 0.297 sds; the best AUC is 0.617."""
    private = {"epsilon": 2.0, "delta": 1e-6, "releases": 4, "topics": [TOPIC]}
    one, all_of_them = standing([], policy_of({"private": private}))
    assert all_of_them.known_expert == pytest.approx(0.62)
    assert one.known_expert == pytest.approx(0.56)  # a quarter of the cost, half of the distance
    assert one.riders is one.cells is None
    assert "for this release together" in one.source
    assert "for all 4 releases together" in all_of_them.source
    assert one.rmse is all_of_them.rmse is None  # a quarter costs less than any that readers' errors were measured for
    private["releases"] = 1
    whole, _ = standing([], policy_of({"private": private}))
    assert whole.rmse == USEFUL_PRIVATE[0.0881].rmse
    assert whole.coverage == USEFUL_PRIVATE[0.0881].coverage


def test_what_is_measured_can_be_so() -> None:
    """A coin has 0.5 and certainty 1; experts are known better than others, and riders of larger cells worse."""
    for table in (WITH_NOISE, WITHOUT_NOISE):
        assert sorted(table) == [16, 24, 40]
        for found in table.values():
            assert all(0.5 <= auc <= 1.0 for auc in found)
            assert found.ordinary <= found.expert
        known = [table[riders].ordinary for riders in sorted(table)]
        chance = 0.05  # of 40 to 100 cells of each size
        assert all(larger <= smaller + chance for smaller, larger in pairwise(known))
    for useful in (USEFUL_WITH_NOISE, USEFUL_WITHOUT_NOISE, *USEFUL_PRIVATE.values()):
        low, high = useful.coverage
        assert 0.8 < low <= high <= 1.0
        assert 0.5 < useful.released <= 1.0
        assert 0.0 < useful.rmse < 0.5


def test_the_page_on_disclosure_has_the_same_figures() -> None:
    """Rows of its table: noise, riders, and what each attacker achieves."""
    page = (Path(__file__).parents[2] / "docs" / "disclosure.md").read_text()
    lines = page.partition("| noise | riders |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    told = {(noise, int(riders)): tuple(map(float, found)) for noise, riders, *found in rows}
    assert len(told) >= 4
    for noise, table in ((f"{Policy().noise:g}", WITH_NOISE), ("none", WITHOUT_NOISE)):
        shared = [riders for riders in table if (noise, riders) in told]
        assert shared
        assert all(tuple(table[riders]) == told[noise, riders] for riders in shared)


def test_export_atlas_tells_it_with_explain_alone(lab: Lab) -> None:
    store = lab.store(draw(24, seed=1))
    told = lab.export(store, FIRST, "--explain", "--json")
    rows = json.loads(told.out)["standing"]
    assert sum(row["cells"] for row in rows) == 1
    assert "what attackers achieve" in told.err
    assert json.loads(lab.export(store, FIRST, "--json").out)["standing"] is None
