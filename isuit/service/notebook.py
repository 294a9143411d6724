"""The same use cases from Python: `isuit.open(path)`.

    store = isuit.open("isuit-store")
    fit = store.fit(frame, activity="kitesurfing", dimension="wind")
    fit.curves.to_pandas()
    fit.draw()

The store's lock is held only while a method runs, so a notebook left open blocks nobody. Tables are Arrow, hence
pandas (`to_pandas()`) and polars (`polars.from_arrow`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa

from isuit.domain import Exposure, FitConfig, GateReading, SkillPrior, Split
from isuit.published import FitRecord, FitSummary, RederiveReport, ScoreReport, Status, VerifyReport
from isuit.service import checks, fitting, history, inputs, pictures, scoring
from isuit.service.stores import DEFAULT_WAIT
from isuit.service.trajectory import trajectory
from isuit.store.sites import Coordinates


class FitResult:
    """One recorded fit: `record`, `curves` and `skills` read from the store, `summary` when it was just made."""

    def __init__(self, store: StoreHandle, record: FitRecord, summary: FitSummary | None = None) -> None:
        self._store, self.record, self.summary = store, record, summary

    @property
    def fit_id(self) -> str:
        return self.record.fit_id

    @property
    def curves(self) -> pa.Table:
        """Columns site, metric, difficulty, difficulty_se, suitability; a null site is the curve all sites share."""
        return history.curves(self._store.path, self.fit_id, self._store.wait)

    def score(self, metric: float, skill: str | float | None, site: str | None = None) -> ScoreReport:
        """Suitability for a declared skill."""
        return scoring.score(self._store.path, self.fit_id, metric, skill, site, self._store.wait)

    def score_table(self, conditions: Any, skill: str | float | None = None) -> pa.Table:
        """The conditions (a table with metric and, optionally, site and skill) with their scores."""
        return scoring.score_table(self._store.path, self.fit_id, pa.table(conditions), skill, self._store.wait)

    def rederive(self, cohort: Any = None) -> RederiveReport:
        return checks.rederive(self._store.path, self.fit_id, cohort, wait=self._store.wait)

    def draw(self, path: str | Path | None = None) -> Any:
        """A matplotlib figure of the curves with their bands, written to `path` if one is given."""
        if path is not None:
            pictures.plot_fit(self.record, self.curves, Path(path))
        return pictures.figure_of(self.record, self.curves)

    def _repr_html_(self) -> str:
        """What a notebook shows for a fit."""
        return pictures.as_html(self.record, self.curves)

    def __repr__(self) -> str:
        a = "no discrimination" if self.record.discrimination is None else f"a = {self.record.discrimination:.3f}"
        return f"<{self.record.kind} fit {self.fit_id[:17]}, {self.record.activity}, {self.record.dimension}, {a}>"


class StoreHandle:
    """A store by its path. Nothing is open between calls."""

    def __init__(self, path: str | Path, wait: float = DEFAULT_WAIT) -> None:
        self.path, self.wait = Path(path), wait

    def fit(
        self,
        cohort: Any,
        *,
        activity: str = "unspecified",
        dimension: str = "metric",
        anchor: str | Path | Iterable[tuple[float, float]] | None = None,
        sites: str | Path | Mapping[str, Coordinates] | None = None,
        gate: GateReading = "core",
        exposure: Exposure = "independent",
        split: Split = "rider",
        skill: SkillPrior = "normal",
        observed_until: date | None = None,
        columns: Mapping[str, str] | None = None,
        timezone: str | None = None,
    ) -> FitResult:
        """Fit a cohort (a frame with the Arrow interface, or a path) and record the result."""
        config = FitConfig(
            activity=inputs.checked_label(activity, "activity"),
            dimension=inputs.checked_label(dimension, "dimension"),
            gate=gate,
            anchor=_anchor(anchor, activity, dimension),
            exposure=exposure,
            split=split,
            skill=skill,
            observed_until=observed_until,
        )
        fitted = fitting.fit(
            self.path,
            cohort,
            config,
            columns=columns,
            timezone=timezone,
            sites=inputs.read_sites(Path(sites)) if isinstance(sites, (str, Path)) else sites,
            wait=self.wait,
        )
        return FitResult(self, fitted.detail.fit, fitted.summary())

    def __getitem__(self, reference: str) -> FitResult:
        """A fit by its id or its cohort's hash, or at least 8 digits of either."""
        return FitResult(self, history.show(self.path, reference, self.wait).fit)

    def fits(self) -> list[FitResult]:
        """Every fit, oldest first."""
        return [FitResult(self, record) for record in history.fits(self.path, self.wait)]

    def atlas(self) -> pa.Table:
        """The newest fit of every activity, dimension and site; in-house, not a release."""
        return history.atlas(self.path, self.wait)

    def trajectory(self, rider: str) -> pa.Table:
        """A rider's skill over successive cohorts."""
        return pa.Table.from_pylist([point.model_dump() for point in trajectory(self.path, rider, self.wait).points])

    def status(self) -> Status:
        return history.status(self.path, self.wait)

    def verify(self, known_head: str | None = None) -> VerifyReport:
        return checks.verify(self.path, known_head, self.wait)

    def __repr__(self) -> str:
        return f"<isuit store {self.path}>"


def _anchor(
    anchor: str | Path | Iterable[tuple[float, float]] | None, activity: str, dimension: str
) -> tuple[tuple[float, float], ...] | None:
    if anchor is None:
        return None
    if isinstance(anchor, (str, Path)):
        return inputs.read_anchor(Path(anchor), activity, dimension)
    return inputs.checked_points(list(anchor))
