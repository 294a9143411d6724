"""Names of the operator's for fits. The log itself is where they stand: the last event about a name says what it means.

So no table can disagree with the log, and who reads an old log sees what a name meant then.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import NamedTuple

import duckdb

from isuit.errors import InputError
from isuit.store.query import rows

EVENT = "alias-set"
FORM = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")


class AliasedFit(NamedTuple):
    fit_id: str
    set_at: datetime


def aliases(connection: duckdb.DuckDBPyConnection) -> dict[str, AliasedFit]:
    """Every name that means a fit, in the order of the names."""
    found: dict[str, AliasedFit] = {}
    for at, text in rows(
        connection, f"SELECT logged_at, payload FROM ledger.log WHERE kind = '{EVENT}' ORDER BY sequence"
    ):
        try:
            content = json.loads(text)
            alias, fit_id = content["alias"], content["fit_id"]
        except (ValueError, TypeError, KeyError):
            continue  # changed by hand: `isuit verify` says so, and every other name still means its fit
        if fit_id is None:
            found.pop(alias, None)
        else:
            found[alias] = AliasedFit(fit_id, at)
    return dict(sorted(found.items()))


def checked_alias(alias: str, what: str = "an alias") -> str:
    """A name that no id or hash can be mistaken for."""
    if not FORM.fullmatch(alias) or re.fullmatch(r"[0-9a-fA-F]+", alias):
        raise InputError(
            f"{what} is a letter followed by up to 63 letters, digits, dots, hyphens or underscores, and no number in "
            "hexadecimal digits: choose one such as kite-2026"
        )
    return alias
