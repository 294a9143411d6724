"""Cohorts behind https:// and s3://, from servers on this machine that demand what real ones do.

The extension that reads them is a package for DuckDB 1.5: `make test-oldest-duckdb` runs this file there.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isuit
from isuit.ingest.databases import _load_httpfs

KEY, SECRET, REGION = "AKIAEXAMPLE", "not-a-secret", "eu-central-1"


@pytest.fixture(scope="module", autouse=True)
def httpfs() -> None:
    if not _load_httpfs(duckdb.connect(config={"autoinstall_known_extensions": "false"})):
        pytest.skip("no httpfs for this DuckDB: `make test-oldest-duckdb` runs this on 1.5, which has it as a package")


@pytest.fixture
def table(cohort_table: Callable[..., pa.Table]) -> pa.Table:
    return cohort_table(3, riders=12, outcomes=8, sites=("north", "south"))


@pytest.fixture
def folder(table: pa.Table, tmp_path: Path) -> Path:
    place = tmp_path / "bucket"
    place.mkdir()
    pq.write_table(table, place / "cohort 1.parquet")
    return place


class Files(BaseHTTPRequestHandler):
    """Files of a folder by GET and HEAD, whole or a range."""

    protocol_version = "HTTP/1.1"
    folder: Path

    def answer(self, key: str) -> None:
        file = self.folder / key
        if not file.is_file():
            self.send_error(404)
            return
        content, wanted = file.read_bytes(), self.headers.get("Range")
        first, last = 0, len(content) - 1
        if wanted:
            asked = wanted.removeprefix("bytes=").split("-")
            first, last = int(asked[0]), min(int(asked[1] or last), last)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{hashlib.md5(content).hexdigest()}"')
        if wanted:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[first : last + 1])

    def do_GET(self) -> None:
        self.answer(self.path[1:].replace("%20", " "))

    do_HEAD = do_GET  # noqa: N815  # the names are http.server's

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """A client that refuses a certificate ends the connection, which is no matter of the server's."""

    def handle_error(self, *_: object) -> None:
        pass


class Objects(Files):
    """What a store in S3's manner does of it: whoever does not sign with the key is refused (AWS Signature, 4)."""

    def do_GET(self) -> None:
        if self.signature() is None:
            self.send_error(403)
            return
        bucket, _, key = urlsplit(self.path).path[1:].partition("/")
        self.answer(key.replace("%20", " ") if bucket == "surf" else "")

    do_HEAD = do_GET  # noqa: N815  # the names are http.server's

    def signature(self) -> str | None:
        """The signature of the request if it is the right one, which is computed from the secret."""
        given = dict(
            part.strip().split("=", 1) for part in self.headers.get("Authorization", "")[16:].split(",") if "=" in part
        )
        if not given.get("Credential", "").startswith(f"{KEY}/"):
            return None
        _, day, region, service, end = given["Credential"].split("/")
        address = urlsplit(self.path)
        query = "&".join(f"{quote(a, safe='')}={quote(b, safe='')}" for a, b in sorted(parse_qsl(address.query)))
        names = given["SignedHeaders"].split(";")
        headers = "".join(f"{name}:{' '.join((self.headers[name] or '').split())}\n" for name in names)
        payload = self.headers["x-amz-content-sha256"]
        request = "\n".join([self.command, address.path, query, headers, given["SignedHeaders"], payload])
        scope = f"{day}/{region}/{service}/{end}"
        digest = hashlib.sha256(request.encode()).hexdigest()
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope, digest])
        key = f"AWS4{SECRET}".encode()
        for part in (day, region, service, end):
            key = hmac.digest(key, part.encode(), "sha256")
        right = hmac.new(key, text.encode(), "sha256").hexdigest()
        return right if (region, right) == (REGION, given["Signature"]) else None


@pytest.fixture
def serve(folder: Path) -> Iterator[Callable[..., int]]:
    """Start a server and give its port; `certificate` and its key make it one of https."""
    running: list[ThreadingHTTPServer] = []

    def start(handler: type[Files], certificate: tuple[Path, Path] | None = None) -> int:
        server = Server(("127.0.0.1", 0), type("Here", (handler,), {"folder": folder}))
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        return server.server_port

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def hashed(address: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`isuit hash` in a process of its own: DuckDB reads the environment when it starts."""
    return subprocess.run(
        [sys.executable, "-m", "isuit", "hash", address],
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_https_with_a_certificate_that_is_trusted(
    serve: Callable[..., int], table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*made, "-keyout", key, "-out", certificate, *names], check=True, capture_output=True)
    address = f"https://localhost:{serve(Files, (certificate, key))}/cohort%201.parquet"
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(isuit.IsuitError, match="certificate"):  # nobody vouches for it
        isuit.hash(address)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert isuit.hash(address).cohort_hash == isuit.hash(table).cohort_hash
    with pytest.raises(isuit.IsuitError, match="cannot be fetched"):
        isuit.hash(address.replace("1.parquet", "2.parquet"))


def test_s3_with_credentials_of_the_environment(serve: Callable[..., int], table: pa.Table, tmp_path: Path) -> None:
    """The bucket is the first part of the path, as DuckDB is told by a secret that it keeps for its user."""
    port, home = serve(Objects), tmp_path / "home"
    home.mkdir()

    def keep(secret: str) -> None:
        sql = (
            f"CREATE OR REPLACE PERSISTENT SECRET surf (TYPE s3, KEY_ID '{KEY}', SECRET '{secret}', REGION '{REGION}', "
            f"ENDPOINT '127.0.0.1:{port}', URL_STYLE 'path', USE_SSL false)"
        )
        script = (
            "import duckdb\nfrom isuit.ingest.databases import _load_httpfs\n"
            f"connection = duckdb.connect()\nassert _load_httpfs(connection)\nconnection.execute({sql!r})"
        )
        subprocess.run([sys.executable, "-c", script], env={**os.environ, "HOME": str(home)}, check=True)

    keep(SECRET)
    found = hashed("s3://surf/cohort 1.parquet", HOME=str(home))
    assert (found.returncode, found.stderr.count("\n")) == (0, 1), found.stderr
    assert found.stdout.strip() == isuit.hash(table).cohort_hash
    missing = hashed("s3://surf/cohort 2.parquet", HOME=str(home))
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    keep("another")
    refused = hashed("s3://surf/cohort 1.parquet", HOME=str(home))
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "credentials" in refused.stderr
    assert "another" not in refused.stderr + refused.stdout
