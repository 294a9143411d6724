"""What an operator declares of a public release: units and CF names of its dimensions, and its licence.

Nothing is guessed from names. What the first release with a dimension said of it holds for the series, as its bins do;
the licence of a release is that of the one before unless another is given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from isuit.domain import check_label
from isuit.errors import InputError, PolicyRefusal
from isuit.release.format import Declared
from isuit.release.grid import metric_along
from isuit.store.releases import ReleaseRecord


@dataclass(frozen=True)
class Declarations:
    """As they are given: by dimension, or under the empty name for the only one."""

    units: Mapping[str, str] = field(default_factory=dict)
    standard_names: Mapping[str, str] = field(default_factory=dict)
    licence: str | None = None

    @classmethod
    def parse(cls, units: Sequence[str], standard_names: Sequence[str], licence: str | None) -> Declarations:
        """From options `UNIT` or `DIMENSION=UNIT`."""
        return cls(_pairs(units, "--units"), _pairs(standard_names, "--standard-name"), licence)


def _pairs(options: Sequence[str], name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for option in options:
        dimension, _, value = option.rpartition("=")
        if dimension in found:
            raise InputError(f"{name} is given twice for one dimension: give it once for each")
        found[dimension] = value
    return found


def declared_before(releases: Sequence[ReleaseRecord]) -> dict[str, Declared]:
    """What the first release with each dimension said of it."""
    found: dict[str, Declared] = {}
    for record in releases:
        for metric in json.loads(record.metadata)["metrics"]:
            found.setdefault(metric_along(metric["dimension"]), Declared(metric["units"], metric["standard_name"]))
    return found


def declared_now(
    given: Declarations, releases: Sequence[ReleaseRecord], dimensions: Sequence[str]
) -> dict[str, Declared]:
    """What holds for each dimension; `dimensions` are those that the store has fits of."""
    found = declared_before(releases)
    units, names = (_resolved(part, dimensions) for part in (given.units, given.standard_names))
    for dimension in sorted({*units, *names}):
        before = found.get(dimension)
        wanted = Declared(units.get(dimension), names.get(dimension))
        if before is None:
            found[dimension] = wanted
        elif any(asked is not None and asked != said for asked, said in zip(wanted, before, strict=True)):
            raise PolicyRefusal(
                f"the first release with {dimension!r} fixed its units and standard name, and rows that are carried "
                "forward have them: leave the option out."
            )
    return found


def refuse_other(given: Declarations, record: ReleaseRecord) -> None:
    """A release that is made is written again as it was published: what is declared otherwise comes too late."""
    published, licence = declared_before([record]), json.loads(record.metadata)["licence"]
    units, names = (_resolved(part, list(published)) for part in (given.units, given.standard_names))
    late = [
        option
        for option, differs in (
            ("--units", any(published[name].units != units[name] for name in units)),
            ("--standard-name", any(published[name].standard_name != names[name] for name in names)),
            ("--licence", given.licence is not None and (given.licence or None) != licence),
        )
        if differs
    ]
    if late:
        raise PolicyRefusal(
            f"the release of {record.release_id} is published, and {' and '.join(late)} would change it: leave "
            f"{'it' if len(late) == 1 else 'them'} out to write it again as it is."
        )


def _resolved(given: Mapping[str, str], dimensions: Sequence[str]) -> dict[str, str]:
    found = {}
    for dimension, value in given.items():
        if not dimension and len(dimensions) != 1:
            raise InputError(
                f"this store has {len(dimensions)} dimensions: say which one is meant, as in --units wind_kn=knot"
            )
        name = dimension or dimensions[0]
        if name not in dimensions:
            raise InputError(f"this store has no fit of the dimension {name!r}; it has {', '.join(dimensions)}")
        check_label(value, "a unit or a standard name")
        found[name] = value
    return found


def licence_now(given: str | None, releases: Sequence[ReleaseRecord]) -> str | None:
    """The licence that was given, or that of the release before; an empty one is none."""
    if given is None:
        before: str | None = json.loads(releases[-1].metadata)["licence"] if releases else None
        return before
    if given:
        check_label(given, "the licence")
    return given or None
