"""`isuit.fit`: a fit without a store. Nothing is recorded, nobody's opt-out is known, nothing is left behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import pyarrow.compute as pc

from isuit.audit.results import fit_id as name_of_fit
from isuit.domain import FitConfig
from isuit.ingest import read_cohort
from isuit.reading import Reading
from isuit.service.fitting import Progress, _silent, sites_of_cohort, with_nearby
from isuit.service.inputs import sites_of
from isuit.service.recording import record_of
from isuit.service.results import Fit
from isuit.store.fits import curve_rows, skill_table
from isuit.store.sites import Coordinates


def fit_in_memory(
    source: Any,
    config: FitConfig,
    *,
    sites: Mapping[str, Coordinates] | None = None,
    nearby: bool = False,
    progress: Progress = _silent,
    **reading: Unpack[Reading],
) -> Fit:
    """The same estimate that a store would record of this cohort, under the same name."""
    from isuit import estimator

    with read_cohort(source, progress=progress, **reading) as cohort:
        places, others = sites_of_cohort(cohort, sites_of(sites or {}))
        config = with_nearby(config, places) if nearby else config
        estimate = estimator.fit(cohort.observations(), config, progress)
        name = name_of_fit(cohort.cohort_hash, config.as_json(), estimator.ESTIMATOR_VERSION)
        record = record_of(name, cohort.cohort_hash, config, estimate, None)
        report = cohort.report
    curves = curve_rows(estimate)
    curves = curves.set_column(1, "dimension", pc.fill_null(curves.column("dimension"), config.dimension))
    skills = skill_table(estimate.skills) if estimate.skills is not None else skill_table_of_nobody()
    skills = skills.drop_columns(["path"])  # day by day: `isuit trajectory` of a store tells it
    counts = (report.outcomes, report.riders, report.sites)
    return Fit(record, counts, lambda: curves, lambda: skills, [*report.notes, *others])


def skill_table_of_nobody() -> Any:
    """Of a single curve: the same columns and no rows."""
    import numpy as np

    from isuit.domain import Skills

    none = np.zeros(0)
    return skill_table(Skills((), none, none, none.astype(np.int64), none.astype(np.int64), none.astype(bool)))
