"""A fit of a store, in Python: what every fit can do, and what an auditor does with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from isuit.published import BundleReport, FitSummary, PageWritten, RederiveReport
from isuit.reading import Form, spelled_out
from isuit.service import checks, reports
from isuit.service.bars import notebook_progress
from isuit.service.results import Fit
from isuit.service.stores import open_store
from isuit.store.fits import StoredFit, atlas_rows, skill_rows


class RecordedFit(Fit):
    """A fit of a store, which is opened only while a method runs."""

    def __init__(
        self,
        store_path: Path,
        wait: float,
        stored: StoredFit,
        counts: tuple[int, int, int],
        made: FitSummary | None = None,
    ) -> None:
        super().__init__(
            stored,
            counts,
            lambda: self._read(atlas_rows),
            lambda: self._read(skill_rows),
            () if made is None else made.notes,
        )
        self._store_path, self._wait = store_path, wait
        self.recorded = None if made is None else made.recorded  # whether it was new, if it was just made
        self.releasable = None if made is None else made.releasable

    def _read(self, rows: Any) -> pa.Table:
        with open_store(self._store_path, wait=self._wait) as store:
            return rows(store.connection, self.fit_id)

    @spelled_out(Form)
    def rederive(self, cohort: Any = None, **form: Unpack[Form]) -> RederiveReport:
        """Fit again, from the stored cohort or your own copy of it, and compare.

        >>> recorded.rederive().verdict
        'identical'
        """
        with notebook_progress() as progress:
            return checks.rederive(self._store_path, self.fit_id, cohort, wait=self._wait, progress=progress, **form)

    def report(self, out: str | Path) -> PageWritten:
        """Write one self-contained page.

        >>> recorded.report("report.html").out
        'report.html'
        """
        return reports.report(self._store_path, self.fit_id, Path(out), self._wait)

    def bundle(self, out: str | Path, with_cohort: bool = False) -> BundleReport:
        """Write what an auditor takes away; with the cohort, personal data leave the store.

        >>> recorded.bundle("bundle").with_cohort
        False
        """
        return checks.bundle(self._store_path, self.fit_id, Path(out), with_cohort=with_cohort, wait=self._wait)
