"""`isuit latent-demo` through its console script: the paper's experiment, its files, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from isuit.experiment.cohort import REFERENCE_SEED, Truth, draw

SHARED = Path(os.environ.get("ISUIT_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
REFERENCE_FILE = SHARED / "reference_cohort.parquet"
PAPER_KEYS = {
    "theta_recovery_corr",
    "difficulty_min_knots",
    "discrimination_a",
    "marginal_matches",
    "held_out_bss",
    "identification_ok",
    "n_train",
}
OURS = {
    "held_out_bss_70_30",
    "held_out_bss_se",
    "discrimination_a_se",
    "difficulty_min_interval",
    "difficulty_rmse",
    "difficulty_coverage_95",
    "skill_coverage_95",
    "paper",
    "seed",
    "kind",
}


def demo(
    *arguments: str | Path, command: str = "isuit", folder: Path = Path(sys.executable).parent, **environment: str
) -> subprocess.CompletedProcess[str]:
    program = shutil.which(command, path=str(folder))
    assert program, f"{command} is not installed beside this Python"
    return subprocess.run(
        [program, "latent-demo", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    done = demo("--out", out)
    assert done.returncode == 0, done.stderr
    assert "| Discrimination | 1.81 ± 0.17 | 2.16 |" in done.stdout
    return out


def test_reference_cohort_is_drawn_to_the_value() -> None:
    """Pinned values, so that the comparison below cannot go missing unnoticed."""
    data, skill = draw(Truth(), REFERENCE_SEED)
    assert len(data) == 2400
    assert data.riders[0] == "rider-000"
    assert float(skill[0]) == 0.03419276725318417
    assert float(data.metric[0]) == 34.30563639405494
    assert float(data.metric[-1]) == 18.159514840490953
    assert int(data.outcome.sum()) == 1146
    assert data.outcome[:10].tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 1, 1]


@pytest.mark.skipif(not REFERENCE_FILE.exists(), reason="the published reference cohort is not beside this project")
def test_reference_cohort_equals_the_published_one() -> None:
    table = pq.read_table(REFERENCE_FILE)
    data, skill = draw(Truth(), REFERENCE_SEED)
    names = [data.riders[r] for r in data.rider]
    published = sorted(zip(*(table[name].to_pylist() for name in ("rider", "metric", "outcome")), strict=True))
    assert published == sorted(zip(names, data.metric.tolist(), data.outcome.tolist(), strict=True))
    truth = json.loads(REFERENCE_FILE.with_name("reference_truth.json").read_text())
    assert truth["theta"] == dict(zip(data.riders, skill.tolist(), strict=True))


def test_stats_have_the_papers_keys_and_more(written: Path) -> None:
    stats = json.loads((written / "stats.json").read_text())
    assert stats.keys() >= PAPER_KEYS | OURS
    assert stats["theta_recovery_corr"] >= 0.964
    assert abs(stats["discrimination_a"] - 1.80) <= 0.03
    assert stats["held_out_bss_70_30"] >= 0.329
    assert stats["held_out_bss"] > 0.2
    assert abs(stats["difficulty_min_knots"] - 18) < 0.3
    assert (stats["marginal_matches"], stats["identification_ok"], stats["n_train"]) == (True, True, 2400)
    assert stats["paper"]["held_out_bss_70_30"] == 0.329


def test_every_file_is_there(written: Path) -> None:
    assert sorted(path.name for path in written.iterdir()) == [
        "difficulty.png", "difficulty.svg", "results.md", "results.tex", "stats.json",
    ]  # fmt: skip
    assert (written / "difficulty.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (written / "difficulty.svg").read_text()
    assert r"\newcommand{\discriminationA}{1.81}" in (written / "results.tex").read_text()
    assert "| Held-out Brier skill, 70/30" in (written / "results.md").read_text()


@pytest.mark.long
@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_same_bytes_whatever_the_threads(written: Path, tmp_path: Path, threads: str) -> None:
    done = demo("--out", tmp_path, "--json", OPENBLAS_NUM_THREADS=threads, OMP_NUM_THREADS=threads)
    assert done.returncode == 0, done.stderr
    for name in ("stats.json", "results.md", "results.tex", "difficulty.svg"):
        assert (tmp_path / name).read_bytes() == (written / name).read_bytes(), name
    assert json.loads(done.stdout) == json.loads((written / "stats.json").read_text())


def test_the_papers_command_is_the_same_program(written: Path, tmp_path: Path) -> None:
    done = demo("--out", tmp_path, command="inverse-suitability")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "stats.json").read_bytes() == (written / "stats.json").read_bytes()


@pytest.mark.long
def test_options_change_the_cohort_and_leave_the_paper_out(tmp_path: Path) -> None:
    options = ["--seed", "7", "--riders", "40", "--outcomes", "25", "--discrimination", "1.5", "--optimum", "20"]
    done = demo("--out", tmp_path, *options, "--width", "9", "--floor", "-0.5", "--replicates", "3", "--json")
    assert done.returncode == 0, done.stderr
    stats = json.loads(done.stdout)
    assert (stats["seed"], stats["n_riders"], stats["n_train"], stats["paper"]) == (7, 40, 1000, {})
    assert abs(stats["difficulty_min_knots"] - 20) < 2
    summary = stats["replicates_summary"]
    assert summary["replicates"] == 3
    assert summary["discrimination_a"]["monte_carlo_error"] > 0
    assert abs(summary["discrimination_a"]["mean"] - 1.5) < 0.5
    assert "progress" not in done.stderr.lower()


def test_a_cohort_without_skill_ends_as_a_single_curve(tmp_path: Path) -> None:
    done = demo("--out", tmp_path, "--discrimination", "0", "--json")
    assert done.returncode == 0, done.stderr
    stats = json.loads(done.stdout)
    assert stats["kind"] == "single-curve"
    assert stats["shortfalls"]
    assert not (tmp_path / "difficulty.svg").exists()
    assert "No latent fit" in (tmp_path / "results.md").read_text()


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--riders", "0"),
        ("--outcomes", "-1"),
        ("--seed", "-3"),
        ("--seed", "eleven"),
        ("--width", "0"),
        ("--replicates", "-1"),
        ("--no-such-option",),
    ],
)
def test_bad_options_exit_2_and_write_nothing(options: tuple[str, ...], tmp_path: Path, console: Path) -> None:
    out = tmp_path / "out"
    done = demo(*options, *(("--out", out) if options else ()), folder=console.parent)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not out.exists()


@pytest.mark.parametrize("option", ["--optimum", "--floor", "--discrimination", "--width"])
def test_numbers_that_are_none_are_refused(option: str, tmp_path: Path, console: Path) -> None:
    done = demo("--out", tmp_path, option, "nan", folder=console.parent)
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr


def test_a_place_that_cannot_be_written_exits_2(tmp_path: Path, console: Path) -> None:
    """A file in the way: permissions would not stop a superuser."""
    (tmp_path / "file").write_text("in the way")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        done = demo("--out", out, folder=console.parent)
        assert done.returncode == 2
        assert "Cannot write into" in done.stderr
        assert "Traceback" not in done.stderr
    assert (tmp_path / "file").read_text() == "in the way"
