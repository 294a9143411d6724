"""Random tokens instead of IDs, and whether IDs need them.

A cohort's plain hash is an oracle for someone who holds all other rows and can guess an ID: they try outcomes until the
hash fits. A token of 128 random bits cannot be guessed. The map from ID to token is kept in `personal`, so that a
person can be found, and erased, by the ID they know; erasing destroys their entry.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence

import duckdb
import pyarrow as pa

from isuit.erasure.personal import searching
from isuit.store.query import insert, rows

TOKEN_BYTES = 16
PSEUDONYMS = "personal.pseudonyms"


def tokens_for(connection: duckdb.DuckDBPyConnection, riders: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """A token for every rider, and the riders whose token is new. What already is a token of the store stays."""
    with searching(connection, riders):
        known: dict[str, str] = dict(
            rows(connection, f"SELECT rider, token FROM {PSEUDONYMS} WHERE rider IN (SELECT name FROM persons)")
        )
        query = f"SELECT token FROM {PSEUDONYMS} WHERE token IN (SELECT name FROM persons)"
        known.update({token: token for (token,) in rows(connection, query)})
    new = [rider for rider in riders if rider not in known]
    return {rider: known.get(rider) or secrets.token_hex(TOKEN_BYTES) for rider in riders}, new


def remember(connection: duckdb.DuckDBPyConnection, tokens: Mapping[str, str], new: Iterable[str]) -> None:
    """Add the new riders to the map, inside the caller's transaction."""
    added = sorted(new)
    columns = {
        "rider": pa.array(added, pa.string()),
        "token": pa.array([tokens[rider] for rider in added], pa.string()),
    }
    insert(connection, PSEUDONYMS, pa.table(columns))


# Majorities of IDs that a stranger can list. The order is that of the clearest reason.
PATTERNS = {
    "e-mail addresses": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"),
    "telephone numbers": re.compile(r"\+[0-9][0-9 ()/-]{6,}|0[0-9]{2,5}[ /-][0-9 -]{4,}"),
    "plain numbers": re.compile(r"[0-9]{1,15}"),
    "numbered names, such as rider-17": re.compile(r"[^\W\d]{1,20}[-_ .#:]?[0-9]{1,9}"),
    "names of people": re.compile(r"[^\W\d_]+(?:['’.-]?[^\W\d_]+)*(?:[ ._-][^\W\d_]+(?:['’.-]?[^\W\d_]+)*\.?){1,3}"),
    "single words": re.compile(r"[^\W\d_]{1,15}"),
    "short (fewer than 10 characters)": re.compile(r".{1,9}"),
}
LARGEST_SAMPLE = 10_000


def guessable(riders: Sequence[str]) -> str | None:
    """Why these IDs look guessable, in words; None if they do not. Looks at a sample spread over the riders."""
    sample = riders[:: max(1, len(riders) // LARGEST_SAMPLE)]
    for reason, pattern in PATTERNS.items():
        if sample and 2 * sum(pattern.fullmatch(rider) is not None for rider in sample) > len(sample):
            return reason
    return None


def guess_warning(riders: Sequence[str]) -> list[str]:
    """The sentence that `fit` says once when IDs look guessable; nothing otherwise."""
    reason = guessable(riders)
    if reason is None:
        return []
    return [
        f"rider IDs look guessable ({reason}): someone who has all other rows could test guesses against the cohort "
        "hash, also after an erasure; run `isuit pseudonymise` first and fit its output"
    ]
