"""The disclosure policy: what a store was created with, which an export can tighten and never loosen.

Each field says in which direction it protects more, so that "weaker than the default" and "tighter than the store's"
are read off the fields and never written down twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from isuit.errors import InputError, PolicyRefusal
from isuit.release.private.declaration import GLOBAL, Private

Direction = Literal["more", "less"]  # whether more or less of the value protects more

# Published instead of counts. The first is met only in a store whose policy allows fewer than ten riders.
BANDS = ((100, "100+"), (50, "50-99"), (20, "20-49"), (10, "10-19"), (0, "below 10"))
BAND_MARGIN = 5  # riders beyond the end of its band at which a row that was released before gets another one
# A marginal probability of success outside this range is top-coded: nearly everyone succeeds, or nearly no one.
SATURATION = (0.02, 0.98)

# More than anyone could mean; beyond them a date or a column of the store could not hold what follows.
MOST_RIDERS, MOST_DAYS = 10**9, 36_525


def _field(default: float, direction: Direction, description: str, **bounds: Any) -> Any:
    return Field(default=default, description=description, json_schema_extra={"protects": direction}, **bounds)


class Policy(BaseModel):
    """The rules of a release. The defaults are part of the contract (docs/contract.md, section 8)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    k: int = _field(10, "more", "distinct riders behind a cell and behind each of its bins", ge=2, le=MOST_RIDERS)
    lag_days: int = _field(90, "more", "days between an outcome and the release", ge=0, le=MOST_DAYS)
    resolution: int = _field(7, "less", "H3 resolution of a cell", ge=0, le=15)
    weight_cap: float = _field(4.0, "less", "outcomes that one rider can weigh in a bin of a cell", ge=1)
    largest_share: float = _field(0.25, "less", "of a cell's weight, by its heaviest rider", gt=0, le=1)
    largest_two_share: float = _field(0.40, "less", "of a cell's weight, by its two heaviest", gt=0, le=1)
    influence: float = _field(0.5, "less", "skill sds that one rider can move a released point", gt=0)
    rounding: float = _field(0.25, "more", "step of a difficulty, in skill sds", gt=0)
    rounding_many: float = _field(0.1, "more", "the same, from `many_riders` on", gt=0)
    many_riders: int = _field(50, "more", "riders in a bin from which the finer step is used", ge=2, le=MOST_RIDERS)
    changed_riders: int = _field(
        10, "more", "riders who must have changed in effect before a released row does", ge=2, le=MOST_RIDERS
    )
    spacing_days: int = _field(90, "more", "days between a release and the next", ge=0, le=MOST_DAYS)
    held_releases: int = _field(
        4, "less", "releases that may repeat a row after someone behind it left", ge=0, le=MOST_DAYS
    )
    noise: float = _field(0.36, "more", "sd of the noise on a difficulty, in skill sds", ge=0)
    noise_riders: int = _field(
        24, "more", "riders of a cell from which the noise falls in proportion", ge=2, le=MOST_RIDERS
    )
    private: Private | None = Field(
        default=None, description="the private mode: differentially private releases, of what is declared here"
    )

    @model_validator(mode="after")
    def _coherent(self) -> Policy:
        if self.largest_two_share < self.largest_share:
            raise ValueError("largest_two_share is below largest_share, which two riders include")
        if self.rounding < self.rounding_many:
            raise ValueError("rounding is finer than rounding_many, which is for more riders")
        for topic in self.private.topics if self.private else ():
            if topic.cells != (GLOBAL,):
                import h3  # only a private policy needs it

                if any(h3.get_resolution(cell) != self.resolution for cell in topic.cells):
                    raise ValueError("private.topics has cells of another resolution than the policy's")
        return self

    @model_serializer(mode="wrap")
    def _without_a_mode_that_is_not_chosen(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A policy of the other mode is written as it always was."""
        values: dict[str, Any] = handler(self)
        if values.get("private", 0) is None:
            del values["private"]
        return values

    def weaker_than_default(self) -> list[str]:
        """The fields that protect less than the defaults do: named in every release's metadata."""
        default = Policy()
        return [name for name in type(self).model_fields if _protects_less(name, self, default)]

    def tightened(self, options: Mapping[str, Any]) -> Policy:
        """The policy with the given values (None: not given); a value that protects less is refused."""
        given = {name: value for name, value in options.items() if value is not None}
        changed = _validated(self.model_dump() | given, PolicyRefusal)
        looser = [name for name in given if _protects_less(name, changed, self)]
        if looser:
            values = ", ".join(f"{name} {getattr(self, name)}" for name in looser)
            raise PolicyRefusal(
                f"an export can tighten the store's disclosure policy and never loosen it; it has {values}: leave the "
                "option out, or make another store with `isuit init --policy`."
            )
        return changed

    def step(self, riders: int) -> float:
        """The rounding of a difficulty with this many riders behind it."""
        return self.rounding_many if riders >= self.many_riders else self.rounding


def _protects_less(name: str, policy: Policy, other: Policy) -> bool:
    if name == "private":  # a mode, which no option of an export changes
        return False
    extra = Policy.model_fields[name].json_schema_extra
    assert isinstance(extra, dict)
    mine, its = getattr(policy, name), getattr(other, name)
    return bool(mine < its if extra["protects"] == "more" else mine > its)


def _validated(values: Mapping[str, Any], error: type[InputError] | type[PolicyRefusal]) -> Policy:
    try:
        return Policy.model_validate(values)
    except ValidationError as problem:
        found = "; ".join(sorted({f"{_field_named(part['loc'])}: {part['msg']}" for part in problem.errors()}))
        raise error(f"the disclosure policy is not valid ({found}); correct it and try again.") from None


def _field_named(place: tuple[int | str, ...]) -> str:
    """The field that a problem is about. A name that is none of ours is content of the file, and not repeated."""
    if not place:
        return "policy"
    return str(place[0]) if place[0] in Policy.model_fields else "a name that is no field"


def policy_of(values: Mapping[str, Any]) -> Policy:
    """A policy from stored or given values; what is not given has its default."""
    return _validated(values, InputError)


def read_policy(path: Path) -> Policy:
    """A policy from a JSON or YAML file: an object with any of the fields."""
    from isuit.documents.yaml import read_document

    values = read_document(path, "the file of --policy")
    if not isinstance(values, dict):
        raise InputError("the file of --policy must hold an object, such as {k: 20, lag_days: 180}.")
    return _validated({str(name): value for name, value in values.items()}, InputError)


def band(riders: int, before: str | None = None) -> str:
    """How a number of contributors is published: a row keeps its band until the number is well outside of it."""
    if before is not None:
        least, most = _ends(before)
        if least - BAND_MARGIN <= riders <= most + BAND_MARGIN:
            return before
    return next(name for least, name in BANDS if riders >= least)


def within(riders: int, name: str) -> int:
    """The number of a band that is nearest to this one: what else follows from a number must not tell more."""
    least, most = _ends(name)
    return min(max(riders, least), most)


def _ends(name: str) -> tuple[int, int]:
    most = MOST_RIDERS
    for least, other in BANDS:
        if other == name:
            return least, most
        most = least - 1
    raise AssertionError("a band is one of BANDS")
