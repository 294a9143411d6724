"""A fit in the hands of a program or a notebook, in memory or from a store: ask it, draw it, let it show itself.

    fit = isuit.fit(frame)
    fit.difficulty([12, 22], site="Tarifa")
    fit.score(22, "beginner")
    fit.plot()

Skill is an input of every score; there is no way from a rider to one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isuit.domain import Z95
from isuit.errors import InputError
from isuit.published import Comparison, FitRecord, ScoreReport, reading
from isuit.record import Diagnostics
from isuit.service import comparison, pictures, ranking, scoring
from isuit.service.details import published
from isuit.service.intervals import with_intervals
from isuit.service.summaries import summary_lines
from isuit.service.surface_maps import surface_in
from isuit.shown import Table, Text
from isuit.store.fits import StoredFit


def _table_of(conditions: Any) -> pa.Table:
    """A frame of any library, or a dict of columns, as an Arrow table."""
    try:
        return pa.table(conditions)
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(
            "the conditions are no table: give a frame or a dict of columns, as in {'metric': [12.0, 22.0]}"
        ) from None


class Fit:
    """One fit: its record, and what follows from it. `isuit.fit` and `isuit.open(...)` give these.

    >>> fit.kind
    'latent'
    >>> fit
    <latent fit isuit-f1:..., kitesurfing, wind, a = 1...>
    """

    def __init__(
        self,
        stored: StoredFit,
        counts: tuple[int, int, int],
        curves: Callable[[], pa.Table],
        skills: Callable[[], pa.Table],
        notes: Sequence[str] = (),
    ) -> None:
        self._stored, self._counts, self._curves, self._skills = stored, counts, curves, skills
        self.notes = tuple(notes)  # what reading said of the cohort: its dialect, rows left out

    @cached_property
    def record(self) -> FitRecord:
        """All that is recorded of the fit, as `isuit fits --json` gives it.

        >>> fit.record.estimator_version
        '6'
        """
        return published(self._stored)

    @property
    def fit_id(self) -> str:
        """The name that follows from cohort, configuration and estimator.

        >>> fit.fit_id
        'isuit-f1:...'
        """
        return self.record.fit_id

    @property
    def cohort_hash(self) -> str:
        """The cohort's hash.

        >>> fit.cohort_hash == isuit.hash(cohort).cohort_hash
        True
        """
        return self.record.cohort_hash

    @property
    def kind(self) -> str:
        """`latent`, or `single-curve` where skill and difficulty could not be told apart.

        >>> fit.kind
        'latent'
        """
        return self.record.kind

    @property
    def discrimination(self) -> float | None:
        """How sharply skill decides; None for a single curve.

        >>> round(fit.discrimination, 1)
        1...
        """
        return self.record.discrimination

    @cached_property
    def curves(self) -> Table:
        """Columns site, dimension, metric, difficulty and so on; a null site is the curve all sites share.

        A single curve has no difficulty; the 95 % interval of its suitability is in the last two, null in a latent fit.

        >>> fit.curves.column_names[:6]
        ['site', 'dimension', 'metric', 'difficulty', 'difficulty_se', 'suitability']
        >>> fit.curves.column_names[6:]
        ['suitability_lower', 'suitability_upper']
        """
        return Table(with_intervals(self._stored, self._curves()), f"curves of {self.fit_id[:17]}")

    @cached_property
    def skills(self) -> Table:
        """Riders of the gate's core with their skill; personal data.

        >>> fit.skills.column_names
        ['rider', 'skill_mean', 'skill_sd', 'n_outcomes', 'n_bins', 'usable']
        """
        return Table(self._skills(), f"skills of {self.fit_id[:17]}")

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """What the fit says about itself; docs/explanation/diagnostics.md explains each number.

        >>> fit.diagnostics.convergence.steps > 0
        True
        """
        return reading.diagnostics(self._stored.diagnostics)

    @cached_property
    def _scorer(self) -> scoring.Scorer:
        return scoring.Scorer.from_record(self._stored, self.curves.arrow)

    def difficulty(self, metric: float | Sequence[float], site: str | None = None) -> Table:
        """Difficulty at these metrics, in skill sds, with its 95 % band; null beyond what was observed.

        >>> fit.difficulty([12, 22]).column("difficulty").to_pylist()
        [..., ...]
        """
        at = np.atleast_1d(np.asarray(metric, np.float64))
        found = self._scorer.difficulty(at, site)
        value, se = (pa.array(part, mask=np.isnan(part)) for part in found)
        lower, upper = (
            pa.array(end, mask=np.isnan(end)) for end in (found[0] - Z95 * found[1], found[0] + Z95 * found[1])
        )
        columns = {"metric": at, "difficulty": value, "difficulty_se": se, "lower": lower, "upper": upper}
        return Table(pa.table(columns), f"difficulty{'' if site is None else f' at {site}'} (skill sd)")

    def score(
        self, metric: float | Mapping[str, float], skill: str | float | None = None, site: str | None = None
    ) -> ScoreReport:
        """Suitability for a declared skill, with its 95 % band.

        >>> easy, hard = fit.score(18, "expert"), fit.score(18, "beginner")
        >>> hard.suitability < easy.suitability
        True
        """
        return scoring.score_with(self._scorer, metric, skill, site)

    def score_table(self, conditions: Any, skill: str | float | None = None, strict: bool = False) -> Table:
        """The conditions (a table with metric and, optionally, site and skill) with their scores.

        A row that cannot be scored has an empty score and a reason; `strict` refuses it.

        >>> fit.score_table({"metric": [12.0, 99.0]}, skill="beginner").column("reason").null_count
        1
        """
        return Table(scoring.score_conditions(self._scorer, _table_of(conditions), skill, strict), "scores")

    def rank(self, metric: float | None = None) -> Table:
        """Sites from the hardest to the easiest, at this metric or each at its easiest, and how sure the order is.

        >>> sited.rank().column("site").to_pylist()[0] in ("north", "south")
        True
        """
        found = ranking.rank_with(self._scorer, self.curves.arrow, metric)
        return Table(pa.Table.from_pylist([site.model_dump() for site in found.sites]), "sites, the hardest first")

    def compare(self, other: Fit, *, linked: bool = False) -> Comparison:
        """This fit beside another of the same dimension; differences are the other minus this.

        >>> fit.compare(sited).compares
        'difficulty'
        """
        if not isinstance(other, Fit):
            raise InputError("compare takes another fit, as store['kite-2025'] gives it")
        sides = (comparison.Side(each._stored, each.curves.arrow, each.skills.arrow) for each in (self, other))
        return comparison.compare_sides(*sides, linked=linked)

    def summary(self) -> Text:
        """The fit in a few lines, as `isuit fit` prints it.

        >>> print(fit.summary())
        cohort    isuit-c1:...
        """
        return Text("\n".join(summary_lines(self.record, *self._counts)))

    def plot(self, path: str | Path | None = None) -> Any:
        """A matplotlib figure of the curves with their bands, which a notebook shows; also written to `path`.

        >>> len(fit.plot().axes)
        2
        """
        surface = surface_in(reading.parameters(self._stored.parameters))
        if path is not None:
            pictures.plot_fit(self.record, self.curves.arrow, Path(path), self._counts[0], surface)
        return pictures.figure_of(self.record, self.curves.arrow, self._counts[0], surface)

    draw = plot

    def _repr_html_(self) -> str:
        """What a notebook shows for a fit."""
        return self.summary()._repr_html_() + pictures.as_html(self.record, self.curves.arrow, self._counts[0])

    def __repr__(self) -> str:
        a = "no discrimination" if self.record.discrimination is None else f"a = {self.record.discrimination:.3f}"
        return f"<{self.record.kind} fit {self.fit_id[:17]}, {self.record.activity}, {self.record.dimension}, {a}>"
