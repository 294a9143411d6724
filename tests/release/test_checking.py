"""What a check of a release's file says where the file is none."""

from pathlib import Path

from isuit.release.checking import check_file


def test_a_damaged_file_is_trusted_by_nobody(tmp_path: Path) -> None:
    path = tmp_path / "atlas.jsonl"
    path.write_text('{"metric": 1')
    found = check_file(path)
    assert (found.rows, found.ok, found.trusted, found.digest) == (0, False, False, None)
    assert "damaged" in found.problems[0]
