"""A fit follows from its cohort: on other threads, kernels and machines, without the store, and after erasures."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from isuit import canonical, estimator
from isuit.audit.digests import rows_digest, tagged
from isuit.audit.log import EVENT_TAG, GENESIS, event_entry, read_log
from isuit.audit.rederivation import _curve_difference, _moved, _skill_difference
from isuit.audit.results import QUANTUM, TOLERANCE, quantised, result_digest
from isuit.audit.results import fit_id as name_of_fit
from isuit.domain import Estimate, FitConfig, Observations
from isuit.errors import InputError
from isuit.ingest import read_cohort
from isuit.service import checks, history
from isuit.service.fitting import fit
from isuit.service.recording import canonical_json, record_fit
from isuit.service.stores import open_store
from isuit.store.fits import atlas_rows, get_fit
from isuit.store.query import rows

ISUIT = Path(sys.executable).parent / "isuit"


@pytest.fixture(scope="module")
def cohort(cohort_table: Callable[..., pa.Table]) -> pa.Table:
    return cohort_table(21, riders=50, outcomes=25, sites=("north", "south"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, cohort: pa.Table) -> tuple[Path, str]:
    """A store with one fit; read only."""
    store = tmp_path_factory.mktemp("recorded") / "store"
    anchor = ((3.0, 0.1), (18.0, 0.9), (35.0, 0.1))
    return store, fit(store, cohort, FitConfig(activity="kite", dimension="wind", anchor=anchor)).fit_id


def test_the_stored_cohort_gives_the_same(recorded: tuple[Path, str]) -> None:
    report = checks.rederive(*recorded)
    assert report.verdict == "identical"
    assert report.largest_difference == 0
    assert report.skills_compared > 10


def test_so_does_the_auditors_own_file_in_any_order(
    recorded: tuple[Path, str], cohort: pa.Table, tmp_path: Path
) -> None:
    order = np.random.default_rng(1).permutation(cohort.num_rows)
    pcsv.write_csv(cohort.take(pa.array(order)), tmp_path / "shuffled.csv")
    report = checks.rederive(*recorded, str(tmp_path / "shuffled.csv"))
    assert (report.verdict, report.largest_difference) == ("identical", 0)
    pq.write_table(cohort.slice(1), tmp_path / "other.parquet")
    with pytest.raises(InputError, match="another cohort"):
        checks.rederive(*recorded, str(tmp_path / "other.parquet"))


def machine(**variables: str) -> dict[str, str]:
    return {**os.environ, **variables}


def simd_features() -> str:
    """What this processor has beyond the baseline that numpy is built for."""
    core = np._core._multiarray_umath
    return " ".join(name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name))


@pytest.mark.long
@pytest.mark.parametrize(
    ("variables", "verdicts"),
    [
        ({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}, {"identical"}),
        ({"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}, {"identical"}),
        ({"OPENBLAS_CORETYPE": "Prescott"}, {"identical", "equivalent"}),
        ({"OPENBLAS_CORETYPE": "Haswell"}, {"identical", "equivalent"}),
        ({"NPY_DISABLE_CPU_FEATURES": simd_features()}, {"identical", "equivalent"}),
    ],
)
def test_on_other_machines(recorded: tuple[Path, str], variables: dict[str, str], verdicts: set[str]) -> None:
    store, fit_id = recorded
    done = subprocess.run(
        [ISUIT, "rederive", fit_id, "--store", store, "--json"],
        env=machine(**variables),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["verdict"] in verdicts, report


def test_after_an_erasure_the_remainder_is_verified_and_refitted(full_store: Path) -> None:
    touched, whole, several = history.fits(full_store)
    report = checks.rederive(full_store, touched.fit_id)
    assert report.verdict == "erased"
    assert report.largest_difference is not None
    assert 0 < report.largest_difference < 2
    assert report.notes == ["1 of 24 riders were erased"]
    assert checks.rederive(full_store, whole.fit_id).verdict == "identical"
    assert checks.rederive(full_store, several.fit_id).verdict == "identical"


def changed(store: Path, statement: str) -> None:
    connection = duckdb.connect(str(store / "store.duckdb"))
    connection.execute(statement)
    connection.close()


def test_a_changed_result_diverges(store_copy: Path) -> None:
    fit_id = history.fits(store_copy)[1].fit_id
    changed(store_copy, f"UPDATE atlas.difficulty SET difficulty = difficulty + 0.01 WHERE fit_id = '{fit_id}'")
    changed(store_copy, f"UPDATE ledger.fits SET result_digest = 'x' WHERE fit_id = '{fit_id}'")
    report = checks.rederive(store_copy, fit_id)
    assert report.verdict == "diverged"
    assert report.curve_difference == pytest.approx(0.01)


@pytest.mark.parametrize(("change", "verdict"), [(5e-5, "equivalent"), (2e-4, "diverged")])
def test_a_ten_thousandth_of_a_skill_sd_is_what_machines_may_differ_by(
    tmp_path: Path, cohort_table: Callable[..., pa.Table], change: float, verdict: str
) -> None:
    """Recorded and logged as a machine would that computes every difficulty a little higher than this one."""
    config = FitConfig()
    with read_cohort(cohort_table(2)) as cohort, open_store(tmp_path / "store", write=True, create=True) as store:
        estimate = estimator.fit(cohort.observations(), config)
        assert all(curve.difficulty is not None for curve in estimate.curves)
        curves = tuple(replace(curve, difficulty=curve.difficulty + change) for curve in estimate.curves)
        fit_id = name_of_fit(cohort.cohort_hash, config.as_json(), estimator.ESTIMATOR_VERSION)
        record_fit(store, fit_id, cohort, config, replace(estimate, curves=curves), {})
    report = checks.rederive(tmp_path / "store", fit_id)
    assert report.verdict == verdict
    assert report.largest_difference == pytest.approx(change, rel=1e-6)


def points(metric: list[float]) -> pa.Table:
    flat = [0.0] * len(metric)
    nothing = pa.nulls(len(metric), pa.string())
    numbers = {"metric": metric, "difficulty": flat, "difficulty_se": flat, "suitability": flat}
    return pa.table({"site": nothing, "dimension": nothing, **numbers})


def test_points_are_the_same_within_a_millionth_of_the_largest_metric_or_of_one() -> None:
    assert _curve_difference(points([0.25, 0.5]), points([0.25, 0.5 + 0.9e-6])) == 0.0
    assert _curve_difference(points([0.25, 0.5]), points([0.25, 0.5 + 1.5e-6])) == math.inf
    assert _curve_difference(points([0.25, 300.0]), points([0.25, 300.0 + 2e-4])) == 0.0
    assert _curve_difference(points([0.25, 300.0]), points([0.25, 300.0 + 4e-4])) == math.inf


def curve(site: str, metric: list[float], difficulty: list[float]) -> pa.Table:
    nothing, zeros = pa.nulls(len(metric), pa.string()), [0.0] * len(metric)
    numbers = {"metric": metric, "difficulty": difficulty, "suitability": zeros}
    return pa.table({"site": [site] * len(metric), "dimension": nothing, **numbers})


def test_how_far_a_curve_moved_is_told_of_the_same_site_where_both_have_it() -> None:
    """On the grid of what is left, which begins later and has other points; a site that is new has not moved."""
    before = curve("a", [0.0, 1.0, 2.0, 3.0], [9.0, 1.0, 2.0, 3.0])
    left = pa.concat_tables([curve("a", [0.5, 2.5, 3.5], [0.75, 2.75, 3.75]), curve("b", [0.0, 3.0], [7.0, 7.0])])
    assert _moved(before, left) == pytest.approx(0.25)
    assert _moved(before, curve("b", [0.0, 3.0], [7.0, 7.0])) == math.inf


def test_skills_that_are_not_there_again_are_compared_of_nobody() -> None:
    """Whoever refits to a single curve must not be told that a rider's skill agreed."""
    skills = pa.table({"rider": ["a"], "skill_mean": [0.0], "skill_sd": [1.0]})
    again = cast(Estimate, SimpleNamespace(skills=None))
    assert _skill_difference(skills, again, erased=False) == (math.inf, 0)


