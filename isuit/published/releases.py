"""The public atlas: a row, its metadata, and what export-atlas, check-release and rederive say of a release."""

from __future__ import annotations

import json
from datetime import date
from typing import Literal

from pydantic import ConfigDict, Field

from isuit.published.base import Published
from isuit.published.proofs import Proof

Format = Literal["jsonl", "csv", "geoparquet", "geojson", "html", "site"]
FORMAT = "isuit-atlas/1"
IDENTIFICATION = (
    "P(success) = sigmoid(discrimination * (skill - difficulty)); skill has mean 0 and variance 1 over the "
    "contributing riders, N(0, 1) where one cell is released"
)
DIFFICULTY_UNITS = "standard deviations of skill in the population"
JOIN = (
    "cut your metric into [metric_lower, metric_upper), the topmost bin including its upper edge, and assign each grid "
    "point its H3 cell at h3_resolution (h3.latlng_to_cell); then join on h3 and bin. Rows of the cell `global` hold "
    "everywhere."
)


class Finite(Published):
    """A release is JSON, which has no NaN and no infinity; other formats have, and are refused."""

    model_config = ConfigDict(allow_inf_nan=False)


class ReleaseRow(Finite):
    """Difficulty of one activity along one dimension, in one cell and one bin of the metric."""

    release: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="Date of the release.")
    activity: str
    dimension: str
    h3: str = Field(pattern=r"^([0-9a-f]{15}|global)$", description="H3 cell; `global` for cohorts without sites.")
    h3_resolution: int | None = Field(ge=0, le=15)
    latitude: float | None = Field(description="Of the cell's centre, in degrees.", ge=-90, le=90)
    longitude: float | None = Field(description="Of the cell's centre, in degrees.", ge=-180, le=180)
    metric: float = Field(description="The centre of the bin, where the curve is evaluated.")
    metric_lower: float
    metric_upper: float
    units: str | None = Field(description="Of the metric, in UDUNITS; null where the dimension's name does not tell.")
    difficulty: float | None = Field(description="With noise, rounded; null where saturated or incomparable.")
    difficulty_se: float | None = Field(description="Standard error with that of noise and rounding, to two digits.")
    expert_difficulty: float | None = Field(description="The expert curve's; null without one.")
    contributors: Literal["below 10", "10-19", "20-49", "50-99", "100+"] = Field(
        description="Riders behind the row; a row keeps its band until their number is five beyond its end."
    )
    status: Literal["estimated", "saturated", "incomparable"] = Field(
        description="saturated: nearly everyone succeeds or nearly no one. incomparable: too few riders link the cell "
        "to the others, so that its difficulty has no common origin with theirs."
    )

    def line(self) -> str:
        """The row as a line of a release, without its LF."""
        return json.dumps(self.model_dump(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @property
    def key(self) -> tuple[str, str, str, float]:
        """Rows are sorted by this: by what they are about, and by nothing that tells who contributed or when."""
        return self.activity, self.dimension, self.h3, self.metric


class MetricDescription(Finite):
    """The bins of one activity and dimension, fixed by the first release that has it."""

    activity: str
    dimension: str
    lower: float
    upper: float
    bins: int
    width: float
    units: str | None = Field(description="As the operator declares them, in UDUNITS.")
    standard_name: str | None = Field(description="Of the CF conventions, as the operator declares it.")
    discrimination: float | None = Field(
        description="Rounded; fixed like the bins, since one that moves would tell which rows were computed again."
    )


class PrivatePromise(Finite):
    """What a release of a store in private mode promises to every person whose outcomes the store has."""

    epsilon: float = Field(description="Of all releases of the store together.")
    delta: float = Field(description="Of all releases of the store together.")
    releases: int = Field(description="That the budget is divided into.")
    rho: float = Field(description="What this release cost, in zero-concentrated differential privacy.")
    budget: float = Field(description="What all releases together may cost, in the same unit.")
    unit: Literal["person"] = "person"


class ReleaseMetadata(Finite):
    """The last line of a JSON Lines release; a file beside a CSV; the footer of a GeoParquet."""

    metadata: Literal[True] = True
    format: Literal["isuit-atlas/1"] = "isuit-atlas/1"
    release: str
    rows: int
    cells: int
    digest: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 over the rows as JSON Lines.")
    observed_before: date = Field(description="The cut-off: no outcome observed on or after this day is in it.")
    policy: dict[str, float | int] = Field(description="Without what a private mode declares: cells and bins.")
    private: PrivatePromise | None = Field(
        default=None, description="The promise of differential privacy; a release without it has no such key."
    )
    weaker_than_default: list[str] = Field(description="Values of the policy that protect less than the defaults.")
    identification: str = IDENTIFICATION
    difficulty_units: str = DIFFICULTY_UNITS
    metrics: list[MetricDescription]
    join: str = JOIN
    licence: str | None = Field(default=None, description="As the operator declares it; null where they did not.")
    citation: str
    estimator_version: str
    tool_version: str
    proof: Proof | None = Field(
        default=None,
        description="That the log of the store that made it has the event of this release, whose payload holds the "
        "digests of the rows and of these metadata without the proof (SHA-256 of their RFC 8785 form).",
    )

    def line(self) -> str:
        """The metadata as they are recorded: the proof is about them, and comes to them in a file."""
        about = self.model_dump(mode="json", exclude={"proof"} if self.private else {"proof", "private"})
        return json.dumps(about, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class Standing(Published):
    """A row of the table that says what attackers achieve against a release; in-house."""

    mode: Literal["threshold", "private"]
    riders: int | None = Field(description="Riders of a cell that the row was measured at; null: any number.")
    cells: int | None = Field(description="Cells of this release with so many riders, up to the next row's.")
    known_ordinary: float = Field(
        description="AUC of someone who knows all other rows: is an ordinary rider there? A coin has 0.5."
    )
    known_expert: float = Field(description="The same for a rider who succeeds nearly everywhere.")
    one_outcome: float = Field(description="Share of guesses of one unknown outcome that are right; a coin has 0.5.")
    departure: float = Field(description="AUC of whether somebody who left between two releases was good.")
    rmse: float | None = Field(
        description="What readers get: root mean squared error of a difficulty on a cohort like a platform's."
    )
    coverage: tuple[float, float] | None = Field(
        description="Share of true difficulties within 1.96 published errors: in the worst band, and in the best."
    )
    released: float | None = Field(description="Share of what has k riders that a release shows: points, or cells.")
    source: str = Field(description="Where the row is from.")


class ExportReport(Published):
    """`isuit export-atlas`."""

    release: str
    rows: int
    cells: int
    digest: str
    recorded: bool = Field(description="False when the release was there already and is written again.")
    file: str
    format: Format
    carried: int | None = Field(description="Rows kept from the release before; null for one that was there already.")
    withdrawn: int | None = Field(description="Rows of the release before that are gone.")
    standing: list[Standing] | None = Field(
        default=None, description="With --explain: where the release stands against attackers."
    )
    notes: list[str]
    log_head: str


class ReleaseCheck(Published):
    """`isuit check-release FILE`."""

    ok: bool
    release: str | None
    rows: int
    digest: str | None
    format: Format
    origin: str | None = Field(description="The log that the file proves to be in; null without a proof.")
    key: str | None = Field(description="Whose signature the proof has; to be held against a key that you trust.")
    trusted: bool = Field(description="Whether it was held against a key that was given.")
    problems: list[str]


class ReleaseRederivation(Published):
    """`isuit rederive RELEASE`, inside the store."""

    release: str
    verdict: Literal["identical", "equivalent", "erased", "diverged", "earlier-rules"] = Field(
        description="`earlier-rules`: rows differ; they were made by rules of noise that this version lacks."
    )
    largest_difference: float | None = Field(description="Null where the two do not have the same rows.")
    rows: int
    rows_again: int
    notes: list[str]
