"""What an auditor runs: verify, rederive, bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isuit.reading import Form

from .options import DEFAULT_STORE, DEFAULT_WAIT, FORM, Fit, FitOrRelease, Json, Query, Store, Wait, reads
from .output import note, print_json, progress_bar
from .proofs import Checkpoint, TrustedKey


def verify(
    known_head: Annotated[
        str | None, typer.Option("--known-head", help="A head you wrote down: proves that nothing since was rewritten.")
    ] = None,
    trusted_key: TrustedKey = None,
    checkpoint: Checkpoint = None,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Compute everything again from the tables and hold it against the log; exit 1 if anything disagrees."""
    from isuit.service.checks import verify as check

    with progress_bar(quiet=json) as progress:
        report = check(store, known_head, wait, progress, trusted_key=trusted_key, checkpoint=checkpoint)
    if json:
        print_json(report)
    else:
        for disagreement in report.disagreements:
            print(f"{disagreement.table}: {disagreement.sentence}")
        print(f"{report.log_length} events, log head {report.log_head or 'none'}")
        print(
            f"{report.cohorts} cohorts ({report.complete_cohorts} complete), {report.fits} fits, "
            f"{report.erased_leaves} erased leaves"
        )
        if report.checkpoint is not None and report.ok:
            print(f"the log extends the {report.checkpoint} events of the kept checkpoint")
        print("everything agrees" if report.ok else f"{len(report.disagreements)} disagreements")
    if not report.ok:
        raise typer.Exit(1)


def is_date(text: str) -> bool:
    """A release is named by its date, which no fit id or cohort hash looks like."""
    return len(text) == 10 and text[4] == text[7] == "-"


def _rederive_release(release: str, store: Path, wait: float, json: bool) -> None:
    from isuit.service.release_rederivation import rederive_release

    report = rederive_release(store, release, wait)
    if json:
        print_json(report)
    else:
        print(f"{report.verdict}: {report.rows} rows recorded, {report.rows_again} again")
        for sentence in report.notes:
            note(f"note: {sentence}")
    if report.verdict in ("diverged", "earlier-rules"):
        raise typer.Exit(1)


@reads(FORM)
def rederive(
    fit: FitOrRelease = None,
    cohort: Annotated[
        list[str] | None, typer.Option("--cohort", help="Your own copy of the cohort, instead of the stored one.")
    ] = None,
    query: Query = None,
    bundle: Annotated[Path | None, typer.Option("--bundle", help="A bundle, instead of a store.")] = None,
    *,
    reading: Form,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Fit again with the recorded configuration and compare: identical, equivalent, erased or diverged (exit 1).

    A release (its date) whose noise and rounding follow rules of an earlier version is earlier-rules (exit 1).
    """
    from isuit.errors import InputError
    from isuit.service import checks
    from isuit.service.inputs import cohort_source

    if fit is not None and is_date(fit):
        _rederive_release(fit, store, wait, json)
        return
    if (fit is None) == (bundle is None):
        raise InputError("name a fit of the store, or a bundle with --bundle, and not both")
    source = None if cohort is None and query is None else cohort_source(cohort or [], query)
    with progress_bar(quiet=json) as progress:
        if bundle is not None:
            report = checks.rederive_bundle(bundle, source, progress=progress, **reading)
        else:
            assert fit is not None
            report = checks.rederive(store, fit, source, wait=wait, progress=progress, **reading)
    if json:
        print_json(report)
    else:
        largest = "" if report.largest_difference is None else f", largest difference {report.largest_difference:.3g}"
        print(f"{report.verdict}{largest}")
        for sentence in report.disagreements:
            print(sentence)
        for sentence in report.notes:
            note(f"note: {sentence}")
    if report.verdict == "diverged":
        raise typer.Exit(1)


def bundle(
    fit: Fit,
    out: Annotated[Path, typer.Option("--out", help="A new directory for the bundle.")],
    with_cohort: Annotated[
        bool, typer.Option("--with-cohort", help="Also the canonical cohort: personal data leaves the store.")
    ] = False,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Write what an auditor takes away: the fit's record, its curves, the log, and on request the cohort."""
    from isuit.service.checks import bundle as write

    report = write(store, fit, out, with_cohort=with_cohort, wait=wait)
    if json:
        print_json(report)
        return
    print(f"{len(report.files)} files in {out}\nlog head {report.log_head}")
    if with_cohort:
        note("note: the bundle holds personal data; erasure cannot reach it, so keep track of it")