def test_a_changed_skill_diverges(store_copy: Path) -> None:
    fit_id = history.fits(store_copy)[1].fit_id
    changed(store_copy, f"UPDATE personal.skills SET skill_mean = skill_mean + 1 WHERE fit_id = '{fit_id}'")
    assert checks.rederive(store_copy, fit_id).verdict == "diverged"


def test_one_edited_difficulty_diverges_and_is_named(store_copy: Path) -> None:
    """What `show`, `score` and the atlas give out is what the verdict is about, not only the recorded digest."""
    fit_id = history.fits(store_copy)[1].fit_id
    assert checks.rederive(store_copy, fit_id).disagreements == []
    changed(store_copy, f"UPDATE atlas.difficulty SET difficulty = difficulty + 0.2 {first_row(fit_id)}")
    report = checks.rederive(store_copy, fit_id)
    assert report.verdict == "diverged"
    assert report.largest_difference == report.differences["curves"] == pytest.approx(0.2)
    assert "atlas.difficulty: the stored curves differ from those fitted again by 0.2" in report.disagreements
    assert "what atlas.difficulty holds of this fit is not what was logged" in report.disagreements


def test_an_edit_below_every_tolerance_diverges_too(store_copy: Path) -> None:
    fit_id = history.fits(store_copy)[1].fit_id
    changed(store_copy, f"UPDATE atlas.difficulty SET suitability = suitability + 1e-12 {first_row(fit_id)}")
    report = checks.rederive(store_copy, fit_id)
    assert (report.verdict, report.disagreements) == (
        "diverged",
        ["what atlas.difficulty holds of this fit is not what was logged"],
    )


