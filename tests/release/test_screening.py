"""The parts of a release that are easier to see from inside: cells, bins, weights, folding, rounding, influence."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import h3
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isuit.domain import FitConfig
from isuit.estimator.likelihood.leaving_out import FEW_RIDERS, OwnParameters
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.release import bins, cells, screening
from isuit.release.cell_curves import CellCurves, comparable, fit_cells
from isuit.release.eligibility import Outcomes
from isuit.release.identities import is_placeholder
from isuit.release.influence import Scale, largest_influence
from isuit.release.policy import Policy, band
from isuit.release.rounding import is_saturated, to_step, to_two_digits
from isuit.spelling import fold


def placed(seed: int = 1, places: int = 1, per_place: int = 20, each: int = 18) -> screening.Placed:
    """Outcomes from the model, with every third rider at two places."""
    random = np.random.default_rng(seed)
    riders = places * per_place
    skill = random.standard_normal(riders)
    rider = np.repeat(np.arange(riders), each)
    away = (rider % 3 == 0) & (random.random(rider.size) < 0.5)
    cell = (rider // per_place + away) % places
    metric = random.uniform(0, 36, rider.size)
    level = 0.8 * np.cos(cell)
    chance = 1 / (1 + np.exp(-2 * (skill[rider] - ((metric - 18) / 8) ** 2 + 1 - level)))
    names = tuple(f"{number:04d}" for number in range(riders))
    outcomes = Outcomes(
        names,
        tuple((name,) for name in names),
        rider,
        cell,
        tuple(f"site-{place}" for place in range(places)),
        metric,
        (random.random(rider.size) < chance).astype(np.int64),
        np.ones(rider.size, np.int64),
    )
    chosen = bins.Bins(0, 9, 4.0)
    return screening.Placed(
        outcomes, tuple(f"cell-{place}" for place in range(places)), cell, chosen.of(metric), chosen
    )


def test_a_cell_is_indexed_directly_and_not_by_way_of_a_parent() -> None:
    random = np.random.default_rng(1)
    for latitude, longitude in zip(random.uniform(40, 50, 5000), random.uniform(0, 20, 5000), strict=True):
        direct = h3.latlng_to_cell(latitude, longitude, 7)
        if h3.cell_to_parent(h3.latlng_to_cell(latitude, longitude, 10), 7) != direct:
            break
    else:
        pytest.fail("no place was found where the two differ")
    assert cells.cell_of("s", {"s": (latitude, longitude)}, 7) == direct


def test_a_cohort_without_sites_is_one_cell_and_a_site_without_coordinates_none() -> None:
    assert cells.cell_of(None, {}, 7) == "global"
    assert cells.cell_of("somewhere", {"elsewhere": (45.0, 7.0)}, 7) is None


@pytest.mark.parametrize(("latitude", "longitude"), [(0.0, 180.0), (-17.0, 179.999), (65.0, -179.99), (52.0, -180.0)])
def test_a_cell_on_the_antimeridian_is_cut_in_two(latitude: float, longitude: float) -> None:
    index = h3.latlng_to_cell(latitude, longitude, 3)
    outline = cells.shape(index)
    assert outline is not None
    assert len(outline.rings) == 2
    assert outline.geojson()["type"] == "MultiPolygon"
    for ring in outline.rings:
        longitudes = [x for x, _ in ring]
        assert max(longitudes) - min(longitudes) < 5
        assert 180.0 in {abs(x) for x in longitudes}
        assert ring[0] == ring[-1]
    # Both halves together have the area of the whole.
    whole = [(x % 360, y) for y, x in h3.cell_to_boundary(index)]
    assert sum(map(area, outline.rings)) == pytest.approx(area([*whole, whole[0]]), rel=1e-4)


def area(ring: Any) -> float:
    return 0.5 * sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in pairwise(ring))


@pytest.mark.parametrize("pole", [90.0, -90.0])
def test_a_cell_around_a_pole_spans_all_longitudes(pole: float) -> None:
    outline = cells.shape(h3.latlng_to_cell(pole, 0.0, 3))
    assert outline is not None
    west, south, east, north = outline.bounds()
    assert (west, east) == (-180.0, 180.0)
    assert pole in (south, north)
    assert area(outline.rings[0]) > 0


@settings(max_examples=200, deadline=None)
@given(low=st.floats(-1e4, 1e4), span=st.floats(1e-3, 1e4))
@example(low=-5e-324, span=12.0)
@example(low=5.0, span=119.0)  # a width of 10 needs thirteen bins
def test_bins_are_round_and_cover_what_k_riders_reach(low: float, span: float) -> None:
    rider = np.repeat(np.arange(12), 2)
    metric = np.tile([low, low + span], 12)
    found = bins.choose(rider, metric, 10)
    assert found is not None
    assert 1 <= found.number <= bins.MOST
    assert found.number >= 5 or span < 1e-9 * max(abs(low), 1)
    assert float(f"{found.width:e}".split("e")[0]) in (1.0, 2.0, 2.5, 4.0, 5.0)
    inside = found.of(metric)
    assert (inside >= 0).all()
    for index in range(found.number):
        assert found.edge(index) < found.centre(index) < found.edge(index + 1)
        assert found.of(np.array([found.centre(index)])) == [index]


def test_a_bin_has_its_lower_edge_and_the_last_one_its_upper_too() -> None:
    found = bins.Bins(2, 3, 0.5).of(np.array([0.99, 1.0, 1.49, 1.5, 2.0, 2.5, 2.51]))
    assert found.tolist() == [bins.OUTSIDE, 0, 0, 1, 2, 2, bins.OUTSIDE]


def test_bins_of_a_constant_metric() -> None:
    found = bins.choose(np.arange(12), np.full(12, 5.0), 10)
    assert found is not None
    assert (found.of(np.full(3, 5.0)) >= 0).all()
    assert bins.choose(np.arange(9), np.full(9, 5.0), 10) is None


@pytest.mark.parametrize(
    "spellings",
    [("Anna", "ANNA", "anna"), ("Straße", "STRASSE"), ("ａｎｎａ", "anna"), ("zoe\u0308", "ZOË"), ("a\u200bb", "ab")],
)
def test_spellings_of_one_rider(spellings: tuple[str, ...]) -> None:
    assert len({fold(spelling) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    "nobody", ["unknown", "NULL", "-", "n/a", "N.A.", "(none)", "Deleted_User", "???", "NaN", "-1"]
)
def test_placeholders(nobody: str) -> None:
    assert is_placeholder(fold(nobody))


@pytest.mark.parametrize("somebody", ["0", "12", "anna", "null-island-club-7", "u1", "ада"])
def test_not_placeholders(somebody: str) -> None:
    assert not is_placeholder(fold(somebody))


def test_bands_and_rounding() -> None:
    assert [band(riders) for riders in (9, 10, 19, 20, 49, 50, 99, 100)] == [
        "below 10", "10-19", "10-19", "20-49", "20-49", "50-99", "50-99", "100+"]  # fmt: skip
    assert [to_step(value, 0.25) for value in (0.12, 0.13, -0.1, -0.13, 1.99)] == [0.0, 0.25, 0.0, -0.25, 2.0]
    assert str(to_step(-0.01, 0.25)) == "0.0"
    assert [repr(to_step(value, 0.1)) for value in (0.3000001, 0.7, 1.15, 2.349)] == ["0.3", "0.7", "1.1", "2.3"]
    assert [to_two_digits(value) for value in (0.234, 0.0349, 1.66)] == [0.23, 0.035, 1.7]
    assert [Policy().step(riders) for riders in (49, 50)] == [0.25, 0.1]
    assert [is_saturated(chance) for chance in (0.019, 0.02, 0.5, 0.98, 0.981)] == [True, False, False, False, True]


def test_weights_are_capped_and_exact_in_any_order() -> None:
    whole = placed()
    weight = screening.weights(whole, Policy(weight_cap=2.0))
    key = whole.pair * len(whole.outcomes.riders) + whole.outcomes.rider
    total = np.bincount(key, weights=weight)
    assert total.max() <= 2.0 + 1e-5
    spline = spline_for(whole.outcomes.metric)
    order = np.random.default_rng(0).permutation(key.size)
    outcomes, riders = whole.outcomes, len(whole.outcomes.riders)
    one = count(outcomes.rider, outcomes.metric, outcomes.outcome, spline, riders, weight=weight)
    two = count(outcomes.rider[order], outcomes.metric[order], outcomes.outcome[order], spline, riders,
                weight=weight[order])  # fmt: skip
    assert (one.trials != two.trials).nnz == 0
    assert (one.successes != two.successes).nnz == 0
    plain = count(outcomes.rider, outcomes.metric, outcomes.outcome, spline, riders)
    units = count(outcomes.rider, outcomes.metric, outcomes.outcome, spline, riders, weight=np.ones(key.size))
    assert (plain.trials != units.trials).nnz == 0


@pytest.mark.parametrize(
    ("heaviest", "second", "dominated"),
    [(25.0, 15.0, False), (25.5, 1.0, True), (20.5, 20.0, True), (20.0, 20.0, False), (1.0, 1.0, False)],
)
def test_one_rider_may_weigh_a_quarter_and_two_two_fifths(heaviest: float, second: float, dominated: bool) -> None:
    found = screening.is_dominated(np.array([heaviest]), np.array([second]), np.array([100.0]), Policy())
    assert found.tolist() == [dominated]


@pytest.mark.parametrize(("shares", "left"), [([10, 8, *[5] * 6], True), ([11, 11, *[4] * 7], False)])
def test_a_cell_that_two_riders_dominate_is_refused(shares: list[int], left: bool) -> None:
    """Of 48 and of 50 outcomes the heaviest has less than a quarter; the two heaviest have 37 and 44 %."""
    rider = np.repeat(np.arange(len(shares)), shares)
    names = tuple(f"{number:02d}" for number in range(len(shares)))
    ones = np.ones(rider.size, np.int64)
    metric = np.arange(rider.size) / rider.size
    outcomes = Outcomes(names, tuple((name,) for name in names), rider, 0 * rider, ("site",), metric, ones, ones)
    one_bin = bins.Bins(0, 1, 1.0)
    cell = screening.Placed(outcomes, ("cell",), 0 * rider, one_bin.of(metric), one_bin)
    reasons = screening.Reasons()
    found = screening.refuse_dominated(cell, Policy(weight_cap=100.0), reasons)
    assert (found is not None) is left
    assert bool(reasons.cells) is not left


def crowd(riders: int) -> Outcomes:
    """So many riders, each with two lines at one site."""
    names = tuple(f"{number:02d}" for number in range(riders))
    rider = np.repeat(np.arange(riders), 2)
    ones = np.ones(rider.size, np.int64)
    metric = np.tile([1.2, 2.3], riders)
    return Outcomes(names, tuple((name,) for name in names), rider, 0 * rider, ("spot",), metric, ones, ones)


def test_riders_are_counted_once_in_each_group() -> None:
    group = np.array([0, 0, 2, 2, 2, screening.NO_CELL])
    assert screening.distinct_riders(group, crowd(3), 4).tolist() == [1, 0, 2, 0]


@pytest.mark.parametrize(("riders", "left"), [(10, True), (9, False)])
def test_k_riders_are_enough_and_one_less_is_not(riders: int, left: bool) -> None:
    series = bins.Bins(0, 4, 1.0)
    reasons = screening.Reasons()
    found = screening.place(crowd(riders), {"spot": (45.0, 7.0)}, Policy(), series, reasons)
    assert (found is not None) is left
    assert bool(reasons.cells) is not left
    whole = screening.place(crowd(riders), {"spot": (45.0, 7.0)}, Policy(k=2), series, screening.Reasons())
    assert whole is not None
    reasons = screening.Reasons()
    assert (screening.withhold_thin(whole, Policy(), reasons) is not None) is left
    assert [list(found) for found in reasons.cells.values()] == (
        [] if left else [["fewer than 10 riders whose outcomes are old enough in every bin of the metric"]]
    )


def test_a_thin_bin_is_withheld_and_the_rest_of_its_cell_stays() -> None:
    whole = placed()
    thin = (whole.bin != 4) | (whole.outcomes.rider < 9)
    left = screening.withhold_thin(whole.of_rows(thin), Policy(), screening.Reasons())
    assert left is not None
    assert set(left.bin.tolist()) == set(range(9)) - {4}


def test_without_what_is_refused_the_rest_is_left() -> None:
    whole = placed(places=2)
    refused = np.zeros((2, 9), bool)
    refused[1, 3] = True
    left = screening.without(whole, refused)
    assert left is not None
    assert set(left.pair.tolist()) == set(whole.pair.tolist()) - {9 + 3}
    assert screening.without(whole, np.ones((2, 9), bool)) is None


def test_a_site_without_coordinates_is_a_note_and_in_no_cell() -> None:
    reasons = screening.Reasons()
    assert screening.place(crowd(12), {}, Policy(), bins.Bins(0, 4, 1.0), reasons) is None
    assert reasons.notes == ["1 sites have no coordinates: give them with `isuit fit --sites`"]


def test_a_link_by_one_rider_is_none() -> None:
    two = placed(places=2)
    assert comparable(two).all()
    visits = {(rider, cell) for rider, cell in zip(two.outcomes.rider.tolist(), two.cell.tolist(), strict=True)}
    travellers = [rider for rider in range(40) if {(rider, 0), (rider, 1)} <= visits]
    home = two.outcomes.rider // 20 == two.cell
    alone = home | (two.outcomes.rider == travellers[0])
    assert not comparable(two.of_rows(alone)).all()
    pair = alone | (two.outcomes.rider == travellers[1])
    assert comparable(two.of_rows(pair)).all()


def curves_and_released(whole: screening.Placed) -> tuple[CellCurves, Any]:
    curves = fit_cells(whole, Policy(), FitConfig())
    released = np.zeros((len(whole.cells), whole.bins.number), dtype=bool)
    released[whole.cell, whole.bin] = True
    return curves, released


@pytest.mark.parametrize("places", [1, 2])
def test_influence_is_that_of_fits_without_each_rider(places: int) -> None:
    """Against the real thing: every rider left out of the data in turn, and everything fitted again."""
    whole = placed(seed=3, places=places, per_place=14 if places == 1 else 11)
    curves, released = curves_and_released(whole)
    claimed = largest_influence(curves, released, Policy())
    moved = np.zeros_like(claimed)
    inside = np.array([[not is_saturated(chance) for chance in curves.suitability(cell)] for cell in range(places)])
    for rider in range(len(whole.outcomes.riders)):
        again = fit_cells(whole.of_rows(whole.outcomes.rider != rider), Policy(), FitConfig())
        for cell in range(places):
            change = np.abs(again.difficulty(cell).value - curves.difficulty(cell).value)
            moved[cell] = np.maximum(moved[cell], change)
    # Smoothing is held here and chosen anew there; points near the ends of the scale are top-coded here.
    central = inside & (np.abs(np.array([curves.difficulty(cell).value for cell in range(places)])) < 1.5)
    assert central.sum() > 4
    assert np.abs(claimed - moved)[central].max() < 0.15
    assert np.corrcoef(claimed[central], moved[central])[0, 1] > 0.8


def odd_one_out(whole: screening.Placed, cell: int) -> screening.Placed:
    """The heaviest rider of a cell succeeds where others fail, and fails where they succeed."""
    outcomes = whole.outcomes
    odd = np.bincount(outcomes.rider[whole.cell == cell]).argmax()
    turned = np.where(outcomes.rider == odd, (np.abs(outcomes.metric - 18) > 8).astype(np.int64), outcomes.outcome)
    return replace(whole, outcomes=replace(outcomes, outcome=turned))


@pytest.mark.parametrize("seed", [4, 5])
def test_whoever_moves_a_point_too_far_is_found(seed: int) -> None:
    """Against every rider of every cell solved to the end at all of their cells, with limits that some riders pass."""
    whole = odd_one_out(placed(seed=seed, places=8, per_place=13, each=14), cell=3)
    assert len(whole.outcomes.riders) >= FEW_RIDERS
    curves, released = curves_and_released(whole)
    leaving, scale, centres = curves.fit.leaving_out(), Scale.of(curves.fit), whole.bins.centres
    truly = np.zeros(released.shape)
    for rider in range(len(whole.outcomes.riders)):
        without = leaving.without(rider)
        assert without is not None
        for cell in leaving.sites_of(rider).tolist():
            points = [scale.top_coded(solved.difficulty(centres, cell)) for solved in (without, leaving.nobody)]
            truly[cell] = np.maximum(truly[cell], np.abs(points[0] - points[1]))
    truly = np.where(released, truly, 0.0)
    for limit in np.quantile(truly[released], [0.3, 0.6, 0.9]).tolist():
        claimed = largest_influence(curves, released, Policy(influence=limit))
        # Cells that the rider hardly moves are held: a thousandth is far below any rounding.
        missed = (truly > limit + 0.002) & ~(claimed > limit)
        accused = (truly < limit - 0.002) & (claimed > limit)
        assert (truly > limit).sum() >= 5
        assert not missed.any()
        assert not accused.any()


def test_few_riders_are_solved_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those whose step is long, and only at the cells where it is: not the world once for every rider."""
    curves, released = curves_and_released(odd_one_out(placed(seed=4, places=8, per_place=13, each=14), cell=3))
    solved: list[list[int]] = []
    to_the_end = OwnParameters.without

    def counted(self: OwnParameters, rider: int, sites: Any = None) -> Any:
        solved.append(sites.tolist())
        return to_the_end(self, rider, sites)

    monkeypatch.setattr(OwnParameters, "without", counted)
    limit = 0.3
    assert limit / 2 < largest_influence(curves, released, Policy(influence=limit)).max() < limit
    assert 0 < len(solved) < 10
    assert all(len(cells) <= 2 for cells in solved)


def test_influence_with_many_cells_is_that_of_the_cells_solved_again() -> None:
    whole = placed(seed=4, places=6, per_place=18)
    assert len(whole.outcomes.riders) >= FEW_RIDERS
    curves, released = curves_and_released(whole)
    claimed = largest_influence(curves, released, Policy())
    assert 0.05 < claimed.max() < 0.5
    # In truth the shared part moves too, but little among so many.
    heaviest = np.bincount(whole.outcomes.rider, minlength=108).argmax()
    again = fit_cells(whole.of_rows(whole.outcomes.rider != heaviest), Policy(), FitConfig())
    cell = int(whole.cell[whole.outcomes.rider == heaviest][0])
    change = np.abs(again.difficulty(cell).value - curves.difficulty(cell).value)[2:7]
    assert (change <= claimed[cell, 2:7] + 0.15).all()
