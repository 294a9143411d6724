"""Releases of several metrics: the forms, the attacks that products of bins bring, and every file that holds them.

As in `test_release_attacks.py`, each attack is shown to succeed on an exporter without the rule that answers it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from release_lab import FIRST, OLD, SECOND, Answer, Lab, Mutant
from scipy.special import expit

from isuit.release import making, noise
from isuit.release.bins import Bins
from isuit.release.eligibility import Outcomes, Topic
from isuit.release.forms import forms_of, in_forms, without_support
from isuit.release.grid import Grid, choose_grid, metric_along
from isuit.release.policy import Policy
from isuit.release.screening import Placed, Reasons, members, weights, withhold_thin

BOTH = ("wave_m", "wind_kn")
GRID = Grid(BOTH, (Bins(0, 2, 2.0), Bins(0, 3, 10.0)))


@dataclass(frozen=True)
class Outing:
    rider: str
    wave: float
    wind: float
    outcome: int
    observed_at: datetime = OLD


def outings(riders: int = 60, each: int = 18, seed: int = 1, tag: str = "rider") -> list[Outing]:
    """One place; waves to 4 m and winds to 36 kn, spread evenly and apart from one another."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(riders):
        skill = random.standard_normal()
        wave, wind = 4 * random.permuted((np.arange(each) + 0.5) / each), 36 * (np.arange(each) + 0.5) / each
        hard = ((wind - 18) / 8) ** 2 - 1 + 0.6 * (wave - 2)
        good = random.random(each) < expit(2 * (skill - hard))
        times = [OLD + timedelta(hours=int(hour), minutes=number) for hour in random.integers(0, 2000, each)]
        for row in zip(wave.tolist(), wind.tolist(), good.astype(int).tolist(), times, strict=True):
            found.append(Outing(f"{tag}-{number:03d}", *row))
    return found


def fit(lab: Lab, store: Path, rows: list[Outing], *metrics: str) -> None:
    file = lab.path("cohort.parquet")
    columns = {
        "rider": [row.rider for row in rows],
        "outcome": [row.outcome for row in rows],
        "wave_m": [row.wave for row in rows],
        "wind_kn": [row.wind for row in rows],
        "observed_at": pa.array([row.observed_at for row in rows], pa.timestamp("us", tz="UTC")),
    }
    pq.write_table(pa.table(columns), file)
    asked = [part for metric in metrics or BOTH for part in ("--metric", metric)]
    answer = lab.isuit("fit", "--cohort", file, *asked, "--activity", "kite", "--store", store, "--json")
    assert answer.code == 0, answer.err


def store_of(lab: Lab, rows: list[Outing], *metrics: str, size: float = 0.0) -> Path:
    """A store with one fit; without noise, unless told: a difference is then what the rule under test lets through."""
    name = repr((rows, metrics, size))
    if name not in lab._known:
        lab._known[name], file = lab.path("store"), lab.path("policy.json")
        file.write_text(json.dumps({"noise": size}))
        assert lab.isuit("init", "--store", lab._known[name], "--policy", file).code == 0
        fit(lab, lab._known[name], rows, *metrics)
    return lab.copy(lab._known[name])


def released(lab: Lab, rows: list[Outing]) -> Answer:
    return lab.export(store_of(lab, rows))


# --- numbers and forms ------------------------------------------------------------------------------------------------


def test_places_are_numbered_and_named() -> None:
    assert (GRID.products, GRID.number, GRID.told(0), GRID.told(6)) == (6, 11, 6, 5)
    at = [GRID.place(number) for number in range(GRID.number)]
    assert [each.dimension for each in at[:3]] == [f"wave_m at wind_kn={wind}" for wind in (5, 15, 25)]
    assert [each.metric for each in at[:4]] == [1.0, 1.0, 1.0, 3.0]
    assert [each.dimension for each in at[6:]] == ["wave_m at wind_kn=15"] * 2 + ["wind_kn at wave_m=3"] * 3
    assert GRID.centres[[1, 7, 8]].tolist() == [[1, 15], [3, 15], [3, 5]]
    assert GRID.places_of("wave_m at wind_kn=15", 3.0) == [4, 7]
    assert Grid.from_json(GRID.as_json()["metrics"]) == GRID
    assert [metric_along(name) for name in ("wind_kn at wave_m=3", "wind at 10 m", "wind_kn")] == [
        "wind_kn",
        "wind at 10 m",
        "wind_kn",
    ]


