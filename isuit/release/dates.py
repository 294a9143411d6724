"""Dates of releases. `today` is the only place here that reads the clock."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from isuit.errors import InputError


def today() -> date:
    """The date in UTC; a release is never dated after it."""
    return datetime.now(UTC).date()


def first_of_quarter(day: date) -> date:
    return date(day.year, 3 * ((day.month - 1) // 3) + 1, 1)


def cut_off(release: date, lag_days: int) -> datetime:
    """Outcomes observed before this instant (UTC, naive as in the store) are old enough."""
    try:
        day = release - timedelta(days=lag_days)
    except OverflowError:
        raise InputError("the lag reaches back before the first year of the calendar; give a shorter one.") from None
    return datetime(day.year, day.month, day.day)


def read_date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError("--release takes a date such as 2026-01-01; correct it.") from None
