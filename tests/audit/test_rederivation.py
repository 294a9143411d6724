"""A fit follows from its cohort: on other threads, kernels and machines, without the store, and after erasures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from isuit import canonical
from isuit.audit.log import read_log
from isuit.audit.results import QUANTUM, TOLERANCE, quantised
from isuit.domain import FitConfig
from isuit.errors import InputError
from isuit.ingest import read_cohort
from isuit.service import checks, history
from isuit.service.fitting import fit
from isuit.service.stores import open_store
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
    touched, whole = history.fits(full_store)
    report = checks.rederive(full_store, touched.fit_id)
    assert report.verdict == "erased"
    assert report.largest_difference is not None
    assert 0 < report.largest_difference < 2
    assert report.notes == ["1 of 24 riders were erased"]
    assert checks.rederive(full_store, whole.fit_id).verdict == "identical"


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
    store_copy: Path, change: float, verdict: str
) -> None:
    """Here the record differs from the refit as if another machine had made it."""
    fit_id = history.fits(store_copy)[1].fit_id
    changed(store_copy, f"UPDATE atlas.difficulty SET difficulty = difficulty + {change} WHERE fit_id = '{fit_id}'")
    changed(store_copy, f"UPDATE ledger.fits SET result_digest = 'x' WHERE fit_id = '{fit_id}'")
    assert checks.rederive(store_copy, fit_id).verdict == verdict


def test_a_changed_skill_diverges(store_copy: Path) -> None:
    fit_id = history.fits(store_copy)[1].fit_id
    changed(store_copy, f"UPDATE personal.skills SET skill_mean = skill_mean + 1 WHERE fit_id = '{fit_id}'")
    assert checks.rederive(store_copy, fit_id).verdict == "diverged"


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
        with pytest.raises(InputError, match=r"log speaks of|not a chain"):
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
