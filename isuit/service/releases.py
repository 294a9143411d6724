"""The public atlas: `isuit export-atlas`.

A release is made under the exclusive lock, recorded and logged in one transaction, and then written to its file. A
release that is there already is written again from its stored rows, whatever happened to the store since.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from isuit import __version__
from isuit.audit.keys import signing_key
from isuit.audit.log import Event, append_event, log_head, read_log
from isuit.audit.proving import prove
from isuit.erasure.suppression import OptedOut
from isuit.errors import InputError, PolicyRefusal
from isuit.files import PUBLIC, CannotWrite, whole
from isuit.published import ExportReport, Format, MetricDescription, Proof, ReleaseMetadata
from isuit.published.releases import Standing
from isuit.release import dates
from isuit.release.bins import Bins
from isuit.release.eligibility import Topic
from isuit.release.files import files
from isuit.release.format import Declared, lines_digest, metadata_digest, with_proof
from isuit.release.grid import Grid, metric_along
from isuit.release.making import Draft, Progress, Series, Source, make_release
from isuit.release.names import EXTENSIONS
from isuit.release.noise import RULES
from isuit.release.one_series import shared_with
from isuit.release.policy import Policy, policy_of
from isuit.release.standing import standing
from isuit.release.timeline import Published
from isuit.service.declaring import Declarations, declared_before, declared_now, licence_now, refuse_other
from isuit.service.private_releases import private_release, promise
from isuit.service.recording import canonical_json
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.opening import Store
from isuit.store.query import rows
from isuit.store.releases import (
    RELEASE_TABLES,
    ReleaseRecord,
    insert_release,
    release_lines,
    release_records,
    riders_by_curve,
)


@dataclass(frozen=True)
class Exported:
    """The report, and why cells are missing: for the operator's terminal, never for a file."""

    report: ExportReport
    explanation: list[str]
    standing: list[Standing]  # against attackers


def export_atlas(
    store_path: Path,
    out: Path | None = None,
    *,
    release: date | str | None = None,
    kind: Format = "jsonl",
    options: Mapping[str, Any] | None = None,
    beside: Sequence[Path] = (),
    declared: Declarations | None = None,
    wait: float = DEFAULT_WAIT,
    progress: Progress | None = None,
) -> Exported:
    """Make the release of a date, or write again the one that is there. `options` can only tighten the policy.

    `beside` are the operator's other stores: nothing is released that one of them has released too. `declared` are
    units, CF names and the licence.
    """
    if isinstance(release, str):
        release = dates.read_date(release)
    day = dates.first_of_quarter(dates.today()) if release is None else release
    with open_store(store_path, write=True, wait=wait) as store:
        releases = release_records(store.connection)
        policy = _policy(store, releases, options or {})
        path = out or Path("atlas-site" if kind == "site" else f"atlas-{day.isoformat()}.{EXTENSIONS[kind]}")
        known = published_on(day, releases)
        if known is not None:
            refuse_other(declared or Declarations(), known)
            lines = release_lines(store.connection, known.release_id)
            before = _before(store, releases, day, kind)
            _write(
                lambda about: files(path, kind, lines, about, before),
                known.metadata,
                nullcontext,
                lambda: _proof(store, known),
            )
            notes = ["this release was made before; its rows are written again as they were published"]
            return Exported(_report(store, known, path, kind, None, notes), notes, _standing(store, known))
        _refuse_date(day, releases, policy)
        for other in beside:
            _refuse_second_series(store, other, wait)
        given = declared or Declarations()
        series = replace(_series(policy, releases), declared=declared_now(given, releases, _dimensions(store)))
        if policy.private is None:
            draft = make_release(source_of(store), day, series, progress)
        else:
            draft = private_release(store, source_of(store), day, series)
        explanation = _explained(draft)
        if not draft.rows:
            raise PolicyRefusal(_nothing_qualifies(explanation, policy))
        record, lines = _record(draft, day, series, licence_now(given.licence, releases))

        def record_it() -> Proof | None:
            insert_release(store.connection, record, lines, draft.records, draft.members)
            _log(store.connection, record, store.key)
            return _proof(store, record)

        before = _before(store, releases, day, kind)
        _write(lambda about: files(path, kind, lines, about, before), record.metadata, store.transaction, record_it)
        return Exported(_report(store, record, path, kind, draft, []), explanation, _standing(store, record))


