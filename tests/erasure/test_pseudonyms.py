"""Which IDs look guessable, and where an ID may stand without being one."""

from __future__ import annotations

import json
import re
import secrets
import uuid
from pathlib import Path

import pytest

from isuit.erasure.elsewhere import LABELS, PROGRAM_COLUMNS, PROGRAM_KEYS, PUBLIC_DOCUMENTS, _strings, _text_columns
from isuit.erasure.pseudonyms import guess_warning, guessable
from isuit.service.stores import open_store
from isuit.store.query import rows


@pytest.mark.parametrize(
    ("riders", "reason"),
    [
        ([str(number) for number in range(50)], "plain numbers"),
        ([f"rider-{number:04d}" for number in range(50)], "numbered names"),
        ([f"r{number}" for number in range(50)], "numbered names"),
        ([f"user_{number}" for number in range(50)], "numbered names"),
        ([f"person{number}@example.org" for number in range(50)], "e-mail"),
        (["Ana Müller", "Jean-Luc Picard", "Seán O'Brien", "José da Silva"], "names of people"),
        (["+49 170 1234567", "+1 (555) 010-9999", "0171-555 1234"], "telephone"),
        (["anna", "berta", "chloe"], "single words"),
        (["x7k2p", "q9z1m", "b3v8t"], "short"),
    ],
)
def test_ids_that_look_guessable(riders: list[str], reason: str) -> None:
    found = guessable(riders)
    assert found is not None
    assert reason in found
    assert "isuit pseudonymise" in guess_warning(riders)[0]
    assert not any(rider in guess_warning(riders)[0].split() for rider in riders)


@pytest.mark.parametrize(
    "riders",
    [
        [secrets.token_hex(16) for _ in range(50)],
        [secrets.token_urlsafe(16) for _ in range(50)],
        [str(uuid.uuid4()) for _ in range(50)],
        [],
    ],
)
def test_random_tokens_do_not(riders: list[str]) -> None:
    assert guessable(riders) is None
    assert guess_warning(riders) == []


def test_of_many_ids_a_sample_spread_over_all_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert guessable(["1", "2", secrets.token_hex(16)]) == "plain numbers"  # of few, every one
    monkeypatch.setattr("isuit.erasure.pseudonyms.LARGEST_SAMPLE", 10)
    numbers, tokens = [str(number) for number in range(60)], [secrets.token_hex(16) for _ in range(60)]
    assert guessable(numbers[:40] + tokens) is None  # the first ten are not all
    assert guessable(tokens[:40] + numbers) == "plain numbers"
    tenth = [str(number) if number % 10 == 0 else secrets.token_hex(16) for number in range(109)]
    assert guessable(tenth) == "plain numbers"  # every tenth and no other


DIGEST = re.compile(r"(isuit-[cf]1:)?[0-9a-f]{32,64}|\d{4}-\d\d-\d\dT.*Z")


def test_every_word_of_a_store_has_a_known_place(full_store: Path) -> None:
    """A rider may share any word that a store holds anyway: a place that is not listed would make them unerasable."""
    unknown = set()
    with open_store(full_store) as store:
        for table, columns in _text_columns(store.connection).items():
            if table.startswith("personal."):
                continue
            for column in columns:
                place = f"{table}.{column}"
                if column in LABELS or place in PROGRAM_COLUMNS | PUBLIC_DOCUMENTS:
                    continue
                for (text,) in rows(store.connection, f'SELECT "{column}" FROM {table} WHERE "{column}" IS NOT NULL'):
                    unknown |= {
                        f"{place}:{key}"
                        for key, value in _strings(json.loads(text), "")
                        if key not in LABELS | PROGRAM_KEYS and not DIGEST.fullmatch(value) and " " not in value
                    }
    assert unknown - {"ledger.log.payload:name"} == set()  # the name of a migration, which nobody is called
