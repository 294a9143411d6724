"""The things isuit speaks of, as frozen values: outcomes, configurations, estimates.

Nothing here estimates or stores. What a caller asks for is validated here, whoever calls: a typo from a notebook must
not be recorded. `Observations` is what an estimator reads, `FitConfig` what a caller asks for,
`Estimate` what comes back; the store writes an `Estimate` down and an auditor gets the same one again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from math import exp, isfinite
from typing import Any, Literal, get_args, overload

import numpy as np
from numpy.typing import NDArray

from isuit.columns import rider_slices
from isuit.errors import InputError
from isuit.record import Diagnostics, Parameters

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
CodeArray = NDArray[np.integer[Any]]  # as narrow as its values allow: widen it before multiplying

FitKind = Literal["latent", "single-curve"]
GateReading = Literal["strict", "core"]
Exposure = Literal["independent", "correlated"]
Split = Literal["rider", "time", "occasion"]
SkillPrior = Literal["normal", "estimated", "moving"]
Discrimination = Literal["constant", "varying"]

SKILL_LEVELS = {"beginner": -1.0, "intermediate": 0.0, "expert": 1.0}
Z95 = 1.959963984540054  # standard errors to each side of an estimate: a 95 % interval
NO_TIME = np.iinfo(np.int64).min  # `observed_at` of an outcome without one
FEW_OUTCOMES = 30  # below, a curve is mostly what its smoothing says: drawn as a line it would look surer than it is
NAMES_AT_ONCE = 1 << 16  # that are Python's texts at a time, where all are read
NO_SITE = -1  # `site` of an outcome without one; as the site of a curve: the curve that all sites share


class Names(Sequence[str]):
    """Many names, held as an Arrow array of strings holds them: a tuple of as many takes four times the memory."""

    def __init__(self, strings: Any) -> None:
        self._strings = strings

    def __len__(self) -> int:
        return len(self._strings)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Names: ...

    def __getitem__(self, place: int | slice) -> str | Names:
        return Names(self._strings[place]) if isinstance(place, slice) else self._strings[place].as_py()

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), NAMES_AT_ONCE):
            yield from self._strings[start : start + NAMES_AT_ONCE].to_pylist()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of a list: nobody should put so much into a set

    def __repr__(self) -> str:
        return f"<{len(self)} names>"

    def __arrow_array__(self, type: Any = None) -> Any:
        """What `pyarrow.array` makes of this: the array itself."""
        return self._strings

    def at(self, places: IntArray) -> Names:
        return Names(self._strings.take(places))


def names_at(names: Sequence[str], places: IntArray) -> Sequence[str]:
    """The names at these places."""
    return names.at(places) if isinstance(names, Names) else tuple(names[place] for place in places.tolist())


@dataclass(frozen=True)
class Observations:
    """Outcomes as columns: codes into `riders` and `sites`, both sorted, so that no result depends on labels' order.

    `site` is None when no outcome has a site; otherwise a code, or `NO_SITE` for an outcome without one.
    `observed_at` is in microseconds since 1970 UTC, `NO_TIME` where there is none. Of several metrics `metric` is the
    first, `further` are the others and `metrics` the names of all, in the order of the canonical form. Columns may be
    maps of files, because a cohort may be larger than memory: what passes over all rows takes them slice by slice.
    """

    riders: Sequence[str]
    rider: CodeArray
    metric: FloatArray
    outcome: CodeArray
    sites: tuple[str, ...] = ()
    site: CodeArray | None = None
    observed_at: IntArray | None = None
    metrics: tuple[str, ...] = ()  # empty where there is one, which has no name here
    further: tuple[FloatArray, ...] = ()

    def __len__(self) -> int:
        return int(self.rider.size)

    def slices(self) -> Iterator[slice]:
        """Slices that divide no rider's rows; one for all where rows are not sorted by rider, as a cohort's are."""
        return rider_slices(self.rider)

    def rows(self, chosen: slice | NDArray[np.bool_] | IntArray) -> Observations:
        """These rows alone, of the same riders and sites."""
        return replace(
            self,
            rider=self.rider[chosen],
            metric=self.metric[chosen],
            outcome=self.outcome[chosen],
            site=None if self.site is None else self.site[chosen],
            observed_at=None if self.observed_at is None else self.observed_at[chosen],
            further=tuple(column[chosen] for column in self.further),
        )

    @property
    def conditions(self) -> tuple[FloatArray, ...]:
        """Every metric, a column each."""
        return (self.metric, *self.further)

    @property
    def condition(self) -> FloatArray:
        """What an outcome met: its metric, or a row with the value of each."""
        return np.column_stack(self.conditions) if self.further else self.metric


@dataclass(frozen=True)
class FitConfig:
    """What a fit is asked to do. Together with the cohort's hash and the estimator's version it names the fit."""

    activity: str = "unspecified"
    dimension: str = "metric"
    gate: GateReading = "core"
    gate_bins: int = 8  # equal-count bins of the metric
    min_bins_per_rider: int = 3  # K
    min_riders_per_bin: int = 3  # M
    anchor: tuple[tuple[float, float], ...] | None = None  # (metric, expert suitability in [0, 1])
    exposure: Exposure = "independent"
    split: Split = "rider"
    observed_until: date | None = None  # declared end of observation, for cohorts without times
    skill: SkillPrior = "normal"  # how skill is distributed among riders, or that it is normal and moves with time
    anchors: tuple[tuple[str, tuple[tuple[float, float], ...]], ...] = ()  # of several metrics, by name: an anchor each
    discrimination: Discrimination = "constant"  # whether skill matters as much in every condition
    nearby: tuple[tuple[str, float, float], ...] = ()  # sites, latitude and longitude: they tell of one another

    def __post_init__(self) -> None:
        for name, kinds in WORDS.items():
            if getattr(self, name) not in get_args(kinds):
                raise InputError(f"{name} is one of {', '.join(get_args(kinds))}; choose one of them.")
        for name, (least, most) in COUNTS.items():
            count = getattr(self, name)
            if type(count) is not int or not least <= count <= most:
                raise InputError(f"{name} is a whole number from {least} to {most}; give one.")
        for name in ("activity", "dimension"):
            check_label(getattr(self, name), name)
        if self.anchor is not None:
            _check_anchor(self.anchor)
        for _, points in self.anchors:
            _check_anchor(points)
        if self.discrimination == "varying" and self.skill == "moving":
            raise InputError("skill that moves is fitted with one discrimination; choose --discrimination constant.")
        if self.discrimination == "varying" and self.anchor is not None:
            raise InputError(
                "an anchor of one metric is an expert's suitability under one discrimination; leave the anchor out or "
                "choose --discrimination constant."
            )
        if self.nearby:
            _check_nearby(self.nearby)
            if self.skill != "normal" or self.discrimination != "constant":
                raise InputError(
                    "sites nearby tell of one another where skill is normal and discrimination constant; leave nearby "
                    "out, or the other option"
                )
        if self.observed_until is not None and (
            not isinstance(self.observed_until, date) or isinstance(self.observed_until, datetime)
        ):
            raise InputError("observed_until is a day without a time of day; give a datetime.date.")

    def as_json(self) -> dict[str, Any]:
        """The configuration as JSON values: what the fit id is derived from and `ledger.fits` stores."""
        values = asdict(self)
        values["anchor"] = None if self.anchor is None else [list(point) for point in self.anchor]
        values["observed_until"] = None if self.observed_until is None else self.observed_until.isoformat()
        if self.skill == "normal":
            del values["skill"]  # what every fit was before there was a choice: it keeps its name
        if self.discrimination == "constant":
            del values["discrimination"]
        del values["anchors"]
        if self.anchors:
            values["anchors"] = {name: [list(point) for point in points] for name, points in self.anchors}
        del values["nearby"]
        if self.nearby:
            values["nearby"] = [list(place) for place in self.nearby]
        return values


# The fields of `FitConfig` that take one of a few words, and those that count, with their limits.
WORDS: dict[str, Any] = {
    "gate": GateReading,
    "exposure": Exposure,
    "split": Split,
    "skill": SkillPrior,
    "discrimination": Discrimination,
}
COUNTS = {"gate_bins": (2, 1000), "min_bins_per_rider": (1, 1000), "min_riders_per_bin": (1, 10**9)}


def check_label(label: str, name: str) -> None:
    """An activity or a dimension: short plain text, because it becomes part of every row of the atlas."""
    plain = isinstance(label, str) and label == label.strip() and 0 < len(label) <= 100 and label.isprintable()
    if not plain:
        raise InputError(f"{name} takes a short name of at most 100 printable characters")


def _check_anchor(anchor: tuple[tuple[float, float], ...]) -> None:
    """An expert's curve is a function of the metric: what is recorded of it can be read back and drawn."""
    pairs = isinstance(anchor, tuple) and all(isinstance(point, tuple) and len(point) == 2 for point in anchor)
    if not pairs or any(type(number) is bool or not isinstance(number, (int, float)) for p in anchor for number in p):
        raise InputError("The anchor is a tuple of points, each a pair of numbers (metric, suitability).")
    metric = [x for x, _ in anchor]
    finite = all(isfinite(number) for point in anchor for number in point)
    if len(anchor) < 2 or not finite or metric != sorted(set(metric)):
        raise InputError("The anchor needs at least two points with finite values, in increasing order of the metric.")
    if any(not 0 <= suitability <= 1 for _, suitability in anchor):
        raise InputError("The anchor has a suitability outside 0 to 1; an expert's suitability is between them.")


