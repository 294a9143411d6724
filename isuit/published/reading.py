"""A fit's record read back: the JSON columns of `ledger.fits` as the values that the estimator made.

A record may be a newer version's. What that version added is left out, what it left out is None, and only a record that
is no record at all is refused.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from isuit.domain import GateReport, HeldOut, PromotionReport
from isuit.errors import StoreError
from isuit.record import Diagnostics, Parameters

_Value = TypeVar("_Value")


def parameters(text: str) -> Parameters:
    """What scoring needs of the fit."""
    value: Parameters = _read(Annotated[Parameters, Field(discriminator="kind")], text)
    return value


def diagnostics(text: str) -> Diagnostics:
    """What the fit says about itself."""
    return _of(Diagnostics, text)


def identification(text: str) -> GateReport:
    return _of(GateReport, text)


def promotion(text: str | None) -> PromotionReport | None:
    return None if text is None else _of(PromotionReport, text)


def held_out(text: str | None) -> HeldOut | None:
    return None if text is None else _of(HeldOut, text)


def _of(kind: type[_Value], text: str) -> _Value:
    value: _Value = _read(kind, text)
    return value


def _read(kind: Any, text: str) -> Any:
    try:
        return _reader(kind).validate_json(text)
    except ValidationError:
        # Its own sentence would quote the record.
        raise StoreError("the record of this fit cannot be read; run `isuit verify` to see what is wrong") from None


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