def test_every_condition_is_in_the_product_and_the_bins_that_hold_it() -> None:
    metric = np.random.default_rng(1).uniform([0, 0], [4, 30], (200, 2))
    metric = np.vstack([metric, [[4.0, 30.0], [4.1, 3.0], [2.0, 10.0]]])
    product = GRID.product_of(metric)
    by_hand = [int(wave >= 2) * 3 + min(int(wind // 10), 2) if wave <= 4 else -1 for wave, wind in metric.tolist()]
    assert product.tolist() == by_hand
    inside = product >= 0
    mains = GRID.mains_of(product[inside])
    assert mains.tolist() == [[6 + one // 3, 8 + one % 3] for one in product[inside].tolist()]


def test_bins_are_few_and_round() -> None:
    random = np.random.default_rng(1)
    rider = np.repeat(np.arange(40), 20)
    for metrics, most in ((2, 4), (3, 3), (5, 2)):
        metric = random.uniform(0, 30, (rider.size, metrics))
        grid = choose_grid(tuple("abcde"[:metrics]), rider, metric, 10)
        assert grid is not None
        assert all(2 <= bins.number <= most for bins in grid.bins)
        assert np.mean(grid.product_of(metric) >= 0) > 0.95
    assert choose_grid(BOTH, rider[:100], metric[:100, :2], 10) is None
    for width in (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0):  # four bins of each are the narrowest
        ends = np.tile([[0.0, 0.0], [3.9 * width, 39 * width]], (12, 1))
        grid = choose_grid(BOTH, np.repeat(np.arange(12), 2), ends, 10)
        assert grid == Grid(BOTH, (Bins(0, 4, width), Bins(0, 4, 10 * width)))


def lines(riders: int, metric: np.ndarray, cell: np.ndarray | None = None) -> Placed:
    """The same conditions for every rider."""
    names = tuple(f"{code:03d}" for code in range(riders))
    rider = np.repeat(np.arange(riders), len(metric))
    every = np.tile(metric, (riders, 1))
    zeros = np.zeros(rider.size, np.int64)
    outcomes = Outcomes(names, tuple((name,) for name in names), rider, zeros, (None,), every, rider % 2, zeros + 1)
    return Placed(outcomes, ("global",), zeros, GRID.product_of(every), GRID)


EVERYWHERE = GRID.centres[: GRID.products]


def test_cells_are_products_where_they_are_thick() -> None:
    def form(placed: Placed, **before: str) -> set[bool]:
        found = in_forms(placed, GRID, before, Policy())  # type: ignore[arg-type]
        assert found.bin.size == placed.bin.size * (1 if found.bin[0] < GRID.products else 2)
        return set((found.bin < GRID.products).tolist())

    assert form(lines(30, EVERYWHERE)) == {True}
    assert form(lines(29, EVERYWHERE)) == {False}  # five riders for each of six products
    assert form(lines(30, EVERYWHERE), **{"global": "main effects"}) == {False}
    assert form(lines(29, EVERYWHERE), **{"global": "products"}) == {True}
    for few, products in ((1, True), (2, False)):  # so many of six products with nine riders of thirty
        placed = lines(30, EVERYWHERE)
        assert form(placed.of_rows((placed.bin >= few) | (placed.outcomes.rider < 9))) == {products}
    placed = lines(36, EVERYWHERE)  # 144 of 160 lines, which is nine in ten
    assert form(placed.of_rows((placed.bin >= 2) | (placed.outcomes.rider < 8))) == {True}
    assert form(placed.of_rows((placed.bin >= 2) | (placed.outcomes.rider < 10))) == {True}  # ten are k
    assert forms_of(GRID, [("a", 5), ("b", 6)]) == {"a": "products", "b": "main effects"}


def test_a_line_of_main_effects_stays_or_leaves_as_a_whole() -> None:
    placed = lines(40, EVERYWHERE)
    placed = placed.of_rows((placed.bin % 3 != 2) | (placed.outcomes.rider < 9))  # nine riders in the strongest wind
    formed = in_forms(placed, GRID, {"global": "main effects"}, Policy())
    assert formed.line is not None
    assert formed.lines.outcomes.rider.size == placed.outcomes.rider.size == formed.line.size // 2
    left = withhold_thin(formed, Policy(), Reasons())
    assert left is not None
    assert {place for _, place in members(left)} == {6, 7, 8, 9}
    assert set(left.outcomes.metric[:, 1].tolist()) == {5.0, 15.0}
    assert left.line is not None
    assert set(np.unique(left.line, return_counts=True)[1].tolist()) == {2}


def test_lines_that_leave_thin_another_bin() -> None:
    """Ten riders in the highest waves, one of them only in a wind that is withheld: nine are left, and leave too."""
    placed = lines(40, np.array([[1.0, 5.0], [1.0, 15.0], [3.0, 5.0]]))
    rider, bin_ = placed.outcomes.rider, placed.bin
    placed = placed.of_rows(((bin_ == 3) & (rider < 9)) | (bin_ < 3))
    odd = lines(40, np.array([[3.0, 25.0]]))
    odd = odd.of_rows(odd.outcomes.rider == 9)
    both = replace(
        placed,
        outcomes=replace(
            placed.outcomes,
            rider=np.append(placed.outcomes.rider, 9),
            place=np.append(placed.outcomes.place, 0),
            metric=np.vstack([placed.outcomes.metric, odd.outcomes.metric]),
            outcome=np.append(placed.outcomes.outcome, 1),
            times=np.append(placed.outcomes.times, 1),
        ),
        cell=np.append(placed.cell, 0),
        bin=np.append(placed.bin, odd.bin),
    )
    left = withhold_thin(in_forms(both, GRID, {"global": "main effects"}, Policy()), Policy(), Reasons())
    assert left is not None
    assert {place for _, place in members(left)} == {6, 8, 9}


def test_a_rider_weighs_at_most_the_cap_in_every_bin() -> None:
    metric = np.vstack([np.repeat(EVERYWHERE, 7, axis=0) + np.linspace(0, 0.5, 42)[:, None]])
    formed = in_forms(lines(12, metric), GRID, {"global": "main effects"}, Policy())
    weight = weights(formed, Policy())
    for place in range(6, 11):
        rows = (formed.bin == place) & (formed.outcomes.rider == 3)
        assert weight[rows].sum() <= Policy().weight_cap + 1e-5
    assert formed.line is not None
    assert np.ptp(weight.reshape(-1, 2), axis=1).max() == 0.0  # the rows of a line follow each other


def test_no_value_where_the_others_were_never_near_what_they_are_held_at() -> None:
    """Waves come with wind: nobody was out in the strongest wind with less than high waves, or the other way round."""
    metrics = tuple("abc")
    grid = Grid(metrics, (Bins(0, 3, 1.0), Bins(0, 3, 1.0), Bins(0, 3, 1.0)))
    assert [grid.is_near(27, grid.product_of(at)).tolist() for at in (np.array([[0.5, 1.5, 0.5]]),)] == [[True]]
    five = Grid(BOTH, (Bins(0, 5, 1.0), Bins(0, 5, 1.0)))
    along = np.column_stack([np.arange(5) + 0.5, np.arange(5) + 0.5])
    names = tuple(f"{code:03d}" for code in range(20))
    rider, every = np.repeat(np.arange(20), 5), np.tile(along, (20, 1))
    zeros = np.zeros(100, np.int64)
    outcomes = Outcomes(names, tuple((n,) for n in names), rider, zeros, (None,), every, rider % 2, zeros + 1)
    placed = Placed(outcomes, ("global",), zeros, five.product_of(every), five)
    formed = in_forms(placed, five, {"global": "main effects"}, Policy())
    assert without_support(formed, five, Policy()) == {("global", place) for place in (25, 29, 30, 34)}
    assert not without_support(formed, five, Policy(k=2)) - {("global", place) for place in (25, 29, 30, 34)}
    cells = replace(placed, cells=("a", "b"), cell=rider // 10)  # k riders in each
    formed = in_forms(cells, five, {"a": "main effects", "b": "main effects"}, Policy())
    assert without_support(formed, five, Policy()) == {(cell, place) for cell in "ab" for place in (25, 29, 30, 34)}


@pytest.mark.parametrize(("released", "places"), [(0, set(range(6))), (6, set(range(6, 11)))])
def test_rows_are_held_against_the_outcomes_of_their_form_even_of_one_rider(released: int, places: set[int]) -> None:
    """What changed since is counted in the form in which the cell was released, however few are left."""
    topic = Topic("kite", "both", BOTH)
    series = making.Series(Policy(), {topic: GRID}, {}, ())
    source, before = SimpleNamespace(sites={}), {("global", released): None}
    for riders in (1, 0):
        everything = SimpleNamespace(outcomes=lines(riders, EVERYWHERE).outcomes)
        found = making._riders_and_outcomes(everything, source, series, topic, before)  # type: ignore[arg-type]
        assert found.keys() == {("global", place, "000") for place in places if riders}


# --- noise ------------------------------------------------------------------------------------------------------------


class TestNoiseOfPlaces:
    def drawn(self, secret: bytes = b"a", told: int = 16, riders: int = 24, went_in: int = 1) -> noise.Noise:
        return noise.of_places(secret, ["kite", "both", "cell"], [(0, went_in)], 24, told, riders, Policy())

    def test_it_grows_with_the_root_of_what_is_told_and_falls_with_riders(self) -> None:
        assert np.allclose(self.drawn().sd, Policy().noise * noise.PLACES * 4)
        assert np.allclose(self.drawn(told=4).difficulty * 2, self.drawn().difficulty)
        assert np.allclose(self.drawn(riders=96).difficulty * 4, self.drawn().difficulty)

    def test_it_is_the_stores_and_of_what_went_in(self) -> None:
        same = self.drawn().difficulty
        assert np.array_equal(same, self.drawn().difficulty)
        for other in (self.drawn(b"b"), self.drawn(went_in=2)):
            assert np.abs(other.difficulty - same).min() > 1e-6

    def test_each_place_has_its_own(self) -> None:
        found = np.array([self.drawn(bytes([number])).difficulty for number in range(200)]) / self.drawn().sd
        assert np.abs(np.corrcoef(found.T) - np.eye(24)).max() < 0.3
        assert abs(found.std() - 1) < 0.05

    def test_a_policy_without_noise_has_none(self) -> None:
        none = noise.of_places(b"a", ["x"], [(0, 1)], 24, 16, 24, Policy(noise=0.0))
        assert not none.difficulty.any()
        assert not none.riders.any()
        assert np.all(none.error == 1.0)


class TestSomeoneWhoKnowsAllOthers:
    """With every other row: is this rider there? Values of a surface tell no more of them than those of a curve."""

    def area(self) -> float:
        """Under the curve, over ten cells of forty riders released as main effects: 0.63 for a curve at that size."""
        from isuit.domain import FitConfig
        from isuit.release.cell_curves import fit_cells

        grid, apart = Grid(BOTH, (Bins(0, 4, 1.0), Bins(0, 4, 9.0))), []
        places = slice(grid.products, None)
        for seed in range(10):
            rows = outings(40, seed=seed)
            metric = np.array([[row.wave, row.wind] for row in rows])
            names, zeros = tuple(f"{n:03d}" for n in range(40)), np.zeros(len(rows), np.int64)
            rider, outcome = np.repeat(np.arange(40), 18), np.array([row.outcome for row in rows])
            outcomes = Outcomes(names, tuple((n,) for n in names), rider, zeros, (None,), metric, outcome, zeros + 1)
            placed = Placed(outcomes, ("global",), zeros, grid.product_of(metric), grid)
            formed = in_forms(placed, grid, {"global": "main effects"}, Policy())
            found = [
                fit_cells(each, Policy(), FitConfig()).difficulty(0).value[places]
                for each in (formed, formed.of_rows(formed.outcomes.rider != 7))
            ]
            size = noise.of_places(b"", [], [(0, 1)], grid.number, grid.told(grid.products), 40, Policy()).sd[0]
            apart.append(np.sum((found[0] - found[1]) ** 2) / (size**2 + Policy().rounding ** 2 / 12))
        drawn = np.random.default_rng(1).standard_normal((2, 10, 200)) * np.sqrt(apart)[:, None]
        mine, its = np.array(apart)[:, None] / 2 + drawn[0], -np.array(apart)[:, None] / 2 + drawn[1]
        return float(np.mean(mine.ravel()[:, None] > its.ravel()[None, :]))

    def test_the_attack_fails(self) -> None:
        assert self.area() <= 0.68

    def test_it_succeeds_with_the_noise_of_a_curve(self, mutant: Mutant) -> None:
        mutant("isuit.release.noise.math", SimpleNamespace(sqrt=lambda told: 1.0))  # and nobody else's
        assert self.area() > 0.7


# --- attacks through the command line ---------------------------------------------------------------------------------


class TestTooFewRiders:
    """A cell of 24 riders, released as eight numbers: which points one rider's influence refuses tells of the rider."""

    def released(self, lab: Lab) -> Answer:
        return released(lab, outings(24))

    def test_the_attack_fails(self, lab: Lab) -> None:
        answer = self.released(lab)
        assert (answer.code, answer.file) == (3, None)
        assert "fewer than 40 riders, which a surface of so many bins needs: fit and release one metric" in answer.err

    def test_it_succeeds_when_k_is_enough(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.screening.riders_needed", lambda told: 1)
        assert self.released(lab).rows


class TestLoneRiderInAProduct:
    """Alone in high waves and strong wind, each of which many met: turning these outcomes round moves no byte of a
    release of products."""

    def leaks(self, lab: Lab, mutant: Mutant) -> bool:
        mutant("isuit.release.forms.riders_needed", lambda told: 1)
        mutant("isuit.release.screening.riders_needed", lambda told: 1)
        rows = [row for row in outings() if not (row.wave >= 3 and row.wind >= 30)]
        alone = [Outing("rider-003", 3.2 + number / 10, 30.0, 0) for number in range(4)]
        answers = [released(lab, [*rows, *(replace(row, outcome=value) for row in alone)]) for value in (0, 1)]
        assert {row["dimension"] for row in answers[0].rows} >= {"wave_m at wind_kn=5", "wave_m at wind_kn=35"}
        return answers[0].file != answers[1].file

    def test_the_attack_fails(self, lab: Lab, mutant: Mutant) -> None:
        assert not self.leaks(lab, mutant)

    def test_it_succeeds_when_thin_products_are_fitted(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.screening.bins_with_enough", lambda riders, policy: np.ones_like(riders, dtype=bool))
        assert self.leaks(lab, mutant)


class TestFewRidersAlongOneMetric:
    """The same where cells are main effects: one of nine in a moderate wind, in waves that everybody met."""

    def leaks(self, lab: Lab) -> bool:
        rows = [row for row in outings() if not 10 <= row.wind < 20 or int(row.rider[-3:]) < 9]
        odd = [row.rider == "rider-003" and 10 <= row.wind < 20 for row in rows]
        turned = [replace(row, outcome=1 - row.outcome) if turn else row for row, turn in zip(rows, odd, strict=True)]
        answers = [released(lab, each) for each in (rows, turned)]
        assert {row["dimension"].split(" at ")[0] for row in answers[0].rows} == set(BOTH)
        return answers[0].file != answers[1].file

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_a_line_leaves_one_of_its_bins_alone(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.screening.Placed.whole", lambda self, chosen: chosen)
        assert self.leaks(lab)


class TestWindBesideWindAndWave:
    """Two releases of the same riders, of wind alone and of wind and wave, held against each other: one series."""

    def released(self, lab: Lab, first: tuple[str, ...], second: tuple[str, ...]) -> tuple[Answer, Answer]:
        store = store_of(lab, outings(), *first)
        before = lab.export(store)
        fit(lab, store, outings(), *second)
        return before, lab.export(store, SECOND)

    @pytest.mark.parametrize(("first", "second"), [(("wind_kn",), BOTH), (BOTH, ("wind_kn",))])
    def test_the_attack_fails(self, lab: Lab, first: tuple[str, ...], second: tuple[str, ...]) -> None:
        before, after = self.released(lab, first, second)
        assert before.rows
        assert before.values == after.values

    def test_it_succeeds_when_outings_are_not_compared(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.one_series.shared_persons", lambda mine, theirs: 0)
        before, after = self.released(lab, ("wind_kn",), BOTH)
        assert len(after.rows) > len(before.rows)


class TestDeparture:
    """One rider leaves: rows of a surface are held as they were, and nothing in them changes."""

    def leaks(self, lab: Lab) -> bool:
        store = store_of(lab, outings(), size=0.18)
        first = lab.export(store)
        assert first.rows
        lab.opt_out(store, "rider-007")
        second = lab.export(store, SECOND)
        assert second.code == 0, second.err
        return first.values != second.values

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_rows_are_always_computed_again(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.carrying.is_held", lambda change, policy: False)
        mutant("isuit.release.carrying.may_change", lambda changed, policy: True)
        assert self.leaks(lab)


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "extension"),
    [("jsonl", "jsonl"), ("csv", "csv"), ("geoparquet", "parquet"), ("geojson", "geojson"), ("html", "html")],
)
def test_every_format_holds_a_surface(lab: Lab, kind: str, extension: str) -> None:
    store = store_of(lab, outings(), size=0.18)
    answer = lab.export(store, FIRST, "--format", kind, extension=extension)
    assert answer.code == 0, answer.err
    file = next(lab.directory.glob(f"*-atlas.{extension}"))
    checked = lab.isuit("check-release", file, "--json")
    assert checked.code == 0, checked.out
    assert b"rider-0" not in file.read_bytes()
    again = lab.isuit("rederive", FIRST, "--store", store, "--json")
    assert json.loads(again.out)["verdict"] == "identical"


def test_rows_say_what_they_run_along_and_units_are_of_metrics(lab: Lab) -> None:
    store = store_of(lab, outings(), size=0.18)
    answer = lab.export(store, FIRST, "--units", "wind_kn=knot", "--explain")
    units = {row["dimension"].split(" at ")[0]: row["units"] for row in answer.rows}
    assert units == {"wind_kn": "knot", "wave_m": None}
    described = {each["dimension"]: each for each in answer.metadata["metrics"]}
    for row in answer.rows:
        about = described[row["dimension"]]
        assert about["lower"] <= row["metric_lower"] < row["metric"] < row["metric_upper"] <= about["upper"]
    assert lab.export(store, SECOND).values == answer.values


def test_values_are_those_of_the_truth(lab: Lab) -> None:
    """Without noise, of 400 riders: products, which have the interaction, to a tenth or two."""
    random = np.random.default_rng(5)
    rows, riders, each = [], 400, 12
    for rider in range(riders):
        skill = random.standard_normal()
        for wave, wind in random.uniform([0, 0], [4, 36], (each, 2)).tolist():
            hard = 0.4 * (wave - 2) * (wind - 18) / 9
            at = OLD + timedelta(minutes=len(rows))
            rows.append(Outing(f"rider-{rider:03d}", wave, wind, int(random.random() < expit(2 * (skill - hard))), at))
    answer = released(lab, rows)
    assert len(answer.rows) == 16, answer.err
    wind = [float(row["dimension"].split("=")[1]) for row in answer.rows]
    truth = [0.4 * (row["metric"] - 2) * (at - 18) / 9 for row, at in zip(answer.rows, wind, strict=True)]
    off = [row["difficulty"] - true for row, true in zip(answer.rows, truth, strict=True)]
    assert max(map(abs, truth)) > 1.0
    assert np.sqrt(np.mean(np.square(off))) < 0.2