def test_after_an_erasure_an_edited_curve_still_diverges(store_copy: Path) -> None:
    fit_id = history.fits(store_copy)[0].fit_id
    assert checks.rederive(store_copy, fit_id).verdict == "erased"
    changed(store_copy, f"UPDATE atlas.difficulty SET difficulty = difficulty + 0.2 {first_row(fit_id)}")
    report = checks.rederive(store_copy, fit_id)
    assert report.verdict == "diverged"
    assert any("atlas.difficulty" in sentence for sentence in report.disagreements)


def first_row(fit_id: str) -> str:
    return f"WHERE rowid = (SELECT min(rowid) FROM atlas.difficulty WHERE fit_id = '{fit_id}')"


def nudged(value: Any, path: list[str | int]) -> Any:
    """A JSON value with one number changed by a tenth, or a verdict turned round."""
    if not path:
        return (not value) if isinstance(value, bool) else value + 0.1
    value[path[0]] = nudged(value[path[0]], path[1:])
    return value


# Each part of the record: what is edited, and the word by which the report must name it.
EDITS: list[tuple[str, str, list[str | int]]] = [
    ("curves", "atlas.difficulty.difficulty", []),
    ("curves", "atlas.difficulty.difficulty_se", []),
    ("curves", "atlas.difficulty.suitability", []),
    ("curves", "atlas.difficulty.metric", []),
    ("discrimination", "ledger.fits.discrimination", []),
    ("discrimination", "ledger.fits.discrimination_se", []),
    ("log-likelihood", "ledger.fits.log_likelihood", []),
    ("gates", "ledger.fits.identification", ["core_share"]),
    ("gates", "ledger.fits.promotion", ["likelihood_ratio"]),
    ("gates", "ledger.fits.promotion", ["ok"]),
    ("held-out scores", "ledger.fits.held_out", ["brier_skill"]),
    ("held-out scores", "ledger.fits.held_out", ["brier_skill_se"]),
    ("parameters", "ledger.fits.parameters", ["coefficients", 2]),
    ("parameters", "ledger.fits.parameters", ["bands", "", "se", 1]),
    ("parameters", "ledger.fits.parameters", ["metric_range", 0]),
    ("diagnostics", "ledger.fits.diagnostics", ["marginal_reliability"]),
    ("skills", "personal.skills.skill_mean", []),
    ("skills", "personal.skills.skill_sd", []),
    ("skills", "personal.skills.n_outcomes", []),
    ("skills", "personal.skills.n_bins", []),
    ("skills", "personal.skills.usable", []),
]