def _refuse_second_series(store: Store, other: Path, wait: float) -> None:
    if other.resolve() == store.paths.directory.resolve():
        return
    with open_store(other, wait=wait) as theirs:
        shared, made = shared_with(store.connection, theirs.connection)
    if shared and made:
        raise PolicyRefusal(
            f"a store of --beside has {shared} of this store's cohorts and has released {made} times: two series of "
            "the same people, held against each other, single riders out; release them from that store alone."
        )


def _dimensions(store: Store) -> list[str]:
    """What units can be declared of: the dimensions of fits, and each of several metrics."""
    query = """
        SELECT DISTINCT coalesce(metric, dimension) AS name
        FROM ledger.fits LEFT JOIN ledger.metrics USING (cohort_hash) WHERE kind = 'latent' ORDER BY name
    """
    return [name for (name,) in rows(store.connection, query)]


def source_of(store: Store, as_of: datetime | None = None) -> Source:
    opted_out = OptedOut.of(store)
    # The usual case, nobody, needs no keyed digest per rider.
    known = opted_out.has if opted_out.digests else lambda rider: False
    return Source.of(store.connection, known, store.key, as_of)


def _policy(store: Store, releases: list[ReleaseRecord], options: Mapping[str, Any]) -> Policy:
    """The store's policy, tightened; from the first release on the series' own, and no other."""
    policy = policy_of(store.policy)
    tightened = policy.tightened(options)
    if not releases:
        return tightened
    series = _policy_of(releases[0])
    other = other_than(series, options)
    if other:
        values = ", ".join(f"{name} {getattr(series, name)}" for name in other)
        raise PolicyRefusal(
            f"the first release of this store fixed {values}: a second series with other values, held against the "
            "first, would single riders out; leave the option out."
        )
    return series


def other_than(series: Policy, options: Mapping[str, Any]) -> list[str]:
    """The options that would begin a second series."""
    return [name for name, value in options.items() if value is not None and value != getattr(series, name)]


def published_on(day: date, releases: list[ReleaseRecord]) -> ReleaseRecord | None:
    """The release of a date, which is never made twice."""
    return next((record for record in releases if record.release_date == day), None)


def _before(store: Store, releases: list[ReleaseRecord], day: date, kind: Format) -> list[Published]:
    """The releases before a date, as they were published; only a page and a site tell of them."""
    if kind not in ("html", "site"):
        return []
    earlier = [record for record in releases if record.release_date < day]
    found = []
    for each in earlier:
        proof = _proof(store, each)
        about = with_proof(each.metadata, None if proof is None else proof.as_json())
        found.append(Published.of(release_lines(store.connection, each.release_id), about))
    return found


def _policy_of(record: ReleaseRecord) -> Policy:
    return policy_of(json.loads(record.policy)["policy"])


def _refuse_date(day: date, releases: list[ReleaseRecord], policy: Policy) -> None:
    if day > dates.today():
        raise PolicyRefusal(f"the release date {day} is in the future; give today's or an earlier one with --release.")
    if releases and day < releases[-1].release_date:
        raise PolicyRefusal(
            f"the release date {day} is before the newest release, {releases[-1].release_date}; releases are made in "
            "order: give a later date with --release."
        )
    if releases and is_too_soon(day, releases[-1].release_date, policy):
        soonest = releases[-1].release_date + timedelta(days=policy.spacing_days)
        raise PolicyRefusal(
            f"the release date {day} is fewer than {policy.spacing_days} days after the newest release, "
            f"{releases[-1].release_date}: releases that follow closely tell whose outings came between them; give "
            f"{soonest} or a later date with --release."
        )


