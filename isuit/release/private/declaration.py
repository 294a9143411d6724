"""What a policy declares for the private mode, before any outcome is looked at: the budget, the topics, bins and cells.

Whatever shapes a release and is not declared here would have to be computed from outcomes, and paid for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

if TYPE_CHECKING:  # every command reads a policy, and few need arrays
    from isuit.release.bins import Bins

GLOBAL = "global"
MOST_CELLS = 1_000  # of a topic: its curves are solved together
MOST_BINS = 40


class PrivateTopic(BaseModel):
    """One activity and dimension: bins of equal width from `lower` on, and the cells that have a curve."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    activity: str = Field(min_length=1)
    dimension: str = Field(min_length=1)
    lower: float = Field(description="of the lowest bin: a whole multiple of the width")
    width: float = Field(gt=0)
    bins: int = Field(ge=4, le=MOST_BINS)
    cells: tuple[str, ...] = Field(
        default=(GLOBAL,),
        min_length=1,
        max_length=MOST_CELLS,
        description="H3 cells at the policy's resolution, or `global` alone for one curve of all outcomes",
    )

    @field_validator("cells")
    @classmethod
    def _cells(cls, cells: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(cells)) < len(cells):
            raise ValueError("a cell is named twice")
        if GLOBAL in cells:
            if len(cells) > 1:
                raise ValueError("global is one curve of all outcomes, and stands alone")
            return cells
        import h3  # only a private policy needs it

        if not all(h3.is_valid_cell(cell) and cell == cell.lower() for cell in cells):
            raise ValueError("a cell is not an H3 cell of 15 lower-case hexadecimal digits")
        return tuple(sorted(cells))

    @model_validator(mode="after")
    def _round_edges(self) -> PrivateTopic:
        if abs(self.lower / self.width - round(self.lower / self.width)) > 1e-9:
            raise ValueError("lower is not a whole multiple of width")
        return self

    @property
    def bins_of_metric(self) -> Bins:
        from isuit.release.bins import Bins

        return Bins(round(self.lower / self.width), self.bins, self.width)


class Private(BaseModel):
    """(epsilon, delta)-differential privacy by person, over all releases of the store together."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    epsilon: float = Field(gt=0, le=20, description="of all releases together")
    delta: float = Field(gt=0, le=1e-3, description="of all releases together; far below one over the riders")
    releases: int = Field(ge=1, le=1000, description="that the budget is divided into, in equal parts")
    topics: tuple[PrivateTopic, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _once(self) -> Private:
        from isuit.spelling import fold

        named = [(fold(topic.activity), fold(topic.dimension)) for topic in self.topics]
        if len(set(named)) < len(named):
            raise ValueError("a topic is declared twice")
        return self