def relogged(store: Path, fit_id: str) -> None:
    """The work of an operator who covers an edit up: result digest, rows' digests and every head anew."""
    with open_store(store, write=True) as opened, opened.transaction() as connection:
        record = get_fit(connection, fit_id)
        assert record is not None
        atlas = atlas_rows(connection, fit_id)
        digest = result_digest(record.kind, record.discrimination, record.discrimination_se, atlas)
        connection.execute("UPDATE ledger.fits SET result_digest = ? WHERE fit_id = ?", [digest, fit_id])
        previous = GENESIS
        for event in read_log(connection):
            content = event.content
            if event.kind == "fit-recorded" and content["fit_id"] == fit_id:
                content["result_digest"] = digest
                tables = ("ledger.fits", "atlas.difficulty")
                content["rows_digest"] = {table: rows_digest(connection, table, [fit_id]) for table in tables}
            head = tagged(EVENT_TAG, event_entry(event.sequence, event.at, event.kind, content, previous))
            connection.execute(
                "UPDATE ledger.log SET payload = ?, previous = ?, head = ? WHERE sequence = ?",
                [canonical_json(content), previous, head, event.sequence],
            )
            previous = head


@pytest.fixture(scope="module")
def estimates() -> dict[Any, Estimate]:
    """By outcomes and configuration."""
    return {}


@pytest.fixture
def fitted_once(estimates: dict[Any, Estimate], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same outcomes under the same configuration are fitted once: what an operator edits here is no outcome."""
    known, fit_anew = estimates, estimator.fit

    def remembered(data: Observations, config: FitConfig, progress: checks.Progress | None = None) -> Estimate:
        key = config, data.rider.tobytes(), data.metric.tobytes(), data.outcome.tobytes()
        if key not in known:
            known[key] = fit_anew(data, config, progress)
        return known[key]

    monkeypatch.setattr(estimator, "fit", remembered)


@pytest.mark.parametrize(("part", "place", "path"), EDITS)
@pytest.mark.usefixtures("fitted_once")
def test_every_stored_number_counts_even_where_the_log_was_rewritten(
    recorded: tuple[Path, str], tmp_path: Path, part: str, place: str, path: list[str | int]
) -> None:
    store, fit_id = Path(shutil.copytree(recorded[0], tmp_path / "store")), recorded[1]
    table, _, column = place.rpartition(".")
    connection = duckdb.connect(str(store / "store.duckdb"))
    row, value = rows(connection, f"SELECT rowid, {column} FROM {table} WHERE fit_id = ? ORDER BY ALL", [fit_id])[0]
    changed_value = canonical_json(nudged(json.loads(value), path)) if path else nudged(value, [])
    if column.startswith("n_"):
        changed_value = value + 1
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", [changed_value, row])
    connection.close()
    relogged(store, fit_id)
    report = checks.rederive(store, fit_id)
    assert report.verdict == "diverged"
    assert any(f"the stored {part} differ" in sentence for sentence in report.disagreements), report.disagreements
    assert {name for name, found in report.differences.items() if found != 0} == {part}


def test_changed_rows_diverge(store_copy: Path) -> None:
    record = history.fits(store_copy)[0]
    changed(
        store_copy, f"UPDATE personal.outcomes SET outcome = 1 - outcome WHERE cohort_hash = '{record.cohort_hash}'"
    )
    report = checks.rederive(store_copy, record.fit_id)
    assert report.verdict == "diverged"
    assert "not the ones that were committed to" in report.notes[-1]


def test_an_older_estimator_is_named(store_copy: Path) -> None:
    changed(store_copy, "UPDATE ledger.fits SET estimator_version = 'e0', tool_version = '0.0.7'")
    with pytest.raises(InputError, match=r"made by estimator e0 .* install isuit 0\.0\.7"):
        checks.rederive(store_copy, history.fits(store_copy)[0].fit_id)


class TestBundle:
    def test_with_its_cohort_it_needs_no_store(self, store_copy: Path, tmp_path: Path) -> None:
        record = history.fits(store_copy)[1]
        report = checks.bundle(store_copy, record.fit_id, tmp_path / "bundle", with_cohort=True)
        assert set(report.files) == {"README.md", "atlas.csv", "cohort.tsv", "fit.json", "log.jsonl", "manifest.json"}
        content = (tmp_path / "bundle" / "cohort.tsv").read_bytes()
        assert canonical.hash_of([content]) == record.cohort_hash
        assert checks.rederive_bundle(tmp_path / "bundle").verdict == "identical"
        with open_store(store_copy) as store:
            last = read_log(store.connection)[-1]
        assert (last.kind, last.head) == ("bundle-made", report.log_head)
        assert checks.verify(store_copy, known_head=report.log_head).ok

    def test_without_it_the_auditor_brings_one_and_no_rider_leaves(
        self, recorded: tuple[Path, str], cohort: pa.Table, tmp_path: Path
    ) -> None:
        checks.bundle(*recorded, tmp_path / "bundle")
        for path in (tmp_path / "bundle").iterdir():
            assert "rider-0" not in path.read_text()
        with pytest.raises(InputError, match="holds no cohort"):
            checks.rederive_bundle(tmp_path / "bundle")
        assert checks.rederive_bundle(tmp_path / "bundle", cohort).verdict == "identical"

    def test_of_a_single_curve_which_has_no_difficulty(
        self, tmp_path: Path, cohort_table: Callable[..., pa.Table]
    ) -> None:
        """Nulls go into the file and come back as nulls: here difficulty, its error and the shared curve's site."""
        table = cohort_table(5, riders=2, sites=("north", "south"))
        summary = fit(tmp_path / "store", table, FitConfig())
        assert summary.kind == "single-curve"
        checks.bundle(tmp_path / "store", summary.fit_id, tmp_path / "bundle", with_cohort=True)
        assert checks.rederive_bundle(tmp_path / "bundle").verdict == "identical"

    @pytest.mark.parametrize("name", ["fit.json", "atlas.csv", "log.jsonl"])
    def test_a_changed_file_is_refused_even_with_a_new_manifest(
        self, recorded: tuple[Path, str], tmp_path: Path, name: str
    ) -> None:
        import hashlib

        folder = tmp_path / "bundle"
        checks.bundle(*recorded, folder)
        text = (folder / name).read_text()
        old, new = {
            "fit.json": ('"kind": "latent"', '"kind": "single-curve"'),
            "atlas.csv": ("\n,3.", "\n,4."),
            "log.jsonl": ("fit-recorded", "fit-revoked"),
        }[name]
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))
        with pytest.raises(InputError, match="damaged"):
            checks.rederive_bundle(folder)
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(InputError, match=r"log speaks of|not a chain|not a whole bundle"):
            checks.rederive_bundle(folder)

    def test_a_cohort_with_erased_rows_cannot_leave(self, store_copy: Path, tmp_path: Path) -> None:
        before = history.status(store_copy).log_head
        with pytest.raises(InputError, match="were erased"):
            checks.bundle(store_copy, history.fits(store_copy)[0].fit_id, tmp_path / "bundle", with_cohort=True)
        assert not (tmp_path / "bundle").exists()
        assert history.status(store_copy).log_head == before

    def test_it_never_overwrites(self, recorded: tuple[Path, str], tmp_path: Path) -> None:
        (tmp_path / "mine.txt").touch()
        with pytest.raises(InputError, match="not an empty directory"):
            checks.bundle(*recorded, tmp_path)


