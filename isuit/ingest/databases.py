"""Cohorts that are not files here: what a query of a PostgreSQL database gives, and files behind https:// or s3://.

PostgreSQL is read through ADBC, which streams Arrow (the extra `isuit[postgres]`); files elsewhere through DuckDB's
extension httpfs, where it is installed: nothing is downloaded that was not asked for. An address may hold a password,
and an error of a database the values of a row: neither is ever repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
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
        try:
            connection.execute("LOAD httpfs")
        except duckdb.Error:
            raise InputError(
                f"{scheme}:// is read through DuckDB's extension httpfs, which is not installed: run INSTALL httpfs "
                "once in DuckDB, or fetch the file yourself and name it"
            ) from None
        try:
            found = connection.execute("SELECT content FROM read_blob(?)", [address]).fetchall()
        except duckdb.Error:
            raise InputError(
                f"the file behind {scheme}:// cannot be fetched: check the address, and the credentials that DuckDB "
                "takes from the environment"
            ) from None
        if len(found) != 1:
            raise InputError(f"the address behind {scheme}:// names {len(found)} files: name one at a time")
        place.write_bytes(found[0][0])
    finally:
        connection.close()
    yield place