def _check_nearby(places: tuple[tuple[str, float, float], ...]) -> None:
    """Sites in order, each once, somewhere on the earth: the same places give the same fit its name."""
    names = [site for site, _, _ in places]
    on_earth = all(-90 <= latitude <= 90 and -180 <= longitude <= 180 for _, latitude, longitude in places)
    if names != sorted(set(names)) or not on_earth:
        raise InputError("nearby lists each site once, in order, with latitude and longitude in degrees")


@dataclass(frozen=True)
class GateReport:
    """Whether skill and difficulty can be told apart; truthy when they can. Names bins and numbers, never riders."""

    ok: bool
    reading: str  # strict or core; older versions recorded any word, which is read as it is
    shortfalls: tuple[str, ...]
    core_share: float  # share of outcomes in the core that is left after pruning
    core_riders: int
    riders: int
    bins: int

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True)
class PromotionReport:
    """Whether skill earns its place: the likelihood-ratio test of a = 0, and the held-out score."""

    ok: bool
    likelihood_ratio: float | None
    p_value: float | None
    shortfalls: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True)
class HeldOut:
    """Scores on outcomes that the fit did not see, and their rider-clustered standard error."""

    brier_skill: float  # over the single curve of this library
    brier_skill_se: float
    brier: float
    brier_single_curve: float
    outcomes: int
    split: str  # rider, time or occasion; older versions recorded any word