def is_too_soon(day: date, newest: date, policy: Policy) -> bool:
    return (day - newest).days < policy.spacing_days


def _series(policy: Policy, releases: list[ReleaseRecord]) -> Series:
    bins: dict[Topic, Bins | Grid] = {}
    discrimination: dict[Topic, float] = {}
    for record in releases:
        for entry in json.loads(record.policy)["bins"]:
            topic, own = _topic_of(entry)
            bins.setdefault(topic, own)
            if entry.get("discrimination") is not None:
                discrimination.setdefault(topic, entry["discrimination"])
    return Series(policy, bins, discrimination, tuple(releases))


def _topic_of(entry: Mapping[str, Any]) -> tuple[Topic, Bins | Grid]:
    if "metrics" not in entry:
        return Topic(entry["activity"], entry["dimension"]), Bins(entry["first"], entry["number"], entry["width"])
    grid = Grid.from_json(entry["metrics"])
    return Topic.of_several(entry["activity"], grid.metrics), grid


def series_before(record: ReleaseRecord, earlier: list[ReleaseRecord]) -> Series:
    """The series as it was when a release was made, with what was declared for it."""
    return replace(_series(_policy_of(record), earlier), declared=declared_before([*earlier, record]))


def _record(draft: Draft, day: date, kept: Series, licence: str | None) -> tuple[ReleaseRecord, list[str]]:
    from isuit.estimator import ESTIMATOR_VERSION

    policy = kept.policy
    lines = [row.line() for row in draft.rows]
    name = day.isoformat()
    topics = sorted(draft.bins.items(), key=lambda item: str(item[0]))
    metadata = ReleaseMetadata(
        release=name,
        rows=len(lines),
        cells=draft.cells,
        digest=lines_digest(lines),
        observed_before=dates.cut_off(day, policy.lag_days).date(),
        policy=policy.model_dump(exclude={"private"}),
        private=promise(policy),
        weaker_than_default=policy.weaker_than_default(),
        metrics=[
            _metric(topic, dimension, bins, draft.discrimination.get(topic), kept.declared)
            for topic, all_bins in topics
            for dimension, bins in all_bins.dimensions(topic.dimension).items()
        ],
        licence=licence,
        citation=f"Inverse Suitability atlas, release {name}, made with isuit {__version__}",
        estimator_version=ESTIMATOR_VERSION,
        tool_version=__version__,
    )
    series = {
        "policy": policy.model_dump(),
        "rules": RULES,
        "bins": [
            {
                "activity": topic.activity,
                "dimension": topic.dimension,
                **bins.as_json(),
                "discrimination": draft.discrimination.get(topic),
            }
            for topic, bins in topics
        ],
        "held": [[curve, bin_, times] for (curve, bin_), times in sorted(draft.held.items())],
    }
    record = ReleaseRecord(
        release_id=name,
        release_date=day,
        policy=canonical_json(series),
        metadata=metadata.line(),
        row_count=len(lines),
        cell_count=draft.cells,
        digest=metadata.digest,
        made_at=datetime.now(UTC).replace(tzinfo=None),
    )
    return record, lines


def _metric(
    topic: Topic, dimension: str, bins: Bins, discrimination: float | None, declared_of: Mapping[str, Declared]
) -> MetricDescription:
    declared = declared_of.get(metric_along(dimension) if topic.metrics else dimension, Declared())
    return MetricDescription(
        activity=topic.activity,
        dimension=dimension,
        lower=bins.lower,
        upper=bins.upper,
        bins=bins.number,
        width=bins.width,
        units=declared.units,
        standard_name=declared.standard_name,
        discrimination=discrimination,
    )


