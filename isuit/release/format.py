"""What a release is made of when it leaves the store: a row, its metadata, and the digest over the rows.

A row is one line of JSON with its keys in the order of the model; the digest of a release is the SHA-256 of these
lines, each ending in LF, so that `head -n -1 atlas.jsonl | sha256sum` computes it. Other formats carry the same rows:
read back into the model they give the same lines and the same digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import date
from typing import Literal

from pydantic import Field

from isuit.published import Published

Format = Literal["jsonl", "csv", "geoparquet", "geojson", "html"]
FORMAT = "isuit-atlas/1"
LICENCE = "CC-BY-4.0"
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


class ReleaseRow(Published):
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
    difficulty: float | None = Field(description="Rounded; null where saturated or incomparable.")
    difficulty_se: float | None = Field(description="Standard error, to one digit.")
    expert_difficulty: float | None = Field(description="The expert curve's; null without one.")
    discrimination: float | None = Field(description="Rounded; shared by the rows that were computed together.")
    contributors: Literal["below 10", "10-19", "20-49", "50-99", "100+"]
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


class MetricDescription(Published):
    """The bins of one activity and dimension, fixed by the first release that has it."""

    activity: str
    dimension: str
    lower: float
    upper: float
    bins: int
    width: float
    units: str | None
    standard_name: str | None = Field(description="CF standard name, where there is one.")


class ReleaseMetadata(Published):
    """The last line of a JSON Lines release; a file beside a CSV; the footer of a GeoParquet."""

    metadata: Literal[True] = True
    format: Literal["isuit-atlas/1"] = "isuit-atlas/1"
    release: str
    rows: int
    cells: int
    digest: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 over the rows as JSON Lines.")
    observed_before: date = Field(description="The cut-off: no outcome observed on or after this day is in it.")
    policy: dict[str, float | int]
    weaker_than_default: list[str] = Field(description="Values of the policy that protect less than the defaults.")
    identification: str = IDENTIFICATION
    difficulty_units: str = DIFFICULTY_UNITS
    metrics: list[MetricDescription]
    join: str = JOIN
    licence: str = LICENCE
    citation: str
    estimator_version: str
    tool_version: str

    def line(self) -> str:
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


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
    notes: list[str]
    log_head: str


class ReleaseCheck(Published):
    """`isuit check-release FILE`."""

    ok: bool
    release: str | None
    rows: int
    digest: str | None
    format: Format
    problems: list[str]


class ReleaseRederivation(Published):
    """`isuit rederive RELEASE`, inside the store."""

    release: str
    verdict: Literal["identical", "equivalent", "erased", "diverged"]
    largest_difference: float | None = Field(description="Null where the two do not have the same rows.")
    rows: int
    rows_again: int
    notes: list[str]


SCHEMAS: dict[str, type[Published]] = {
    "release-row": ReleaseRow,
    "release-metadata": ReleaseMetadata,
    "export-atlas": ExportReport,
    "check-release": ReleaseCheck,
    "rederive-release": ReleaseRederivation,
}


def lines_digest(lines: Iterable[str]) -> str:
    state = hashlib.sha256()
    for line in lines:
        state.update(line.encode() + b"\n")
    return state.hexdigest()


# Dimensions by the names that cohorts and expert profiles give them: CF standard name of each.
_STANDARD_NAMES = {
    "wind": "wind_speed",
    "wind_speed": "wind_speed",
    "gust": "wind_speed_of_gust",
    "wind_gust": "wind_speed_of_gust",
    "temperature": "air_temperature",
    "air_temperature": "air_temperature",
    "temp": "air_temperature",
    "apparent_temp": "apparent_air_temperature",
    "water_temp": "sea_surface_temperature",
    "water_temperature": "sea_surface_temperature",
    "wave": "sea_surface_wave_significant_height",
    "wave_height": "sea_surface_wave_significant_height",
    "wave_period": "sea_surface_wave_mean_period",
    "visibility": "visibility_in_air",
    "precipitation": "lwe_precipitation_rate",
    "swe": "lwe_thickness_of_surface_snow_amount",
    "snow_depth": "surface_snow_thickness",
    "humidity": "relative_humidity",
    "uv": "ultraviolet_index",
    "uv_index": "ultraviolet_index",
}
# Units that a dimension's name ends with, in UDUNITS.
_UNITS = {
    "kn": "knot",
    "kt": "knot",
    "ms": "m s-1",
    "kmh": "km h-1",
    "c": "degC",
    "m": "m",
    "km": "km",
    "mm": "mm",
    "mm_h": "mm h-1",
    "s": "s",
    "deg": "degree",
}


def described(dimension: str) -> tuple[str | None, str | None]:
    """CF standard name and units of a dimension, as far as its name tells them."""
    name = dimension.casefold().replace("-", "_").replace(" ", "_")
    for suffix, units in sorted(_UNITS.items(), key=lambda item: -len(item[0])):
        if name.endswith(f"_{suffix}"):
            return _STANDARD_NAMES.get(name.removesuffix(f"_{suffix}")), units
    return _STANDARD_NAMES.get(name), None