@dataclass(frozen=True)
class DifficultyCurve:
    """Difficulty along the metric at one site (None: the curve that all sites share), in skill sds.

    Of several metrics `dimension` names the one that it runs along; the others are held at their medians.
    A single-curve fit has a suitability and no difficulty. A site that cannot be compared with the others has
    neither difficulty nor standard error.
    """

    site: str | None
    metric: FloatArray
    difficulty: FloatArray | None
    difficulty_se: FloatArray | None
    suitability: FloatArray
    dimension: str | None = None


@dataclass(frozen=True)
class Path:
    """A rider's skill, day by day on which the rider had outcomes."""

    day: IntArray  # since 1970
    mean: FloatArray
    sd: FloatArray


@dataclass(frozen=True)
class Skills:
    """Skill posteriors of the riders that the gate's core holds; where skill moves, at each rider's last day."""

    riders: Sequence[str]
    mean: FloatArray
    sd: FloatArray  # includes the uncertainty of the curve and the discrimination
    outcomes: IntArray
    bins: IntArray
    usable: NDArray[np.bool_]
    paths: tuple[Path, ...] | None = None  # where skill moves, of each rider


def too_few(outcomes: int) -> str | None:
    """Why a curve of so few outcomes is not drawn as a line; None where it is."""
    if outcomes >= FEW_OUTCOMES:
        return None
    return f"{outcomes} outcomes are too few to draw a curve from ({FEW_OUTCOMES} are needed)"


def discrimination_interval(discrimination: float | None, se: float | None) -> tuple[float, float] | None:
    """The 95 % interval of a discrimination with this standard error; None where there is none.

    On the logarithm: a discrimination is positive, its estimate skewed to the right, and large ones less certain.
    Symmetric about the estimate, the interval would leave out too many truths above it.
    """
    if discrimination is None or se is None:
        return None
    factor = exp(Z95 * se / discrimination)
    return discrimination / factor, discrimination * factor


@dataclass(frozen=True)
class Estimate:
    """What a fit found: anonymous except for `skills`, the only part that speaks of persons."""

    kind: FitKind
    estimator_version: str
    discrimination: float | None
    discrimination_se: float | None
    log_likelihood: float
    identification: GateReport
    promotion: PromotionReport | None  # None when identification already failed
    held_out: HeldOut | None
    curves: tuple[DifficultyCurve, ...]
    skills: Skills | None
    parameters: Parameters  # spline and covariance, enough to score exactly
    diagnostics: Diagnostics
