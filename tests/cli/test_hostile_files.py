"""Files made to hang, to fill memory or to be quoted: one sentence, exit 2, and nothing of the content in it."""

from __future__ import annotations

import errno
import gzip
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from conftest import Answer

ISUIT = Path(sys.executable).with_name("isuit")
RIDER = "mallory-4711"
HEADER = "rider,metric,outcome\n"
DEEP = "[" * 100_000
LONG = "9" * 5000
SITES = "site,latitude,longitude\n"

# A command with the name of the file it reads, and what the file holds.
CASES: dict[str, tuple[list[str], str, str | bytes]] = {
    "cohort, header of 200 kB": (["hash"], "c.csv", "x" * 200_000 + ",metric,outcome\n" + f"{RIDER},1,1\n"),
    "cohort, header that never ends": (["hash"], "c.csv.gz", gzip.compress(b"x" * (1 << 24))),
    "cohort, field of 200 kB": (["hash"], "c.csv", f"{HEADER}{RIDER},1,{'x' * 200_000}\n"),
    "cohort, a short row of other bytes": (["hash"], "c.csv", f"{HEADER}{RIDER},1,1\n".encode() + b"\xff\xfe,1\n"),
    "policy, deep JSON": (["init", "--policy"], "p.json", DEEP),
    "policy, deep YAML": (["init", "--policy"], "p.yaml", DEEP),
    "policy, deep YAML in blocks": (["init", "--policy"], "p.yaml", "- " * 50_000 + "x"),
    "policy, YAML that grows": (
        ["init", "--policy"],
        "p.yaml",
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
    ),
    "policy, YAML whose merges grow": (
        ["init", "--policy"],
        "p.yaml",
        "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40)),
    ),
    "policy, YAML without end": (["init", "--policy"], "p.yaml", "k: &a [*a]"),
    "policy, sexagesimal": (["init", "--policy"], "p.yaml", "k: 1" + ":59" * 100_000),
    "policy, no date": (["init", "--policy"], "p.yaml", "k: 2001-99-99"),
    "policy, 5,000 digits": (["init", "--policy"], "p.json", f'{{"k": {LONG}}}'),
    "policy, 5,000 digits in YAML": (["init", "--policy"], "p.yaml", f"k: {LONG}"),
    "policy, k of 10^26": (["init", "--policy"], "p.json", '{"k": 100000000000000000000000000}'),
    "policy, k of 10^15": (["init", "--policy"], "p.json", '{"k": 1000000000000000}'),
    "policy, days beyond dates": (["init", "--policy"], "p.json", '{"lag_days": 100000000}'),
    "policy, not finite": (["init", "--policy"], "p.json", '{"weight_cap": Infinity}'),
    "policy, not finite in YAML": (["init", "--policy"], "p.yaml", "weight_cap: .inf"),
    "policy, a name": (["init", "--policy"], "p.json", f'{{"{RIDER}": 1}}'),
    "policy, half a character": (["init", "--policy"], "p.json", '{"\\ud800": 1}'),
    "anchor, deep JSON": (["fit", "--cohort", "good.csv", "--anchor"], "a.json", '{"metric":' * 50_000),
    "anchor, deep YAML": (["fit", "--cohort", "good.csv", "--anchor"], "a.yaml", "{a: " * 50_000),
    "anchor, 5,000 digits": (["fit", "--cohort", "good.csv", "--anchor"], "a.json", f"[[1, 0.5], [{LONG}, 0.5]]"),
    "anchor, field of 200 kB": (["fit", "--cohort", "good.csv", "--anchor"], "a.csv", f"1,0.5\n{'2' * 200_000},1\n"),
    "sites, a column twice": (
        ["fit", "--cohort", "good.csv", "--sites"],
        "s.csv",
        "site,latitude,longitude,site\nn,1,1,n\n",
    ),
    "sites, no UTF-8": (["fit", "--cohort", "good.csv", "--sites"], "s.csv", b"\xff\xfe,latitude,longitude\nn,1,1\n"),
    "release, deep": (["check-release"], "r.jsonl", DEEP + "\n"),
    "release, deep GeoJSON": (["check-release"], "r.geojson", DEEP),
    "release, 5,000 digits": (["check-release"], "r.jsonl", f'{{"rows": {LONG}}}\n'),
    "release, NaN": (["check-release"], "r.jsonl", '{"metric": NaN}\n'),
    "release, 1e999": (["check-release"], "r.jsonl", '{"metric": 1e999}\n'),
    "release, 1e999 in CSV": (["check-release"], "r.csv", "metric\n1e999\n"),
    "release, half a character": (["check-release"], "r.jsonl", '{"activity": "\\ud800"}\n'),
    "release, field of 200 kB": (["check-release"], "r.csv", f"activity\n{'x' * 200_000}\n"),
    "release, deep page": (
        ["check-release"],
        "r.html",
        f'<script type="application/json" id="data">{{"rows":{DEEP}</script>',
    ),
}


