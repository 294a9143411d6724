"""The canonical form: vectors, two independent implementations, and the specification's own words."""

import hashlib
import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cohort_tables import csv_text, hash_of, metrics_of, table
from golden import make_vectors
from independent import canonical as standard_library
from pyarrow import feather

from isuit import canonical
from isuit.errors import InputError
from isuit.ingest import read_cohort
from isuit.ingest.canonical_file import read_canonical

HERE = Path(__file__).parent
SPECIFICATION = HERE.parent / "docs" / "canonical-form.md"
C1_VECTORS = json.loads((HERE / "golden" / "vectors.json").read_text(encoding="utf-8"))
C2_VECTORS = json.loads((HERE / "golden" / "vectors-c2.json").read_text(encoding="utf-8"))
VECTORS = [*C1_VECTORS, *C2_VECTORS]
by_what_it_shows = pytest.mark.parametrize("vector", VECTORS, ids=[vector["shows"] for vector in VECTORS])


def test_vectors_are_what_their_program_makes() -> None:
    assert (HERE / "golden" / "vectors.json").read_text(encoding="utf-8") == make_vectors.text(make_vectors.VECTORS)
    of_several = (HERE / "golden" / "vectors-c2.json").read_text(encoding="utf-8")
    assert of_several == make_vectors.text(make_vectors.C2_VECTORS)


@pytest.mark.parametrize(("vectors", "version"), [(C1_VECTORS, "isuit-c1"), (C2_VECTORS, "isuit-c2")])
def test_the_specification_counts_the_vectors_and_shows_the_first_hash(vectors: list, version: str) -> None:
    specification = SPECIFICATION.read_text(encoding="utf-8")
    assert f"holds {len(vectors)}, each" in specification
    example = next(vector for vector in vectors if vector["shows"] == "the example of the specification")
    shown = re.search(rf"^    ({version}:[0-9a-f]{{64}})$", specification, re.MULTILINE)
    assert shown
    assert shown[1] == example["cohort_hash"]
    lines = "".join(f"    {line}\n" for line in example["canonical"].replace("\t", "→").splitlines())
    assert lines in specification


@by_what_it_shows
def test_a_vector_from_an_arrow_table(vector: dict) -> None:
    with read_cohort(table(vector["outcomes"]), metrics=metrics_of(vector["outcomes"])) as cohort:
        assert cohort.cohort_hash == vector["cohort_hash"]
        content = b"".join(cohort.canonical_bytes())
    assert content.decode() == vector.get("canonical", content.decode())
    assert content[:8].decode() + ":" + hashlib.sha256(content).hexdigest() == vector["cohort_hash"]


@by_what_it_shows
def test_a_vector_from_files(vector: dict, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(csv_text(vector["outcomes"]), encoding="utf-8")
    pq.write_table(table(vector["outcomes"]), tmp_path / "c.parquet")
    feather.write_feather(table(vector["outcomes"]), tmp_path / "c.feather", compression="zstd")
    for name in ("c.csv", "c.parquet", "c.feather"):
        assert hash_of(tmp_path / name, metrics=metrics_of(vector["outcomes"])) == vector["cohort_hash"], name


@by_what_it_shows
def test_a_vector_sorted_on_disk(vector: dict) -> None:
    metrics = metrics_of(vector["outcomes"])
    assert hash_of(table(vector["outcomes"]), metrics=metrics, in_memory_rows=0) == vector["cohort_hash"]


@by_what_it_shows
def test_a_vector_read_back_from_its_canonical_form(vector: dict, tmp_path: Path) -> None:
    with read_cohort(table(vector["outcomes"]), metrics=metrics_of(vector["outcomes"])) as cohort:
        (tmp_path / "c.tsv").write_bytes(b"".join(cohort.canonical_bytes()))
    stream, metrics = read_canonical(tmp_path / "c.tsv")
    assert hash_of(stream, metrics=metrics) == vector["cohort_hash"]


def test_the_standard_library_agrees_on_every_vector() -> None:
    for vector in VECTORS:
        assert standard_library.cohort_hash(vector["outcomes"]) == vector["cohort_hash"], vector["shows"]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_javascript_agrees_on_every_vector() -> None:
    cohorts = "".join(json.dumps(vector["outcomes"]) + "\n" for vector in VECTORS)
    program = HERE / "independent" / "canonical.mjs"
    answer = subprocess.run(["node", program], input=cohorts, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == [vector["cohort_hash"] for vector in VECTORS]


def test_a_riders_lines_are_one_slice() -> None:
    outcomes = [["a", "s", None, "1", 0], ["b", "s", None, "2", 1], ["b", None, None, "3", 1]]
    with read_cohort(table(outcomes)) as cohort:
        (batch,) = cohort.batches()
    for part in (batch, batch.slice(1)):  # also of a batch that begins inside its buffers
        content, offsets = canonical.line_bytes(canonical.lines(part))
        lines = [bytes(content[start:end]) for start, end in itertools.pairwise(offsets)]
        assert (
            lines
            == [standard_library.line(outcome) for outcome in [outcomes[0], outcomes[2], outcomes[1]]][-len(part) :]
        )


def test_lines_write_zero_without_its_sign() -> None:
    row = {"rider": "r", "site": None, "observed_at": None, "metric": -0.0, "outcome": 1}
    batch = pa.RecordBatch.from_pylist([row], schema=canonical.SCHEMA)
    assert canonical.lines(batch).to_pylist() == [b"r\t\t\t0000000000000000\t1\n"]


def test_no_lines_of_no_outcomes() -> None:
    batch = pa.RecordBatch.from_pylist([], schema=canonical.SCHEMA)
    content, offsets = canonical.line_bytes(canonical.lines(batch))
    assert (bytes(content), offsets.tolist()) == (b"", [0])


def test_days_of_a_sparse_span_are_written_as_those_of_a_dense_one() -> None:
    outcomes = [["a", None, f"{year:04d}-03-01T00:00:00Z", "1", 0] for year in (1, 1582, 1900, 2000, 9999)]
    assert hash_of(table(outcomes)) == standard_library.cohort_hash(outcomes)


@pytest.mark.parametrize("text", ["isuit-c1:0123abcd", "isuit-c2:0123abcd", "0123ABCD", "0123abcd" * 8])
def test_a_prefix_of_a_hash(text: str) -> None:
    assert canonical.prefix_digits(text) == text.rpartition(":")[2].lower()


@pytest.mark.parametrize("text", ["", "0123abc", "isuit-c3:0123abcd", "0123abcg", "0123abcd" * 8 + "0", "isuit-c1:"])
def test_what_is_no_prefix_of_a_hash(text: str) -> None:
    with pytest.raises(InputError, match="64 hex digits"):
        canonical.prefix_digits(text)
