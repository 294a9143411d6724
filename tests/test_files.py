"""A file that a command writes is there whole or not at all, whoever writes it."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from isuit import tables
from isuit.errors import InputError
from isuit.files import PRIVATE, PUBLIC, CannotWrite, whole, whole_directory, write_whole
from isuit.pages import write_page
from isuit.service import pictures
from isuit.service.history import curve_table, fits, show

ROOT = Path(__file__).parents[1]


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_what_is_written_becomes_the_target(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    write_whole(target, [b"one ", memoryview(b"two")])
    assert target.read_bytes() == b"one two"
    write_whole(target, [b"three"])
    assert target.read_bytes() == b"three"
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old")

    def interrupted() -> Iterator[bytes]:
        yield b"half of the n"
        assert target.read_text() == "old"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(target, interrupted())
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file.txt", "old")]


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("old")
    script = (
        "import os, signal, sys; from pathlib import Path; from isuit.files import write_whole\n"
        "def pieces():\n    yield b'new' * 100_000\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_whole(Path('file.txt'), pieces())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "file.txt").read_text() == "old"


def test_the_target_ends_as_permitted_as_it_should(tmp_path: Path) -> None:
    plain, kept, private, public = (tmp_path / name for name in ("plain", "kept", "private", "public"))
    kept.touch()
    kept.chmod(0o640)
    private.touch()
    private.chmod(0o666)
    before = os.umask(0o027)
    try:
        with whole(private, PRIVATE) as part:
            assert mode(part) == PRIVATE  # from the start
        write_whole(plain, [b""])
        write_whole(kept, [b""])
        write_whole(public, [b""], PUBLIC)
    finally:
        os.umask(before)
    assert [mode(path) for path in (plain, kept, private, public)] == [0o640, 0o640, 0o600, 0o644]


def test_a_link_and_a_device_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "link", [b"through"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"through"
    write_whole(Path("/dev/null"), [b"gone"])
    assert not Path("/dev/null").is_file()


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match=r"absent/file cannot be written \(No such file or directory\); name another"):
        write_whole(tmp_path / "absent" / "file", [b""])
    with pytest.raises(CannotWrite, match="No space left on device"):
        write_whole(Path("/dev/full"), [b"x" * 100_000])


def test_a_directory_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "bundle"

    def half() -> None:
        with whole_directory(target, 0o700) as part:
            (part / "one").write_text("1")
            raise ValueError("half")

    with pytest.raises(ValueError, match="half"):
        half()
    assert list((tmp_path / "deep").iterdir()) == []
    with whole_directory(target, 0o700) as part:
        (part / "one").write_text("1")
        assert not target.exists()
    assert [path.name for path in target.iterdir()] == ["one"]
    assert mode(target) == 0o700
    with pytest.raises(InputError, match="not an empty directory"), whole_directory(target, 0o700):
        pass
    assert [path.name for path in target.parent.iterdir()] == ["bundle"]


def test_pages_tables_and_pictures_keep_the_old_file_when_they_fail(
    full_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full at the very end of each: what was there before is there still."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("isuit.files.os.fsync", full)
    shown = show(full_store, fits(full_store)[0].fit_id)
    writers = {
        "page.html": lambda path: write_page(path, "<p>new</p>"),
        "table.csv": lambda path: tables.write_table(pa.table({"a": [1]}), path),
        "picture.svg": lambda path: pictures.plot_fit(shown.fit, curve_table(shown), path, shown.cohort.outcomes),
    }
    for name, write in writers.items():
        (tmp_path / name).write_text("old")
        with pytest.raises(CannotWrite, match="No space left"):
            write(tmp_path / name)
        assert (tmp_path / name).read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(writers)


WRITERS = {
    "write_text", "write_bytes", "mkstemp", "mkdtemp", "NamedTemporaryFile", "output_stream", "OSFile", "ParquetWriter",
    "CSVWriter", "write_csv", "write_feather", "savefig",
}  # fmt: skip
# Where a file may be written by its name, and why.
OTHERWISE = {
    "isuit/files.py": "the one way itself",
    "isuit/audit/bundle.py": "inside a directory that appears whole",
    "isuit/store/paths.py": "the store's keys, under its lock",
    "isuit/ingest/reading.py": "a temporary file, which no user sees",
    "isuit/ingest/sorting.py": "temporary files, which no user sees",
    "isuit/ingest/databases.py": "a temporary file, which no user sees",
    "isuit/store/part_files.py": "under a random name, which nothing lists before it is whole",
    "isuit/release/files.py": "into memory",
    "isuit/experiment/report.py": "into the path that `whole` gives",
    "isuit/service/pictures.py": "into the path that `whole` gives",
    "isuit/tables.py": "into the path that `whole` gives",
    "isuit/service/releases.py": "into the path that `whole` gives",
    "schemas/__main__.py": "the repository's own files",
}


def written_by_hand(path: Path) -> list[str]:
    """Calls that write a file by its name."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        modes = [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        if name in WRITERS:
            found.append(name)
        elif name in ("open", "fdopen") and any(set(given) & set("wax+") and len(given) <= 3 for given in modes):
            found.append(f"{name} for writing")
    return found


def test_no_module_writes_files_in_a_way_of_its_own() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): calls
        for folder in ("isuit", "cli", "schemas")
        for path in (ROOT / folder).rglob("*.py")
        if (calls := written_by_hand(path))
    }
    unknown = {path: calls for path, calls in found.items() if path not in OTHERWISE}
    assert not unknown, f"these write files without isuit.files: {unknown}"
    assert set(found) == set(OTHERWISE), "a place that no longer writes is still excused"