def test_a_quantum_hides_the_last_bits_and_nothing_more() -> None:
    assert quantised(0.1234562) == quantised(0.1234562 + 1e-12)
    assert quantised(0.1234562) != quantised(0.1234562 + 2 * QUANTUM)
    assert quantised(-1e-12) == quantised(0.0) == 0
    assert QUANTUM < TOLERANCE


def test_suppressed_riders_stay_out(store_copy: Path, cohort_table: Callable[..., pa.Table]) -> None:
    """The erased rider of the store comes back in a new import: left out, counted, logged."""
    table = cohort_table(31, riders=30, outcomes=20)
    summary = fit(store_copy, table, FitConfig())
    assert summary.suppressed_rows == 20
    assert any("opted out" in note for note in summary.notes)
    with read_cohort(table) as whole:
        assert summary.cohort_hash != whole.cohort_hash
    with open_store(store_copy) as store:
        events = read_log(store.connection)
        assert [event.content for event in events if event.kind == "rows-suppressed"] == [
            {"cohort_hash": summary.cohort_hash, "rows": 20}
        ]
        assert rows(store.connection, "SELECT 1 FROM personal.outcomes WHERE rider = 'rider-0003'") == []
    assert checks.verify(store_copy).ok
    assert fit(store_copy, table, FitConfig()).log_head == summary.log_head
