"""A cohort taken slice by slice, from memory or from disk, in any order of rows: the same estimate."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from isuit import columns
from isuit.domain import Estimate, FitConfig, Observations, Split
from isuit.estimator import fit, predict_held_out
from isuit.estimator.diagnostics import heldout
from isuit.estimator.gate import incidence
from isuit.estimator.model import order
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import Counts, count
from isuit.ingest import read_cohort

from .cohorts import numbers, observations, of_rows, simulate

DAY = 86_400_000_000
# The rows kept back before they were chosen slice by slice: a split must not move, or old fits could not be re-derived.
SPLITS: dict[Split, tuple[int, str]] = {
    "rider": (600, "fb22c3a0e261bd0d"),
    "time": (598, "14fea99ade237af6"),
    "occasion": (595, "87811a85f9c23022"),
}


@pytest.fixture
def rows() -> Observations:
    """Rows sorted by rider, with ties, sites, times and metrics on both sides of zero."""
    generator = np.random.default_rng(8)
    rider = np.sort(generator.integers(0, 120, 3000))
    metric = np.round(generator.normal(0, 4, 3000), 1) + 0.0  # a cohort has no negative zero
    outcome, site = generator.integers(0, 2, 3000), generator.integers(-1, 3, 3000)
    time = generator.integers(0, 25, 3000) * DAY + generator.integers(0, 3, 3000) * DAY // 24
    return observations(rider, metric, outcome, site, time)


def shuffled(data: Observations) -> tuple[Observations, np.ndarray]:
    moved = np.random.default_rng(1).permutation(len(data))
    return of_rows(data, moved), moved


def slices_of(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(columns, "SLICE_ROWS", size)
    monkeypatch.setattr(order, "_FEW", size)


@pytest.mark.parametrize("size", [1, 50, 1 << 17])
@pytest.mark.parametrize("split", SPLITS)
def test_the_split_is_the_one_it_always_was(
    rows: Observations, split: Split, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    slices_of(monkeypatch, size)
    kept_back = heldout.kept_back_rows(rows, split)
    digest = hashlib.sha256(np.packbits(kept_back).tobytes()).hexdigest()[:16]
    assert (int(kept_back.sum()), digest) == SPLITS[split]


@pytest.mark.parametrize("split", SPLITS)
def test_of_very_many_rows_those_of_some_riders_are_kept_back(
    rows: Observations, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = heldout.kept_back_rows(rows, split)
    monkeypatch.setattr(heldout, "MOST_ROWS", 300)  # about half
    some = heldout.kept_back_rows(rows, split)
    assert 200 < some.sum() < 400
    chosen = np.isin(rows.rider, rows.rider[some])
    assert np.array_equal(some, whole & chosen), "a rider is kept back as ever, or not at all"
    other, moved = shuffled(rows)
    assert np.array_equal(heldout.kept_back_rows(other, split), some[moved])
    slices_of(monkeypatch, 50)
    assert np.array_equal(heldout.kept_back_rows(rows, split), some)
    assert 200 < heldout.of_new_riders(rows).sum() <= 300


def test_numbers_that_agree_in_their_leading_bits(rows: Observations, monkeypatch: pytest.MonkeyPatch) -> None:
    """So few bits are left here that they tie at many riders' limits: the rest must decide, as in a full sort."""
    mixed = columns.mixed
    monkeypatch.setattr(columns, "mixed", lambda value: mixed(value) >> np.uint64(56))
    kept_back = heldout.kept_back_rows(rows, "rider")
    sizes = np.bincount(rows.rider)
    assert np.array_equal(np.bincount(rows.rider[kept_back], minlength=120), np.rint(0.2 * sizes))


