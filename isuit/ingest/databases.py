"""Cohorts that are not files here: what a query of a PostgreSQL database gives, and files behind https:// or s3://.

PostgreSQL is read through ADBC, which streams Arrow (the extra `isuit[postgres]`); files elsewhere through DuckDB's
extension httpfs, where it is installed: nothing is downloaded that was not asked for. An address may hold a password,
and an error of a database the values of a row: neither is ever repeated.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from isuit.errors import InputError

POSTGRES = ("postgres", "postgresql")
REMOTE = ("http", "https", "s3", "gs", "gcs", "r2")
# Whoever fits only reads; a query that writes is the database's to refuse.
READ_ONLY = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"


@dataclass(frozen=True)
class Query:
    """A table that a database gives: its address and the SQL. Neither is shown, since the one may hold a password.

    >>> Query("postgresql://localhost/surf", "SELECT rider, metric, outcome FROM outings")
    <query of a postgresql database>
    """

    url: str = field(repr=False)
    sql: str = field(repr=False)

    def __post_init__(self) -> None:
        if scheme_of(self.url) not in POSTGRES:
            raise InputError("--query is asked of a database: give its address as postgresql://user@host/database")
        if not self.sql.strip():
            raise InputError("--query is empty: give SQL that selects rider, metric and outcome")

    def __repr__(self) -> str:
        return f"<query of a {scheme_of(self.url)} database>"


def scheme_of(source: object) -> str | None:
    """The scheme of an address, in lower case; None for a path."""
    if not isinstance(source, str) or "://" not in source:
        return None
    return source.partition("://")[0].lower()


@contextmanager
def rows_of(query: Query) -> Iterator[Any]:
    """What the query gives, as a stream of Arrow batches."""
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise InputError(
            "a PostgreSQL database is read through ADBC, which is not installed: run pip install 'isuit[postgres]'"
        ) from None
    try:
        connection = dbapi.connect(query.url)
    except dbapi.Error:
        raise InputError(
            "the database cannot be reached: check its address, user and password, as psql would take them"
        ) from None
    try:
        with connection, connection.cursor() as cursor:
            try:
                cursor.execute(READ_ONLY)
                cursor.execute(query.sql)
                reader = cursor.fetch_record_batch()
            except dbapi.Error as error:
                raise InputError(
                    f"the database refused the query (SQLSTATE {error.sqlstate or 'unknown'}): try it in psql, where "
                    "it says more"
                ) from None
            yield reader
    except dbapi.Error:  # while its rows were read
        raise InputError("the database broke off while the query's rows were read; run it again") from None


@contextmanager
def fetched(address: str, folder: Path) -> Iterator[Path]:
    """A file behind an address as a file here, for as long as it is read."""
    import duckdb

    scheme = scheme_of(address)
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    place = folder / (Path(urlsplit(address).path).name or "download")
    try:
        if not _load_httpfs(connection):
            raise InputError(
                f"{scheme}:// is read through DuckDB's extension httpfs, which is not installed: run INSTALL httpfs "
                "once in DuckDB, or pip install duckdb-extension-httpfs in DuckDB's version, or fetch the file yourself"
            )
        try:
            found = connection.execute("SELECT content FROM read_blob(?)", [address]).fetchall()
        except duckdb.Error:
            raise InputError(
                f"the file behind {scheme}:// cannot be fetched: check the address, and the {_needs(scheme)}"
            ) from None
        if len(found) != 1:
            raise InputError(f"the address behind {scheme}:// names {len(found)} files: name one at a time")
        place.write_bytes(found[0][0])
    finally:
        connection.close()
    yield place


def _load_httpfs(connection: Any) -> bool:
    """Load the extension as DuckDB installed it, or from the package of the same version."""
    import duckdb

    package = find_spec("duckdb_extension_httpfs")
    (version,) = connection.execute("SELECT version()").fetchone()
    shipped = [] if package is None else list(package.submodule_search_locations or [])
    for place in ("httpfs", *(f"{folder}/extensions/{version}/httpfs.duckdb_extension" for folder in shipped)):
        try:
            connection.load_extension(place)
        except duckdb.Error:
            continue
        if certificates := os.environ.get("SSL_CERT_FILE"):  # of an authority that this machine trusts besides
            connection.execute("SET enable_server_cert_verification = true")
            connection.execute("SET ca_cert_file = $1", [certificates])
        return True
    return False


def _needs(scheme: str | None) -> str:
    if scheme in ("http", "https"):
        return "server's certificate (SSL_CERT_FILE names an authority of your own)"
    return "credentials (AWS_ACCESS_KEY_ID and its like, or a persistent secret of DuckDB's)"
