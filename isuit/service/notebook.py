"""The same use cases from Python: `isuit.open(path)`.

    store = isuit.open("isuit-store")
    fit = store.fit(frame, activity="kitesurfing", dimension="wind")
    fit.curves.to_pandas()
    fit.plot()

The store's lock is held only while a method runs, so a notebook left open blocks nobody. Tables are Arrow, hence
pandas (`to_pandas()`) and polars (`polars.DataFrame(table)`). A method does what the command of its name does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from isuit.domain import Discrimination, Exposure, GateReading, SkillPrior, Split
from isuit.published import (
    Added,
    Created,
    ErasurePlan,
    ErasureReceipt,
    ExportReport,
    Format,
    HeadReport,
    KeyRotated,
    Proved,
    Pseudonymised,
    Reinstated,
    ReleaseRederivation,
    RequesterCopy,
    RiderReport,
    SeriesList,
    Status,
    VerifyReport,
)
from isuit.reading import Form, Reading, spelled_out
from isuit.service import aliasing, checks, fitting, heads, history, inputs, proving, releases, riders
from isuit.service import series as series_service
from isuit.service.bars import notebook_progress
from isuit.service.configuring import Anchor, config_of
from isuit.service.declaring import Declarations
from isuit.service.pseudonymising import pseudonymise
from isuit.service.recorded import RecordedFit
from isuit.service.release_rederivation import rederive_release
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.service.trajectory import trajectory
from isuit.shown import Table, record_as_html
from isuit.store.cohorts import find_cohort
from isuit.store.fits import StoredFit, find_fit, fit_records
from isuit.store.opening import Store
from isuit.store.sites import Coordinates


class StoreHandle:
    """A store by its path. Nothing is open between calls.

    >>> store
    <isuit store ...>
    """

    def __init__(self, path: str | Path, wait: float = DEFAULT_WAIT) -> None:
        self.path, self.wait = Path(path), wait

    def init(self, policy: Mapping[str, Any] | None = None) -> Created:
        """Make the store with a disclosure policy of its own; `fit` makes one with the defaults.

        >>> isuit.open("another").init({"k": 20}).policy["k"]
        20
        """
        return history.init(self.path, policy, self.wait)

    @spelled_out(Form)
    def fit(
        self,
        cohort: Any,
        *,
        activity: str = "unspecified",
        dimension: str | None = None,
        metrics: Sequence[str] | None = None,
        anchor: Anchor | None = None,
        sites: str | Path | Mapping[str, Coordinates] | None = None,
        nearby: bool = False,
        gate: GateReading = "core",
        exposure: Exposure = "independent",
        split: Split = "rider",
        skill: SkillPrior = "normal",
        discrimination: Discrimination = "constant",
        observed_until: date | None = None,
        memory: str | int | None = None,
        client: Any = None,
        **form: Unpack[Form],
    ) -> RecordedFit:
        """Fit a cohort (a frame with the Arrow interface, arrays by name, or a path) and record the result.

        `metrics` names the columns that are conditions, where there are several or the one is not called `metric`.
        With `nearby`, sites that lie near one another, by the coordinates of `sites`, tell of one another's level.
        `client` is a `distributed.Client`, on whose workers the fit is made.

        >>> again = store.fit(cohort, activity="kitesurfing", dimension="wind")
        >>> again.recorded  # it was there already, and is confirmed
        False
        """
        config = config_of(
            activity=activity,
            dimension=dimension,
            metrics=metrics,
            anchor=anchor,
            gate=gate,
            exposure=exposure,
            split=split,
            skill=skill,
            discrimination=discrimination,
            observed_until=observed_until,
        )
        with notebook_progress() as progress:
            fitted = fitting.fit(
                self.path,
                cohort,
                config,
                metrics=metrics,
                sites=inputs.read_sites(Path(sites)) if isinstance(sites, (str, Path)) else sites,
                nearby=nearby,
                wait=self.wait,
                memory=memory,
                client=client,
                progress=progress,
                **form,
            )
        counts = (fitted.outcomes, fitted.riders, fitted.sites)
        return RecordedFit(self.path, self.wait, fitted.stored, counts, fitted.summary())

    @spelled_out(Reading)
    def add(self, series: str, cohort: Any, **reading: Unpack[Reading]) -> Added:
        """Add outcomes to a series, for `fit(isuit.series(name))`; what it has already adds nothing.

        >>> store.add("kite", cohort).parts
        1
        """
        return series_service.add(self.path, series, cohort, wait=self.wait, **reading)

    def series(self) -> SeriesList:
        """The series of the store, by name, with what each holds now.

        >>> [each.series for each in store.series().series]
        ['kite']
        """
        return series_service.listing(self.path, self.wait)

    def __getitem__(self, reference: str) -> RecordedFit:
        """A fit by its id or its cohort's hash, at least 8 digits of either, or an alias.

        >>> store[recorded.fit_id].kind
        'latent'
        """
        with open_store(self.path, wait=self.wait) as store:
            return self._found(store, find_fit(store.connection, reference))

    def fits(self) -> list[RecordedFit]:
        """Every fit, oldest first.

        >>> len(store.fits())
        1
        """
        with open_store(self.path, wait=self.wait) as store:
            return [self._found(store, record) for record in fit_records(store.connection)]

    def _found(self, store: Store, record: StoredFit) -> RecordedFit:
        cohort = find_cohort(store.connection, record.cohort_hash)
        assert cohort is not None
        return RecordedFit(self.path, self.wait, record, (cohort.outcomes, cohort.riders, cohort.sites))

    def alias(self, name: str, fit: str | RecordedFit | None) -> None:
        """Let a name mean a fit from now on, or nothing any more; the log keeps what it meant.

        >>> store.alias("kite-2026", recorded)
        >>> store["kite-2026"].fit_id == recorded.fit_id
        True
        """
        if fit is None:
            aliasing.remove_alias(self.path, name, self.wait)
        else:
            aliasing.set_alias(self.path, name, fit if isinstance(fit, str) else fit.fit_id, self.wait)

    def aliases(self) -> dict[str, str]:
        """Every alias with its fit id.

        >>> sorted(store.aliases())
        ['kite-2026']
        """
        return {found.alias: found.fit_id for found in aliasing.listed(self.path, self.wait).aliases}

    def atlas(self, out: str | Path | None = None) -> Table:
        """The newest fit of every activity, dimension and site; in-house, not a release. Also written to `out`.

        >>> store.atlas().num_rows
        101
        """
        return Table(history.atlas(self.path, self.wait, None if out is None else Path(out)), "atlas, in-house")

    def trajectory(self, rider: str) -> Table:
        """A rider's skill over successive cohorts.

        >>> store.trajectory("rider-0001").column("usable").to_pylist()
        [True]
        """
        points = trajectory(self.path, rider, self.wait).points
        return Table(pa.Table.from_pylist([point.model_dump() for point in points]), "trajectory")

    def status(self) -> Status:
        """Numbers, the policy and the head of the log.

        >>> store.status().fits
        1
        """
        return history.status(self.path, self.wait)

    def verify(
        self,
        known_head: str | None = None,
        *,
        trusted_key: str | Path | None = None,
        checkpoint: str | Path | None = None,
    ) -> VerifyReport:
        """Hold every table against the log; a head that you wrote down proves that nothing since was rewritten.

        So does a signed checkpoint that you kept, by the store's key.

        >>> store.verify(store.status().log_head).ok
        True
        """
        key, kept = (None if given is None else Path(given) for given in (trusted_key, checkpoint))
        with notebook_progress() as progress:
            return checks.verify(self.path, known_head, self.wait, progress, trusted_key=key, checkpoint=kept)

    def head(self, *, signed: bool = False) -> HeadReport:
        """Where the log stands; signed, it is what others keep to hold against the store later.

        >>> store.head().origin
        'isuit/...'
        """
        return heads.head(self.path, signed=signed, wait=self.wait)

    def rotate_key(self) -> KeyRotated:
        """Replace the key that signs heads by a new one, which the old one signs for.

        >>> store.rotate_key().key == store.head().key
        True
        """
        return heads.rotate_key(self.path, self.wait)

    def prove(self, reference: str | None, out: str | Path, *, since: str | Path | None = None) -> Proved:
        """Write a proof that a fit or release is in the log, or that the log extends a kept checkpoint.

        >>> store.prove(recorded.fit_id, "proof.json").file
        'proof.json'
        """
        kept = None if since is None else Path(since)
        return proving.prove(self.path, reference, Path(out), since=kept, wait=self.wait)

    @spelled_out(Reading)
    def pseudonymise(self, cohort: Any, out: str | Path, **reading: Unpack[Reading]) -> Pseudonymised:
        """Write a cohort with random tokens instead of IDs; the store keeps the map.

        >>> store.pseudonymise("cohort.parquet", "tokens.parquet").riders
        24
        """
        return pseudonymise(self.path, cohort, Path(out), wait=self.wait, **reading)

    def show_rider(self, rider: str) -> RiderReport:
        """Everything that the store holds about a person.

        >>> sorted(store.show_rider("rider-0001").tables)[1]
        'personal.outcomes'
        """
        return riders.show_rider(self.path, rider, self.wait)

    def plan_erasure(self, *ids: str) -> ErasurePlan:
        """What `delete_rider` would remove; nothing changes.

        >>> store.plan_erasure("rider-0001").tables["personal.outcomes"].removed
        15
        """
        return riders.plan_erasure(self.path, ids, self.wait)

    def delete_rider(self, *ids: str, suppress: bool = True, receipt: str | Path | None = None) -> ErasureReceipt:
        """Erase riders from every cohort, fit and byte of the store; it does not ask.

        >>> store.delete_rider("rider-0007").riders
        1
        """
        copy_to = None if receipt is None else Path(receipt)
        with notebook_progress() as progress:
            return riders.delete_riders(
                self.path, ids, suppress=suppress, copy_to=copy_to, wait=self.wait, progress=progress
            )

    def receipt(self, file: str | Path) -> RequesterCopy:
        """Complete a requester's copy of a receipt whose command was cut short.

        >>> _ = store.delete_rider("rider-0009", receipt="copy.json")
        >>> store.receipt("copy.json").proof is None
        False
        """
        return riders.complete_copy(self.path, Path(file), self.wait)

    def reinstate(self, rider: str) -> Reinstated:
        """End a rider's suppression after a new opt-in.

        >>> store.reinstate("rider-0007").suppressed
        False
        """
        return riders.reinstate(self.path, rider, self.wait)

    def export_atlas(
        self,
        out: str | Path | None = None,
        *,
        release: date | str | None = None,
        format: Format = "jsonl",
        k: int | None = None,
        lag_days: int | None = None,
        resolution: int | None = None,
        beside: Sequence[str | Path] = (),
        units: Mapping[str, str] | None = None,
        standard_names: Mapping[str, str] | None = None,
        licence: str | None = None,
    ) -> ExportReport:
        """Write the public atlas under the disclosure policy, which options can only tighten.

        `beside` are your other stores: what one of them has released is refused. `units` and `standard_names` are by
        dimension.

        >>> store.export_atlas("atlas.jsonl", release="2026-01-01", units={"wind": "knot"}).rows > 0
        True
        """
        options = {"k": k, "lag_days": lag_days, "resolution": resolution}
        with notebook_progress() as progress:
            return releases.export_atlas(
                self.path,
                None if out is None else Path(out),
                release=release,
                kind=format,
                options=options,
                beside=[Path(other) for other in beside],
                declared=Declarations(units or {}, standard_names or {}, licence),
                wait=self.wait,
                progress=progress,
            ).report

    def rederive_release(self, release: str) -> ReleaseRederivation:
        """Make the release of a date again and compare.

        >>> store.rederive_release("2026-01-01").verdict
        'identical'
        """
        return rederive_release(self.path, release, self.wait)

    def __repr__(self) -> str:
        return f"<isuit store {self.path}>"

    def _repr_html_(self) -> str:
        """What a notebook shows for a store."""
        return record_as_html(f"isuit store {self.path}", self.status().as_json())
