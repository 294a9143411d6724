"""How a cohort is to be read: the keywords that everything that reads one takes, listed here and nowhere else."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter
from typing import Any, TypedDict, TypeVar, cast, get_type_hints

Function = TypeVar("Function", bound=Callable[..., Any])


class Form(TypedDict, total=False):
    """How a cohort's tables are written."""

    columns: Mapping[str, str] | None  # from our names to theirs: {"rider": "user_id"}
    timezone: str | None  # the zone of times that carry none, such as "UTC"
    csv: Mapping[str, str] | None  # how CSV files are written, where that is not to be found out: {"separator": ";"}
    drop_missing: bool  # leave rows without a rider, a metric or an outcome out, counted, instead of refusing them


class Reading(Form, total=False):
    """How its tables are written, and which of their columns are conditions."""

    metrics: Sequence[str] | None  # where there are several, or the one is not called `metric`


def spelled_out(listed: type[Any]) -> Callable[[Function], Function]:
    """For a function with `**reading: Unpack[listed]`: its signature, as `help()` and notebooks show it, has each
    keyword by name, and a keyword that is not listed is refused before the function begins."""

    def decorated(function: Function) -> Function:
        given = inspect.signature(function)
        own = [one for one in given.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        spelled = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=False if kind is bool else None, annotation=kind)
            for name, kind in get_type_hints(listed).items()
        ]
        signature = given.replace(parameters=[*own, *spelled])

        @wraps(function)
        def checked(*positional: Any, **named: Any) -> Any:
            signature.bind(*positional, **named)  # TypeError, as of any function that lacks the keyword
            return function(*positional, **named)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        return cast(Function, checked)

    return decorated