@pytest.fixture(autouse=True)
def no_hanging() -> Iterator[None]:
    """A pipe that nobody writes to would hang for ever: this test fails instead."""

    def give_up(*_: Any) -> None:
        raise AssertionError("the command hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def one_sentence(answer: Answer) -> None:
    assert answer.code == 2, answer
    assert answer.out == ""
    assert answer.err.startswith("isuit: ")
    assert answer.err.count("\n") == 1
    assert len(answer.err) < 1000
    assert "defect of the program" not in answer.err
    for value in (RIDER, "9999", "xxxx", "[[[[", "ud800"):
        assert value not in answer.err


@pytest.mark.parametrize("name", CASES)
def test_one_sentence(isuit: Callable[..., Answer], tmp_path: Path, name: str) -> None:
    command, file, content = CASES[name]
    (tmp_path / "good.csv").write_text(HEADER + "".join(f"{RIDER},{n},{n % 2}\n" for n in range(50)))
    (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    one_sentence(isuit(*command, file))
    assert not (tmp_path / "isuit-store").exists()


READS = [
    ["hash"],
    ["init", "--policy"],
    ["fit", "--cohort"],
    ["fit", "--cohort", "good.csv", "--anchor"],
    ["fit", "--cohort", "good.csv", "--sites"],
    ["check-release"],
    ["delete-rider", "--from-file"],
]
ENDINGS = ("csv", "parquet", "json", "yaml", "jsonl", "geojson", "html", "arrow")


@pytest.mark.parametrize("command", READS, ids=" ".join)
def test_only_regular_files_are_read(isuit: Callable[..., Answer], tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "good.csv").write_text(f"{HEADER}{RIDER},1,1\n")
    for ending in ENDINGS:
        pipe, device = tmp_path / f"pipe.{ending}", tmp_path / f"zero.{ending}"
        os.mkfifo(pipe)
        device.symlink_to("/dev/zero")
        for path in (pipe, device):
            one_sentence(isuit(*command, path))


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_a_column_whose_name_is_no_text(isuit: Callable[..., Answer], tmp_path: Path, ending: str) -> None:
    table, path = pa.table({"rider": [RIDER], "metric": [1.0], "outcome": [1], "zzzz": [1]}), tmp_path / f"bad.{ending}"
    if ending == "parquet":
        pq.write_table(table, path, store_schema=False)
    else:
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    path.write_bytes(path.read_bytes().replace(b"zzzz", b"z\xac\xffz"))
    one_sentence(isuit("hash", path))


@pytest.mark.parametrize("name", ["manifest.json", "fit.json", "atlas.csv", "log.jsonl", "cohort.tsv"])
def test_a_bundle_of_pipes_and_devices(isuit: Callable[..., Answer], made: Path, tmp_path: Path, name: str) -> None:
    for target in ("pipe", "/dev/zero"):
        folder = Path(shutil.copytree(made, tmp_path / f"bundle-{Path(target).name}"))
        (folder / name).unlink()
        os.mkfifo(folder / name) if target == "pipe" else (folder / name).symlink_to(target)
        one_sentence(isuit("rederive", "--bundle", folder))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that the program made; read only."""
    folder = tmp_path_factory.mktemp("made")
    rows = [
        (RIDER if r == 0 else f"r{r}", (7 * r + 3 * n) % 31 / 3, int((r + n) % 3 == 0))
        for r in range(20)
        for n in range(12)
    ]
    (folder / "c.csv").write_text(HEADER + "".join(f"{rider},{x},{y}\n" for rider, x, y in rows))

    def run(*arguments: str) -> str:
        return subprocess.run([ISUIT, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout

    fit_id = json.loads(run("fit", "--cohort", "c.csv", "--json"))["fit_id"]
    run("bundle", fit_id, "--out", "bundle", "--with-cohort")
    return folder / "bundle"


TAMPERED: dict[str, Callable[[list[str]], list[str]]] = {
    "two fields": lambda lines: [*lines[:3], f"{RIDER}\tx", *lines[4:]],
    "bad bits": lambda lines: [*lines[:3], f"{RIDER}\t\t\t{'zz' * 8}\t1", *lines[4:]],
    "few bits": lambda lines: [*lines[:3], f"{RIDER}\t\t\tff\t1", *lines[4:]],
    "a word as outcome": lambda lines: [*lines[:3], f"{RIDER}\t\t\t{'0' * 16}\t{RIDER}", *lines[4:]],
    "no rows": lambda lines: [*lines[:3], ""],
    "no header": lambda lines: lines[3:],
    "nothing": lambda lines: [],
    "not UTF-8": lambda lines: [*lines[:3], f"\udcff\udcfe\t\t\t{'0' * 16}\t1", *lines[4:]],
    "no number": lambda lines: [*lines[:3], f"{RIDER}\t\t\t7ff8000000000000\t1", *lines[4:]],
    "another cohort": lambda lines: [*lines[:-2], ""],
}


def resealed(folder: Path) -> None:
    """The manifest agrees again: a forger can do that."""
    import hashlib

    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"] = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in manifest["files"]}
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("name", TAMPERED)
def test_a_bundle_whose_cohort_is_none(isuit: Callable[..., Answer], made: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "bundle"))
    lines = (folder / "cohort.tsv").read_text().split("\n")
    (folder / "cohort.tsv").write_bytes("\n".join(TAMPERED[name](lines)).encode("utf-8", "surrogateescape"))
    resealed(folder)
    one_sentence(isuit("rederive", "--bundle", folder))


@pytest.mark.parametrize("name", ["manifest.json", "fit.json", "log.jsonl", "atlas.csv"])
@pytest.mark.parametrize(
    "content", [DEEP, f'{{"files": {LONG}}}', "{}", "[]", "null", "", "NaN", '"x"', f"{RIDER}\n{RIDER}"]
)
def test_a_bundle_whose_documents_are_none(
    isuit: Callable[..., Answer], made: Path, tmp_path: Path, name: str, content: str
) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "bundle"))
    (folder / name).write_text(content)
    if name != "manifest.json":
        resealed(folder)
    one_sentence(isuit("rederive", "--bundle", folder))


def test_a_manifest_that_leaves_its_directory(isuit: Callable[..., Answer], made: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "bundle"))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["../../../etc/passwd"] = "x"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    one_sentence(isuit("rederive", "--bundle", folder))


def limited(*command: str | Path, memory: int = 3 << 30) -> subprocess.CompletedProcess[str]:
    """The program in a process that may not take more than this much address space, nor two minutes."""
    return subprocess.run(
        [ISUIT, *command],
        capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),
    )  # fmt: skip


@pytest.mark.long
def test_bombs_are_refused_before_they_go_off(tmp_path: Path) -> None:
    one = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * 1_000_000]))
    pq.write_table(pa.table({"h3": one}), tmp_path / "dictionary.parquet", compression="zstd")
    pq.write_table(pa.table({"h3": pa.nulls(50_000_000, pa.int8())}), tmp_path / "rows.parquet", compression="zstd")
    zeros = pa.table({"h3": pa.array([bytes(1 << 29)])})
    pq.write_table(zeros, tmp_path / "zeros.parquet", compression="zstd", use_dictionary=False)
    (tmp_path / "values.geojson").write_bytes(b"[" + b"[]," * 6_000_000 + b"[]]")
    (tmp_path / "lines.jsonl").write_bytes(b"{}\n" * 1_100_000)
    (tmp_path / "header.csv.gz").write_bytes(gzip.compress(bytes(1 << 29), 1))
    with (tmp_path / "large.jsonl").open("wb") as file:
        file.truncate(1 << 40)  # a hole: no disk is used
    for name in ("dictionary.parquet", "rows.parquet", "zeros.parquet", "values.geojson", "lines.jsonl", "large.jsonl"):
        assert (tmp_path / name).stat().st_size < (1 << 25) or name == "large.jsonl"
        done = limited("check-release", tmp_path / name)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), (name, done.stderr[-500:])
        assert "defect of the program" not in done.stderr, (name, done.stderr)
    done = limited("hash", tmp_path / "header.csv.gz")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr[-500:]


def test_what_nobody_foresaw_is_one_sentence_without_a_value(
    isuit: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, full_store: Path
) -> None:
    def broken(*_: Any) -> None:
        raise struct.error(f"{RIDER} is not what was expected")

    monkeypatch.setattr("isuit.service.history.fit_records", broken)
    answer = isuit("fits", "--store", full_store)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "defect of the program (error in isuit.service.history, line" in answer.err
    assert RIDER not in answer.err


def test_a_disk_that_is_full_anywhere_is_no_defect(
    isuit: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, full_store: Path
) -> None:
    """Numba keeps what it compiles beside the program: the first fit after an installation may find no room there."""

    def full(*_: Any) -> None:
        raise OSError(errno.EFBIG, "File too large", RIDER)

    monkeypatch.setattr("isuit.service.history.fit_records", full)
    answer = isuit("fits", "--store", full_store)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "a disk is full" in answer.err
    assert RIDER not in answer.err
