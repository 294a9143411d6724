"""`isuit delete-rider`, `show-rider`, `reinstate` and `pseudonymise`: what concerns persons.

No message of these commands holds an ID: they say "this rider", or the place of an ID among those given.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isuit.reading import Reading

from .options import DEFAULT_STORE, DEFAULT_WAIT, READING, Files, Json, Query, Store, Wait, reads
from .output import note, print_json, print_table, progress_bar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isuit.published import TableCount

# An ID may begin with a dash, and the parser's error about an unknown option would repeat it. No -h either: the parser
# would find it in `-dash`, print this help and erase nobody.
ANY_ID = {"ignore_unknown_options": True, "help_option_names": ["--help"]}
Rider = Annotated[str, typer.Argument(metavar="ID", help="The rider's ID, exactly as the cohort spells it.")]


def delete_rider(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID...", help="Riders' IDs, exactly as the cohorts spell them.")
    ] = None,
    from_file: Annotated[
        Path | None, typer.Option("--from-file", help="One ID per line, or - for standard input.", allow_dash=True)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the counts and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, even on a terminal.")] = False,
    no_suppress: Annotated[bool, typer.Option("--no-suppress", help="Let later imports bring the rider back.")] = False,
    receipt: Annotated[
        Path | None, typer.Option("--receipt", help="Write the requester's copy of the receipt, bound to the ID.")
    ] = None,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Erase riders from every cohort, fit and byte of the store, and print the receipt."""
    from isuit.service import riders

    chosen = list(ids or [])
    if from_file is not None:
        chosen += riders.read_ids(_read(from_file))
    asks = sys.stdin.isatty() and not yes and str(from_file) != "-"
    if dry_run or asks:
        plan = riders.plan_erasure(store, chosen, wait)
        if dry_run:
            _print_counts(plan.tables) if not json else print_json(plan)
            return
        _print_counts(plan.tables, error=True)
        if not typer.confirm(f"Erase {plan.riders} rider(s) for good?", err=True):
            note("Nothing was erased.")
            raise typer.Exit(2)
    with progress_bar(quiet=json) as progress:
        done = riders.delete_riders(
            store, chosen, suppress=not no_suppress, copy_to=receipt, wait=wait, progress=progress
        )
    if json:
        print_json(done)
        return
    _print_counts(done.tables)
    for same in done.same_names:
        print(f"kept: {same.place} holds the same word {same.count} times, as a name of something else")
    if done.bundles_with_rows:
        print(f"{done.bundles_with_rows} bundles with rows of these cohorts were handed out before: ask for them back")
    print(f"receipt {done.receipt_id}")
    print(f"log head {done.log_head}")
    print(f"Erased {done.riders} rider(s).")


def receipt(
    file: Annotated[Path, typer.Argument(help="The file of delete-rider --receipt.")],
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Complete a requester's copy of a receipt whose command was cut short, and prove anew that the log has it."""
    from isuit.service import riders

    done = riders.complete_copy(store, file, wait)
    assert done.receipt is not None
    if json:
        print_json(done)
    else:
        print(f"receipt {done.receipt.receipt_id}\nlog head {done.receipt.log_head}")


def show_rider(
    rider: Rider,
    out: Annotated[Path | None, typer.Option("--out", help="Write everything as JSON into this file.")] = None,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Show everything that the store holds about a person: the same tables and counts as an erasure."""
    from isuit.service import riders

    report = riders.show_rider(store, rider, wait)
    if out is not None:
        riders.write_private(out, report.model_dump_json(indent=2) + "\n")
    if json:
        print_json(report)
        return
    held = [(table, str(count.removed)) for table, count in sorted(report.tables.items())]
    print_table(("table", "held"), held, [f"{name:<26}{count:>12}" for name, count in [("table", "held"), *held]])
    if out is not None:
        return
    for table, found in report.rows.items():
        if found:
            print(f"\n{table}\n" + "\t".join(found[0]))
            for row in found:
                print("\t".join("" if value is None else str(value) for value in row.values()))


def reinstate(rider: Rider, store: Store = DEFAULT_STORE, wait: Wait = DEFAULT_WAIT, json: Json = False) -> None:
    """End a rider's suppression after a new opt-in: later cohorts may hold them again."""
    from isuit.service import riders

    done = riders.reinstate(store, rider, wait)
    if json:
        print_json(done)
    else:
        print(f"This rider is no longer suppressed; what was erased does not come back.\nlog head {done.log_head}")


@reads(READING)
def pseudonymise(
    files: Files,
    out: Annotated[Path, typer.Option("--out", help="The file to write: .parquet, .arrow, .feather, .csv or .tsv.")],
    query: Query = None,
    *,
    reading: Reading,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Write a cohort with random tokens instead of rider IDs; the store keeps the map."""
    from isuit.service.inputs import cohort_source
    from isuit.service.pseudonymising import pseudonymise as run

    done = run(store, cohort_source(files, query), out, wait=wait, **reading)
    for sentence in done.notes:
        note(sentence)
    if json:
        print_json(done)
    else:
        print(done.cohort_hash)
        note(
            f"{done.outcomes} outcomes of {done.riders} riders, {done.new_tokens} new tokens\nlog head {done.log_head}"
        )


def _read(path: Path) -> bytes:
    from isuit.documents import read_bytes
    from isuit.errors import InputError

    if str(path) == "-":
        return sys.stdin.buffer.read()
    try:
        return read_bytes(path, "the list of IDs")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path.") from None


def _print_counts(tables: Mapping[str, TableCount], error: bool = False) -> None:
    columns = ("table", "before", "removed", "after")
    rows = [(table, str(count.before), str(count.removed), str(count.after)) for table, count in sorted(tables.items())]
    lines = [f"{name:<26}{before:>12}{removed:>12}{after:>12}" for name, before, removed, after in [columns, *rows]]
    if error:
        note("\n".join(lines))
    else:
        print_table(columns, rows, lines)
