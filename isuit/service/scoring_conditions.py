"""Conditions to be scored, as they are asked for: options of a command, numbers, or a table of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isuit.domain import SKILL_LEVELS, FloatArray
from isuit.errors import InputError

NO_SKILL = f"--skill takes {', '.join(SKILL_LEVELS)} or a number; a rider cannot be named here"


def skill_value(level: str | float) -> float:
    """A declared skill: beginner, intermediate, expert, or a number in units of the population's sd."""
    value = _skill_or_nan(level)
    if not math.isfinite(value):
        raise InputError(NO_SKILL)
    return value


def _skill_or_nan(level: str | float) -> float:
    """The same, with NaN for what is none."""
    if isinstance(level, str) and level.strip().lower() in SKILL_LEVELS:
        return SKILL_LEVELS[level.strip().lower()]
    try:
        return float(level)
    except ValueError:
        return math.nan


def parse_condition(options: list[str]) -> float | dict[str, float]:
    """The condition that repeated `--metric` options describe: one number, or NAME=VALUE of each metric."""
    found: dict[str, float] = {}
    for option in options:
        name, equals, text = option.rpartition("=")
        try:
            value = float(text)
        except ValueError:
            raise InputError("--metric takes a number, or NAME=NUMBER for each of several metrics") from None
        if not equals:
            if len(options) > 1:
                raise InputError("of several metrics give each with its name, as --metric wind_kn=22")
            return value
        if name in found:
            raise InputError(f"--metric {name}=... is given twice: give each metric once")
        found[name] = value
    return found


class Conditions(NamedTuple):
    """What is to be scored: one array per column, all of one length."""

    metric: FloatArray  # NaN: none; of several metrics a row has the value of each
    site: pa.Array  # text; null: the shared curve
    skill: FloatArray  # NaN: none; infinite: one that cannot be read


def one_condition(metric: float | Mapping[str, float], names: tuple[str, ...]) -> FloatArray:
    """A row of conditions, or, of one metric, its value."""
    if isinstance(metric, Mapping) != bool(names):
        given = ", ".join(f"{name}=VALUE" for name in names)
        raise InputError(
            f"this fit has several metrics: give {given}" if names else "this fit has one metric: give a number"
        )
    if not isinstance(metric, Mapping):
        try:
            return np.array([float(metric)], np.float64)
        except (TypeError, ValueError):
            raise InputError("score takes one condition, a number; score_table takes a table of them") from None
    if set(metric) != set(names):
        raise InputError(f"give a value of each metric of this fit, and no other: {', '.join(names)}")
    return np.array([[metric[name] for name in names]], np.float64)


def conditions_of(table: pa.Table, metrics: tuple[str, ...], skill: str | float | None) -> Conditions:
    """The rows of a table: `metric`, or each of several metrics by name, and, where it has them, site and skill."""
    names = metrics or ("metric",)
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise InputError(f"the conditions need a column {missing[0]}; site and skill are optional")
    values = [_metric(table, name) for name in names]
    return Conditions(np.column_stack(values) if metrics else values[0], _sites(table), _skills(table, skill))


def _metric(conditions: pa.Table, name: str) -> FloatArray:
    try:
        return np.asarray(conditions.column(name).cast(pa.float64()).to_numpy())
    except pa.ArrowException:
        raise InputError(f"the conditions' column {name} holds something that is no number") from None


def _sites(conditions: pa.Table) -> pa.Array:
    """Names of sites; an empty one is none."""
    if "site" not in conditions.column_names:
        return pa.nulls(conditions.num_rows, pa.string())
    try:
        names = conditions.column("site").cast(pa.string()).combine_chunks()
    except pa.ArrowException:
        raise InputError("the conditions' column site holds something that is no text") from None
    return pc.if_else(pc.equal(names, ""), None, names)


def _skills(conditions: pa.Table, otherwise: str | float | None) -> FloatArray:
    """The skill that each row declares, or else this one; NaN where there is neither."""
    default = np.nan if otherwise is None else skill_value(otherwise)
    if "skill" not in conditions.column_names:
        return np.full(conditions.num_rows, default)
    column = conditions.column("skill")
    given = mask(column.is_valid())
    try:
        # A level is read once, however many rows have it.
        levels = column.combine_chunks().dictionary_encode()
        of_level = [math.nan if level is None else _skill_or_nan(level) for level in levels.dictionary.to_pylist()]
    except (pa.ArrowException, TypeError):
        raise InputError("the conditions' column skill holds something that is no skill") from None
    skills: FloatArray = np.array([*of_level, default])[np.asarray(pc.fill_null(levels.indices, len(of_level)))]
    return np.where(given & ~np.isfinite(skills), np.inf, skills)


def mask(found: pa.Array) -> NDArray[np.bool_]:
    """Arrow's truth values as numpy's."""
    return np.asarray(found.to_numpy(zero_copy_only=False))
