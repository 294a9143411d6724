"""`isuit hash` and `isuit canonicalise` as processes, and the auditor's transcript of the docs."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("quick_isuit")
DOCS = Path(__file__).parent.parent.parent / "docs"
COHORT = (
    "rider,site,observed_at,metric,outcome\n"
    "ab,Tarifa,2024-05-01T09:30:00+02:00,18.5,true\n"
    "a,,,-0.0,0\n"
    "ab,Århus,1969-12-31T23:59:59.999999Z,5e-324,1\n"
)
HASH = "isuit-c1:d36db02e2a9f8c79ea80508f1f6a129a5e9ccc39c03a3fc5a7b454e79e058bc1"


def isuit(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["isuit", *arguments], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cohort.csv").write_text(COHORT, encoding="utf-8")
    return tmp_path


def test_hash_prints_the_hash_alone_on_stdout(folder: Path) -> None:
    run = isuit(folder, "hash", "cohort.csv")
    assert (run.returncode, run.stdout) == (0, HASH + "\n")
    assert run.stderr == (
        "3 outcomes, 2 riders, 2 sites, 1969-12-31T23:59:59.999999Z to 2024-05-01T07:30:00.000000Z, "
        "0 duplicates (kept), nothing refused\n"
    )


def test_hash_as_json(folder: Path) -> None:
    run = isuit(folder, "hash", "cohort.csv", "--json")
    answer = json.loads(run.stdout)
    assert run.stderr == ""
    assert (answer["cohort_hash"], answer["outcomes"], answer["riders"], answer["sites"]) == (HASH, 3, 2, 2)
    assert (answer["rows"], answer["duplicates"]) == (3, 0)


def test_hash_of_several_files_is_that_of_one_cohort(folder: Path) -> None:
    header, *rows = COHORT.splitlines(keepends=True)
    (folder / "d").mkdir()
    for number, row in enumerate(rows):
        (folder / "d" / f"{number}.csv").write_text(header + row, encoding="utf-8")
    for sources in (["d/2.csv", "d/0.csv", "d/1.csv"], ["d"], ["d/*.csv"]):
        assert isuit(folder, "hash", *sources).stdout == HASH + "\n"


def test_columns_and_zone_as_options(folder: Path) -> None:
    (folder / "theirs.csv").write_text("user,when,wind,ok\nr,2024-05-01T09:30:00,18.5,1\n")
    (folder / "ours.csv").write_text("rider,observed_at,metric,outcome\nr,2024-05-01T07:30:00Z,18.5,1\n")
    mapping = ["rider=user", "observed_at=when", "metric=wind", "outcome=ok"]
    options = [part for pair in mapping for part in ("--column", pair)] + ["--timezone", "Europe/Madrid"]
    assert isuit(folder, "hash", "theirs.csv", *options).stdout == isuit(folder, "hash", "ours.csv").stdout != ""


def test_canonicalise_writes_the_bytes_of_the_hash(folder: Path) -> None:
    run = isuit(folder, "canonicalise", "cohort.csv", "--out", "cohort.tsv", "--json")
    assert json.loads(run.stdout)["cohort_hash"] == HASH
    assert "isuit-c1:" + hashlib.sha256((folder / "cohort.tsv").read_bytes()).hexdigest() == HASH
    assert sorted(path.name for path in folder.iterdir()) == ["cohort.csv", "cohort.tsv"]


def test_canonicalise_replaces_a_file_and_keeps_it_when_refused(folder: Path) -> None:
    (folder / "cohort.tsv").write_text("before")
    (folder / "bad.csv").write_text("rider,metric,outcome\nr,,1\n")
    assert isuit(folder, "canonicalise", "bad.csv", "--out", "cohort.tsv").returncode == 2
    assert (folder / "cohort.tsv").read_text() == "before"
    assert isuit(folder, "canonicalise", "cohort.csv", "--out", "cohort.tsv").returncode == 0
    assert (folder / "cohort.tsv").read_text(encoding="utf-8").startswith("isuit-c1\n")


def test_canonicalise_into_a_pipe_and_through_a_link(folder: Path) -> None:
    piped = isuit(folder, "canonicalise", "cohort.csv", "--out", "/dev/stdout")
    assert "isuit-c1:" + hashlib.sha256(piped.stdout.encode()).hexdigest() == HASH
    (folder / "link.tsv").symlink_to(folder / "target.tsv")
    assert isuit(folder, "canonicalise", "cohort.csv", "--out", "link.tsv").returncode == 0
    assert (folder / "link.tsv").is_symlink()
    assert (folder / "target.tsv").read_text(encoding="utf-8") == piped.stdout


def test_canonicalise_where_nothing_can_be_written(folder: Path) -> None:
    run = isuit(folder, "canonicalise", "cohort.csv", "--out", "absent/cohort.tsv")
    assert run.returncode == 2
    assert run.stderr == "isuit: absent/cohort.tsv cannot be written (No such file or directory); name another place\n"


def test_canonicalise_on_a_full_disk_leaves_nothing(folder: Path) -> None:
    command = "ulimit -f 0; isuit canonicalise cohort.csv --out cohort.tsv"
    run = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (
        2,
        "isuit: cohort.tsv cannot be written (File too large); name another place\n",
    )
    assert [path.name for path in folder.iterdir()] == ["cohort.csv"]


def test_a_refusal_as_json_lists_the_defects(folder: Path) -> None:
    (folder / "bad.csv").write_text("rider,metric,outcome\nmallory,1,1\n,nan,7\n")
    run = isuit(folder, "hash", "bad.csv", "--json")
    assert run.returncode == 2
    assert {"column": "metric", "defect": "not a finite number", "count": 1, "rows": ["2"]} in json.loads(run.stdout)[
        "refused"
    ]
    assert "mallory" not in run.stdout + run.stderr


def test_bad_usage_exits_2(folder: Path) -> None:
    assert isuit(folder, "hash").returncode == 2
    assert isuit(folder, "canonicalise", "cohort.csv").returncode == 2


@pytest.mark.parametrize("arguments", [["--help"], ["hash", "--help"]])
def test_help_imports_nothing_heavy(folder: Path, arguments: list[str]) -> None:
    program = (
        "import sys; from isuit.cli.app import main\n"
        f"sys.argv = ['isuit', *{arguments}]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pyarrow', 'duckdb', 'scipy', 'matplotlib', 'h3'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, capture_output=True)


def test_hashing_a_small_file_does_not_load_duckdb(folder: Path) -> None:
    program = (
        "import sys; from isuit.ingest import read_cohort\n"
        "read_cohort('cohort.csv').close()\n"
        "heavy = {'duckdb', 'scipy', 'matplotlib', 'polars'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)


def transcript(text: str) -> list[tuple[str, str]]:
    """Commands of the console blocks with what they print; a line that starts with > continues the command."""
    steps: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines(keepends=True):
            if line.startswith("$ "):
                steps.append((line[2:], ""))
            elif line.startswith("> "):
                steps[-1] = (steps[-1][0] + line[2:], steps[-1][1])
            else:
                steps[-1] = (steps[-1][0], steps[-1][1] + line)
    return steps


def test_the_auditors_transcript_of_the_specification(tmp_path: Path) -> None:
    steps = transcript((DOCS / "canonical-form.md").read_text(encoding="utf-8"))
    assert len(steps) >= 7
    assert any("isuit" not in command.replace("isuit-c1", "") and "sha256sum" in command for command, _ in steps)
    for command, printed in steps:
        run = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stdout) == (0, printed), command
