"""A release as a folder of static files: whole, served by a plain web server, read by others' programs by address."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import urlopen

import duckdb
import pandas as pd
import pytest
from test_release_page import released

from isuit.release.checking import check_file
from isuit.release.files import files
from isuit.release.timeline import Published


class Quiet(SimpleHTTPRequestHandler):
    """The standard library's web server, without its log."""

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases; the later one has one row less and one that changed."""
    lines, about = released()
    earlier = [json.loads(line) | {"release": "2024-10-01"} for line in lines]
    earlier[1]["difficulty"] = 0.5
    before = Published(earlier, json.loads(about) | {"release": "2024-10-01"})
    out = tmp_path_factory.mktemp("served") / "site"
    for path, content in files(out, "site", lines, about, [before]).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return out


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_folder_is_whole(folder: Path) -> None:
    sums = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert sums.keys() == there - {"SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    lines, about = released()
    assert (folder / "2025-01-01" / "atlas.jsonl").read_text() == "".join(f"{line}\n" for line in [*lines, about])
    for name in ("atlas.html", "atlas.jsonl", "atlas.parquet"):
        assert check_file(folder / "2025-01-01" / name).ok


def test_the_same_releases_give_the_same_folder(folder: Path) -> None:
    lines, about = released()
    again = files(folder, "site", lines, about)
    assert again == files(folder, "site", lines, about)


def test_the_collection_is_stac(folder: Path) -> None:
    import pystac
    from pystac.errors import STACValidationError
    from pystac.validation import validate_dict

    collection = json.loads((folder / "collection.json").read_text())
    read = pystac.Collection.from_dict(collection)
    assert read.validate()
    assert [folder / asset.href for asset in read.assets.values() if not (folder / asset.href).is_file()] == []
    west, south, east, north = read.extent.spatial.bboxes[0]
    assert west < 12.443447 < east
    assert south < 37.873651 < north
    with pytest.raises(STACValidationError):
        validate_dict(collection | {"license": None})


def test_a_plain_web_server_is_enough(folder: Path, address: str) -> None:
    collection = json.load(urlopen(f"{address}/collection.json"))
    by_address = {key: f"{address}/{asset['href'][2:]}" for key, asset in collection["assets"].items()}
    lines, _ = released()
    rows = pd.read_parquet(by_address["2025-01-01-parquet"])
    assert rows["difficulty"].tolist() == [json.loads(line)["difficulty"] for line in lines]
    read = pd.read_json(by_address["2025-01-01-jsonl"], lines=True)
    assert len(read) == len(lines) + 1  # the last is the metadata
    index = urlopen(f"{address}/").read().decode()
    assert 'href="2024-10-01/atlas.html"' in index
    assert "0 new, 1 changed, 0 withdrawn" in index


def with_httpfs() -> duckdb.DuckDBPyConnection:
    """DuckDB with its extension for HTTP: from a package of that version, or as DuckDB installs it."""
    connection = duckdb.connect()
    package = find_spec("duckdb_extension_httpfs")
    shipped = [] if package is None else (package.submodule_search_locations or [])
    (version,) = connection.execute("SELECT version()").fetchall()[0]
    here = [f"{place}/extensions/{version}/httpfs.duckdb_extension" for place in shipped]
    try:
        if here and Path(here[0]).exists():
            connection.load_extension(here[0])
        else:
            connection.execute("INSTALL httpfs; LOAD httpfs")
    except duckdb.Error:
        pytest.skip("no httpfs for this DuckDB: `make test-oldest-duckdb` runs this on 1.5, which has it as a package")
    return connection


def test_duckdb_reads_it_by_address(address: str) -> None:
    query = f"SELECT count(*), min(h3) FROM read_parquet('{address}/2025-01-01/atlas.parquet')"
    assert with_httpfs().execute(query).fetchone() == (3, "87386d2eaffffff")
    rows = f"SELECT count(difficulty) FROM read_json('{address}/2025-01-01/atlas.jsonl')"
    assert with_httpfs().execute(rows).fetchone() == (3,)  # the last line, the metadata, has none