@pytest.mark.parametrize("exact", [0, 5000])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts(rows: Observations, exact: int, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isuit.estimator.model.counts.EXACT_ROWS", exact)
    spline = spline_for(rows.metric)
    weight = np.random.default_rng(2).integers(1, 9, len(rows)) / 8 if weighted else None
    chosen = np.random.default_rng(4).random(len(rows)) < 0.7

    def bits(data: Observations, moved: np.ndarray | slice, only: np.ndarray | None = None) -> list[bytes]:
        own = None if weight is None else weight[moved]
        found = count(data.rider, data.metric, data.outcome, spline, 121, data.site, own, only)
        return [part.tobytes() for part in parts_of(found)]

    whole, some = bits(rows, slice(None)), bits(of_rows(rows, chosen), chosen)
    assert whole != some
    other, moved = shuffled(rows)
    assert bits(other, moved) == whole
    slices_of(monkeypatch, 50)
    assert bits(rows, slice(None)) == whole
    assert bits(rows, slice(None), chosen) == some
    assert bits(other, moved, chosen[moved]) == some
    monkeypatch.setattr(columns, "IN_MEMORY_BYTES", 0)
    narrow = replace(rows, rider=rows.rider.astype(np.int32), outcome=rows.outcome.astype(np.int8))
    assert bits(narrow, slice(None)) == whole


def parts_of(counts: Counts) -> list[np.ndarray]:
    trials, successes = counts.trials, counts.successes
    assert np.shares_memory(trials.indices, successes.indices)
    assert trials.indices.dtype == np.int32
    assert trials.has_canonical_format
    return [trials.indptr, trials.indices, trials.data, successes.data, counts.item_metric, counts.item_site]


def test_a_cell_is_found_as_by_bisection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a point mass crowds many edges into one bucket, and at the ends of the range."""
    from isuit.estimator.model.counts import _Cells, cell_edges

    generator = np.random.default_rng(5)
    crowded = np.concatenate([np.full(5000, 3.0), generator.uniform(0, 1000, 1000), 3 + generator.random(3000) / 100])
    for metric in (crowded, generator.gamma(2, 3, 5000)):
        spline = spline_for(metric)
        edges = cell_edges(spline)
        unit = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1), generator.random(1000)])
        expected = np.clip(np.searchsorted(edges, unit, side="right") - 1, 0, edges.size - 2)
        cells = _Cells(spline)
        monkeypatch.setattr(type(spline), "unit", lambda self, metric: metric)
        assert np.array_equal(cells.place(unit)[0], expected)
        monkeypatch.undo()


def test_predictions_know_nothing_of_what_is_kept_back(reference: Observations) -> None:
    kept_back = heldout.kept_back_rows(reference, "rider")
    other = replace(reference, outcome=np.where(kept_back, 1 - reference.outcome, reference.outcome))
    first, second = (predict_held_out(data, FitConfig(), kept_back) for data in (reference, other))
    for own, changed in zip(first, second, strict=True):
        assert own.size == kept_back.sum()
        assert own.tobytes() == changed.tobytes()


def test_bins_and_knots(rows: Observations, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(data: Observations) -> tuple[object, ...]:
        graph = incidence(data.rider, data.metric, 121, 8)
        return graph.outcomes.tobytes(), graph.lower.tobytes(), graph.upper.tobytes(), spline_for(data.metric)

    whole = found(rows)
    assert found(shuffled(rows)[0]) == whole
    slices_of(monkeypatch, 50)
    assert found(rows) == whole
    coarse = replace(rows, metric=np.round(rows.metric / 5))  # fewer than 64 values
    assert spline_for(coarse.metric).size == np.unique(coarse.metric).size


def exact(estimate: Estimate) -> dict[str, str]:
    return {path: value.hex() for path, value in numbers(estimate)}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """A cohort with sites and times, its rows in no order, that gives a latent fit."""
    generator = np.random.default_rng(12)
    rider, site = np.repeat(np.arange(150), 60), generator.integers(0, 3, 9000)
    metric = generator.uniform(3, 35, 9000)
    difficulty = ((metric - 18) / 8) ** 2 - 1 + 0.3 * site
    outcome = simulate(generator, rider, generator.normal(0, 1, 150), difficulty)
    days = generator.integers(0, 200, 9000)
    columns = {
        "rider": [f"rider-{k:03d}" for k in rider.tolist()],
        "site": [f"site-{k}" for k in site.tolist()],
        "observed_at": pa.array(days * DAY, pa.timestamp("us", tz="UTC")),
        "metric": metric,
        "outcome": outcome,
    }
    return pa.table(columns).take(generator.permutation(9000))


@pytest.mark.parametrize("split", SPLITS)
def test_a_fit_from_disk_is_the_fit_from_memory(
    table: pa.Table, split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = FitConfig(split=split)
    with read_cohort(table) as cohort:
        data = cohort.observations()
    assert not isinstance(data.metric.base, np.memmap)
    whole = fit(data, config)
    assert whole.kind == "latent"
    slices_of(monkeypatch, 1000)
    in_memory = fit(data, config)
    # The basis at a row may differ in its last bit with the row's place in a product; nothing else does.
    assert dict(numbers(in_memory)) == pytest.approx(dict(numbers(whole)), rel=1e-9, abs=1e-12)
    monkeypatch.setattr(columns, "IN_MEMORY_BYTES", 0)
    with read_cohort(table, in_memory_rows=0, temporary=tmp_path) as cohort:
        data = cohort.observations()
        assert all(isinstance(column.base, np.memmap) for column in (data.rider, data.metric, data.outcome))
    assert list(tmp_path.iterdir()) == [], "what is mapped outlives the cohort and has no name"
    assert exact(fit(data, config)) == exact(in_memory)
