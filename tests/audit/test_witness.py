"""A witness signs what extends the last checkpoint of a log and nothing else; over files, and over HTTP."""

from __future__ import annotations

import base64
import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from isuit.audit.notes import LOG, Note, SigningKey, VerifierKey
from isuit.audit.witness import Witness
from isuit.errors import InputError
from isuit.service import heads, history, proving
from isuit.service.pseudonymising import pseudonymise
from isuit.service.witness_server import witness_server


class Operator:
    """A store that grows, and what its operator puts into the shared folder."""

    def __init__(self, store: Path, folder: Path, cohort_table: Callable[..., object]) -> None:
        self.store, self.folder, self._table = store, folder, cohort_table
        self.number = 0

    def grow(self) -> None:
        self.number += 1
        name = f"{self.store.name}-{self.number}"
        pq.write_table(self._table(self.number, riders=1, outcomes=1, tag=name), self.folder / "in.parquet")
        pseudonymise(self.store, [str(self.folder / "in.parquet")], self.folder / f"{name}.parquet")

    def proof(self, since: Path | None = None) -> Path:
        proving.prove(self.store, None, self.folder / "proof.json", since=since)
        return self.folder / "proof.json"

    def key(self) -> Path:
        path = self.folder / "log-key"
        path.write_text(heads.head(self.store).key)
        return path


@pytest.fixture
def operator(tmp_path: Path, cohort_table: Callable[..., object]) -> Operator:
    history.init(tmp_path / "store")
    return Operator(tmp_path / "store", tmp_path, cohort_table)


def test_a_witness_signs_what_extends_and_refuses_the_rest(operator: Operator, tmp_path: Path) -> None:
    state, signed = tmp_path / "witness", tmp_path / "signed"
    assert "does not follow" in str(proving.witness(state, operator.proof()).refused)
    first = proving.witness(state, operator.proof(), trusted_key=operator.key(), out=signed)
    key = VerifierKey.read(first.key)
    assert Note.read(signed.read_text()).cosigned_at(key)
    assert Note.read(signed.read_text()).signed_by(VerifierKey.read(heads.head(operator.store).key))
    shutil.copytree(operator.store, tmp_path / "fork")
    operator.grow()
    assert "does not extend" in str(proving.witness(state, operator.proof()).refused)  # no proof of consistency
    second = proving.witness(state, operator.proof(since=signed), out=signed)
    assert (second.refused, second.size) == (None, heads.head(operator.store).log_length)
    # The other branch, from the checkpoint that both have, and from the one that only the first has.
    fork = Operator(tmp_path / "fork", tmp_path, operator._table)
    fork.number = 50
    fork.grow()
    (tmp_path / "old").write_text(str(first.checkpoint))
    assert "does not extend" in str(proving.witness(state, fork.proof(since=tmp_path / "old")).refused)
    fork.grow()
    assert "cut, rewritten or forked" in str(proving.witness(state, fork.proof(since=signed)).refused)
    operator.grow()
    assert proving.witness(state, operator.proof(since=signed)).refused is None


def test_a_witness_follows_a_rotation_that_the_old_key_signed(operator: Operator, tmp_path: Path) -> None:
    state, signed = tmp_path / "witness", tmp_path / "signed"
    proving.witness(state, operator.proof(), trusted_key=operator.key(), out=signed)
    heads.rotate_key(operator.store)
    assert proving.witness(state, operator.proof(since=signed), out=signed).refused is None
    operator.grow()
    assert proving.witness(state, operator.proof(since=signed), out=signed).refused is None


@pytest.fixture
def address(operator: Operator, tmp_path: Path) -> Iterator[str]:
    proving.witness(tmp_path / "witness", trusted_key=operator.key())
    server = witness_server(tmp_path / "witness", 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/add-checkpoint"
    server.shutdown()
    server.server_close()
    thread.join()


def post(address: str, body: bytes) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, body), timeout=20) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def request(proof: Path) -> bytes:
    given = proving.read_proof(proof)
    older = given.consistency
    hashes = [base64.b64encode(bytes.fromhex(node)).decode() for node in older.path] if older else []
    head = "\n".join([f"old {older.old_size if older else 0}", *hashes])
    return f"{head}\n\n{given.checkpoint}".encode()


def test_over_http_as_c2sp_has_it(operator: Operator, address: str, tmp_path: Path) -> None:
    key = VerifierKey.read(proving.witness(tmp_path / "witness").key)
    first = request(operator.proof())
    status, _, line = post(address, first)
    assert status == 200
    note = proving.read_proof(tmp_path / "proof.json").checkpoint
    (tmp_path / "signed").write_text(note + line)
    assert Note.read(note + line).cosigned_at(key)
    size = heads.head(operator.store).log_length
    operator.grow()
    assert post(address, request(operator.proof())) == (409, "text/x.tlog.size", f"{size}\n")
    good = request(operator.proof(since=tmp_path / "signed"))
    lines = good.split(b"\n")
    swapped = b"\n".join([lines[0], base64.b64encode(b"x" * 32), *lines[2:]])
    assert post(address, swapped)[0] == 422
    assert post(address, good.replace(b"\n\nisuit/", b"\n\nisuit/other"))[0] == 404
    assert post(address, good[:-20] + b"AAAAAAAAAAAAAAAAAA=\n")[0] in (400, 403)
    for nonsense in (
        b"",
        b"old x\n\n",
        b"\xff\xfe",
        good[:-1],
        b"old 1\n" * 100 + b"\n" + good,
        b"old 99\n\n" + note.encode(),
    ):
        assert post(address, nonsense)[0] == 400
    assert post(address.replace("add-checkpoint", "else"), good)[0] == 404
    assert post(address, good)[0] == 200


def test_the_key_of_a_witness_is_not_that_of_a_log(tmp_path: Path) -> None:
    witness = Witness(tmp_path / "witness", lambda: 1_700_000_000.0)
    with pytest.raises(InputError, match="the key of a witness"):
        witness.trust(witness.key().verifier)
    witness.trust(SigningKey("isuit/a", LOG, b"1" * 32).verifier)
