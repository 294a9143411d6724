"""Dates of releases."""

from datetime import date, datetime

import pytest

from isuit.errors import InputError
from isuit.release.dates import cut_off, first_of_quarter, read_date


@pytest.mark.parametrize(
    ("day", "first"),
    [
        (date(2026, 1, 1), date(2026, 1, 1)),
        (date(2026, 3, 31), date(2026, 1, 1)),
        (date(2026, 4, 1), date(2026, 4, 1)),
        (date(2026, 8, 15), date(2026, 7, 1)),
        (date(2024, 12, 31), date(2024, 10, 1)),
    ],
)
def test_a_quarter_begins_in_january_april_july_and_october(day: date, first: date) -> None:
    assert first_of_quarter(day) == first


def test_outcomes_are_old_enough_before_the_lag() -> None:
    assert cut_off(date(2026, 4, 1), 31) == datetime(2026, 3, 1)
    with pytest.raises(InputError, match="first year"):
        cut_off(date(2026, 4, 1), 10**6)


def test_what_is_no_date_is_a_sentence() -> None:
    assert read_date("2026-02-28") == date(2026, 2, 28)
    with pytest.raises(InputError, match="2026-01-01"):
        read_date("2026-02-30")