def _log(connection: duckdb.DuckDBPyConnection, record: ReleaseRecord, key: bytes) -> None:
    payload = {
        "release": record.release_id,
        "digest": record.digest,
        "metadata_digest": metadata_digest(json.loads(record.metadata)),
        "rows": record.row_count,
    }
    append_event(
        connection,
        "release-made",
        payload,
        rows={table: [record.release_id] for table in RELEASE_TABLES},
        tables=["personal.release_members"],
        key=key,
    )


def _proof(store: Store, record: ReleaseRecord) -> Proof | None:
    """That the log has the release, by the log up to its event: the same whenever the file is written again.

    None for a release of a version whose events did not cover the metadata, and for a private one: the proof is made
    of digests of everything else in the log, which has outcomes behind it and no noise.
    """
    if "private" in json.loads(record.metadata):
        return None

    def wanted(event: Event) -> bool:
        content = event.content if event.kind == "release-made" else {}
        return content.get("release") == record.release_id and "metadata_digest" in content

    events = read_log(store.connection)
    last = max((place for place, event in enumerate(events) if wanted(event)), default=None)
    return (
        None if last is None else prove(events[: last + 1], signing_key(store.connection, store.paths), wanted=wanted)
    )


def _write(
    content: Callable[[str], Mapping[Path, bytes]],
    metadata: str,
    transaction: Callable[[], AbstractContextManager[object]],
    record: Callable[[], Proof | None],
) -> None:
    """Record, write next to the targets, commit, then rename; `content` are the files that carry these metadata.

    So a full disk records nothing, no file is ever half there, and the file can hold the proof that it is recorded.
    """
    recorded = False
    try:
        with ExitStack() as written:  # its end gives the files their names
            with transaction():
                proof = record()
                about = with_proof(metadata, None if proof is None else proof.as_json())
                for target, data in (made := content(about)).items():
                    if len(made) > 2:  # a site: its folders are made as they are needed
                        _make_folder(target.parent)
                    written.enter_context(whole(target, PUBLIC)).write_bytes(data)
            recorded = True
    except CannotWrite as error:
        if recorded:
            raise InputError(
                f"the release is recorded, but its file cannot be written ({error.reason}); export the same date "
                "again with another --out."
            ) from None
        raise InputError(
            f"the release cannot be written ({error.reason}), and nothing was recorded; name another place with --out."
        ) from None


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(path, error.strerror or "no folder") from None


def _report(
    store: Store, record: ReleaseRecord, path: Path, kind: Format, draft: Draft | None, notes: list[str]
) -> ExportReport:
    return ExportReport(
        release=record.release_id,
        rows=record.row_count,
        cells=record.cell_count,
        digest=record.digest,
        recorded=draft is not None,
        file=str(path),
        format=kind,
        carried=None if draft is None else draft.carried,
        withdrawn=None if draft is None else draft.withdrawn,
        notes=notes,
        log_head=log_head(store.connection),
    )


def _standing(store: Store, record: ReleaseRecord) -> list[Standing]:
    return standing(riders_by_curve(store.connection, record.release_id), _policy_of(record))


def _explained(draft: Draft) -> list[str]:
    """Every reason, one line each, with its topic."""
    found: list[str] = []
    for topic, reasons in draft.reasons.items():
        name = f"{topic.activity}, {topic.dimension}"
        found.extend(f"{name}: {note}" for note in reasons.notes)
        for cell, why in sorted(reasons.cells.items()):
            found.extend(f"{name}: cell {cell}: {reason}" for reason in why)
    return found


def _nothing_qualifies(explanation: list[str], policy: Policy) -> str:
    if policy.private is not None:
        return (
            f"no declared cell has {policy.k} riders by the count with noise: nothing was written, and the budget is "
            "charged, because that no cell has them tells something too."
        )
    if not explanation:
        return (
            "nothing was released and nothing written: the store has no fit yet that can be (a fit of a "
            "varying discrimination has no public form); run `isuit fit` first."
        )
    reasons = "\n".join(f"  {line}" for line in explanation)
    return f"no cell qualifies for a release, and nothing was written or recorded:\n{reasons}"
