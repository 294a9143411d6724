"""What is public in Python: all that the command line does, each with types and an example that is run."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from isuit.cli.app import COMMANDS as LISTED

import isuit
from isuit.errors import InputError
from isuit.service.notebook import StoreHandle
from isuit.service.recorded import RecordedFit
from isuit.service.results import Fit
from isuit.shown import Table

# Where a command's work is done from Python; `store` is `isuit.open(...)`, `fit` one of its fits.
COMMANDS = {
    "fit": "store.fit", "fits": "store.fits", "show": "fit.summary", "report": "fit.report", "score": "fit.score",
    "atlas": "store.atlas", "trajectory": "store.trajectory", "verify": "store.verify", "rederive": "fit.rederive",
    "bundle": "fit.bundle", "hash": "isuit.hash", "canonicalise": "isuit.canonicalise",
    "delete-rider": "store.delete_rider", "show-rider": "store.show_rider", "reinstate": "store.reinstate",
    "pseudonymise": "store.pseudonymise", "export-atlas": "store.export_atlas",
    "check-release": "isuit.check_release", "status": "store.status", "init": "store.init",
    "latent-demo": "isuit.latent_demo", "head": "store.head", "rotate-key": "store.rotate_key",
    "receipt": "store.receipt", "prove": "store.prove", "check-proof": "isuit.check_proof", "witness": "isuit.witness",
    "rank": "fit.rank", "compare": "fit.compare", "alias": "store.alias", "add": "store.add",
    "series": "store.series",
}  # fmt: skip
OWNERS: dict[str, Any] = {"store": StoreHandle, "fit": RecordedFit, "isuit": isuit}


def public() -> Iterator[tuple[str, Any]]:
    """Every public function, and every public method and property of the classes that they give."""
    for name in isuit.__all__:
        if inspect.isfunction(getattr(isuit, name)):
            yield f"isuit.{name}", getattr(isuit, name)
    for owner in (Fit, RecordedFit, StoreHandle):
        for name, member in vars(owner).items():
            if not name.startswith("_") or name == "__getitem__":
                yield f"{owner.__name__}.{name}", member


SMALL = {"rider": ["a", "b"] * 6, "metric": [float(wind) for wind in range(12)], "outcome": [1, 0, 0] * 4}


@pytest.fixture(scope="module")
def small() -> isuit.Fit:
    """A single curve of a dozen outcomes."""
    return isuit.fit(SMALL)


def test_a_notebook_can_do_what_the_command_line_does() -> None:
    assert {command.name for command in LISTED} == set(COMMANDS)
    for place in COMMANDS.values():
        owner, name = place.split(".")
        assert callable(getattr(OWNERS[owner], name)), place


def test_everything_public_has_types_and_an_example() -> None:
    for name, member in public():
        function = getattr(member, "func", None) or getattr(member, "fget", None) or member
        assert ">>>" in (inspect.getdoc(function) or ""), f"{name} has no example"
        given = inspect.signature(function)
        assert given.return_annotation is not inspect.Signature.empty, name
        for parameter in list(given.parameters.values())[0 if name.startswith("isuit.") else 1 :]:
            assert parameter.annotation is not inspect.Parameter.empty, f"{name}: {parameter.name}"


@pytest.mark.long
def test_every_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cohort_table: Callable[..., pa.Table]
) -> None:
    monkeypatch.chdir(tmp_path)
    cohort = cohort_table(1)
    pq.write_table(cohort, "cohort.parquet")
    store = isuit.open("isuit-store")
    recorded = store.fit(cohort, activity="kitesurfing", dimension="wind")
    fit = isuit.fit(cohort, activity="kitesurfing", dimension="wind")
    sited = isuit.fit(cohort_table(1, sites=("north", "south")), activity="kitesurfing", dimension="wind")
    names = {"isuit": isuit, "store": store, "recorded": recorded, "fit": fit, "cohort": cohort, "sited": sited}
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    # A release is checked after it was made, and a bundle read after it was written.
    late = (
        "StoreHandle.aliases",
        "isuit.check_proof",
        "isuit.check_release",
        "isuit.rederive_bundle",
        "StoreHandle.rederive_release",
        "StoreHandle.reinstate",
    )
    for name, member in sorted(public(), key=lambda found: late.index(found[0]) if found[0] in late else -1):
        function = getattr(member, "func", None) or getattr(member, "fget", None) or member
        for example in finder.find(function, name, globs=names):
            runner.run(example)
    assert runner.summarize(verbose=False).failed == 0
    assert runner.tries > 30


def test_tables_of_every_kind_are_one_cohort(cohort_table: Callable[..., pa.Table]) -> None:
    table = cohort_table(3, riders=5, outcomes=6, timed=False)
    columns = table.to_pydict()
    records = np.array(
        list(zip(columns["rider"], columns["metric"], columns["outcome"], strict=True)),
        dtype=[("rider", "U20"), ("metric", "f8"), ("outcome", "i1")],
    )
    frame = pd.DataFrame(columns)
    given = (
        table, frame, pl.from_arrow(table), columns, {name: np.array(column) for name, column in columns.items()},
        records, duckdb.sql("SELECT * FROM frame"),
    )  # fmt: skip
    assert len({isuit.hash(source).cohort_hash for source in given}) == 1
    with pytest.raises(isuit.IsuitError, match="named fields"):
        isuit.hash(np.zeros((3, 3)))


def test_a_fit_without_a_store_is_the_fit_of_a_store(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> None:
    table = cohort_table(4, sites=("north", "south"))
    loose, recorded = isuit.fit(table), isuit.open(tmp_path / "store").fit(table)
    assert loose.fit_id == recorded.fit_id
    assert loose.record.result_digest == recorded.record.result_digest
    assert loose.curves == recorded.curves
    assert loose.skills == recorded.skills
    assert loose.score(12, "expert", "north") == recorded.score(12, "expert", "north")
    assert str(loose.summary()) == str(recorded.summary())
    assert list(tmp_path.iterdir()) == [tmp_path / "store"]


def test_difficulty_between_and_at_the_points_of_a_curve(cohort_table: Callable[..., pa.Table]) -> None:
    fit = isuit.fit(cohort_table(4, sites=("north", "south")))
    north = [point for point in fit.curves.to_pylist() if point["site"] == "north"][10:20]
    found = fit.difficulty([point["metric"] for point in north], "north")
    assert found["difficulty"].to_pylist() == pytest.approx([point["difficulty"] for point in north], abs=1e-9)
    assert found["difficulty_se"].to_pylist() == pytest.approx([point["difficulty_se"] for point in north], rel=1e-2)
    beyond = fit.difficulty(99)
    assert beyond["difficulty"].to_pylist() == beyond["lower"].to_pylist() == [None]
    with pytest.raises(isuit.IsuitError, match="no site"):
        fit.difficulty(12, "west")


def test_everything_shows_itself(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> None:
    """No reprs of models, no ids without a picture; names are text, whatever tags they hold."""
    table = cohort_table(1, sites=("<b>north", "south"))
    store = isuit.open(tmp_path / "store")
    fit = store.fit(table)
    shown = {
        "fit": fit, "store": store, "score": fit.score(12, "expert"), "trajectory": store.trajectory("rider-0001"),
        "diagnostics": fit.diagnostics, "curves": fit.curves, "scores": fit.score_table({"metric": [12.0]}, "expert"),
        "status": store.status(), "verified": store.verify(),
    }  # fmt: skip
    for name, thing in shown.items():
        html = thing._repr_html_()
        assert "<table" in html or "<svg" in html, name
        assert "(fit_id=" not in html
        assert "<b>north" not in html
    assert fit.plot()._repr_svg_().startswith("<svg")
    assert "&lt;b&gt;north" in Table(fit.curves.slice(101))._repr_html_()


@pytest.mark.parametrize(
    ("misuse", "told"),
    [
        (lambda fit: fit.score_table([1, 2]), "the conditions are no table"),
        (lambda fit: fit.score_table(None), "the conditions are no table"),
        (lambda fit: fit.score_table("conditions.csv"), "the conditions are no table"),
        (lambda fit: fit.score_table({"wind": [1.0]}), "need a column metric"),
        (lambda fit: fit.compare(None), "compare takes another fit"),
        (lambda fit: fit.difficulty(3.0), "has a suitability and no difficulty"),
        (lambda _: isuit.fit(SMALL, columns="rider"), "mapped by a dict"),
        (lambda _: isuit.fit(SMALL | {"rider": ["a"]}), "no table of Arrow columns"),
        (lambda _: isuit.fit(SMALL, activity=3), "activity takes a short name"),
        (lambda _: isuit.fit(7), "a cohort is a path"),
    ],
)
def test_a_misuse_is_one_sentence(small: isuit.Fit, misuse: Callable[[isuit.Fit], object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        misuse(small)
