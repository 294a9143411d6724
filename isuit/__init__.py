"""How hard conditions are, net of who faced them. What is public in Python is what `isuit.__all__` names.

    fit = isuit.fit(frame)                 # without a store: nothing is recorded
    store = isuit.open("isuit-store")      # with one: everything that the command line does
    fit = store.fit(frame, activity="kitesurfing", dimension="wind")

Tables are Arrow: `to_pandas()`, `polars.DataFrame(table)`. Errors are `isuit.IsuitError`s, each one sentence.
`isuit.sklearn` has the estimator for scikit-learn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from isuit.errors import IsuitError
from isuit.reading import Form, Reading, spelled_out

if TYPE_CHECKING:
    from isuit.domain import Discrimination, Exposure, GateReading, SkillPrior, Split
    from isuit.published import Canonicalised, CohortRead, ProofCheck, RederiveReport, ReleaseCheck, Witnessed
    from isuit.service.inputs import Query
    from isuit.service.notebook import StoreHandle
    from isuit.service.results import Fit
    from isuit.service.series import Series

__version__ = "0.1.0"
__all__ = [
    "IsuitError",
    "__version__",
    "canonicalise",
    "check_proof",
    "check_release",
    "fit",
    "hash",
    "latent_demo",
    "open",
    "query",
    "rederive_bundle",
    "series",
    "witness",
]
# Imports stand inside the functions, because the command line imports this package before it knows what it will do.


def open(path: str | Path = "isuit-store", wait: float = 10.0) -> StoreHandle:
    """The store at `path`; `wait` is how many seconds to wait for one that is in use.

    >>> isuit.open("isuit-store").status().cohorts
    1
    """
    from isuit.service.notebook import StoreHandle

    return StoreHandle(path, wait)


@spelled_out(Form)
def fit(
    cohort: Any,
    *,
    activity: str = "unspecified",
    dimension: str | None = None,
    metrics: Sequence[str] | None = None,
    anchor: str | Path | Iterable[tuple[float, float]] | None = None,
    sites: str | Path | Mapping[str, tuple[float, float]] | None = None,
    nearby: bool = False,
    gate: GateReading = "core",
    exposure: Exposure = "independent",
    split: Split = "rider",
    skill: SkillPrior = "normal",
    discrimination: Discrimination = "constant",
    **form: Unpack[Form],
) -> Fit:
    """Fit a cohort without a store: a frame (pandas, polars, Arrow, a DuckDB relation), arrays by name, or a path.

    With `nearby`, sites that lie near one another, by the coordinates of `sites`, tell of one another's level.

    >>> isuit.fit(cohort, columns={"rider": "rider"}).kind
    'latent'
    """
    from isuit.service.bars import notebook_progress
    from isuit.service.configuring import config_of
    from isuit.service.inputs import read_sites
    from isuit.service.memory import fit_in_memory

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
    )
    with notebook_progress() as progress:
        places = read_sites(Path(sites)) if isinstance(sites, (str, Path)) else sites
        return fit_in_memory(cohort, config, sites=places, nearby=nearby, metrics=metrics, progress=progress, **form)


@spelled_out(Reading)
def hash(cohort: Any, **reading: Unpack[Reading]) -> CohortRead:
    """The hash of a cohort, and a report of what was read.

    >>> isuit.hash(cohort).cohort_hash
    'isuit-c1:...'
    """
    from isuit.service.cohorts import read

    return read(cohort, **reading)


def query(url: str, sql: str) -> Query:
    """What a query of a PostgreSQL database gives, as a cohort for `fit` and `hash`; needs `isuit[postgres]`.

    >>> isuit.query("postgresql://localhost/surf", "SELECT rider, metric, outcome FROM outings")
    <query of a postgresql database>
    """
    from isuit.service.inputs import Query

    return Query(url, sql)


def series(name: str) -> Series:
    """A series of a store as what is to be fitted: the union of what was added to it.

    >>> isuit.series("kite").name
    'kite'
    """
    from isuit.service.series import Series

    return Series(name)


@spelled_out(Reading)
def canonicalise(cohort: Any, out: str | Path, **reading: Unpack[Reading]) -> Canonicalised:
    """Write the canonical form of a cohort: its SHA-256 is the cohort's hash.

    >>> import hashlib, pathlib
    >>> written = isuit.canonicalise("cohort.parquet", "cohort.tsv")
    >>> written.cohort_hash.endswith(hashlib.sha256(pathlib.Path("cohort.tsv").read_bytes()).hexdigest())
    True
    """
    from isuit.service.cohorts import canonicalise

    return canonicalise(cohort, Path(out), **reading)


def check_release(file: str | Path, trusted_key: str | Path | None = None) -> ReleaseCheck:
    """Verify a release's file by itself: row count, digest, schema, proof; needs no store.

    >>> isuit.check_release("atlas.jsonl").ok
    True
    """
    from isuit.service.release_checks import check_release

    return check_release(Path(file), None if trusted_key is None else Path(trusted_key))


def check_proof(
    file: str | Path, *, trusted_key: str | Path | None = None, checkpoint: str | Path | None = None
) -> ProofCheck:
    """Check a proof of `store.prove` by a key that you trust and a checkpoint that you kept; needs no store.

    >>> isuit.check_proof("proof.json").ok
    True
    """
    from isuit.service.proving import check_proof

    key, kept = (None if given is None else Path(given) for given in (trusted_key, checkpoint))
    return check_proof(Path(file), key, kept)


def witness(
    state: str | Path,
    proof: str | Path | None = None,
    *,
    trusted_key: str | Path | None = None,
    out: str | Path | None = None,
) -> Witnessed:
    """Sign a store's checkpoint if it extends the last one that this witness saw; without a proof, give its key.

    >>> isuit.witness("my-witness").key
    'isuit-witness/...'
    """
    from isuit.service.proving import witness

    given, key, target = (None if path is None else Path(path) for path in (proof, trusted_key, out))
    return witness(Path(state), given, trusted_key=key, out=target)


@spelled_out(Form)
def rederive_bundle(directory: str | Path, cohort: Any = None, **form: Unpack[Form]) -> RederiveReport:
    """Fit again what a bundle describes, from its own cohort or your copy of it, and compare; needs no store.

    >>> isuit.rederive_bundle("bundle", "cohort.parquet").verdict
    'identical'
    """
    from isuit.service.checks import rederive_bundle

    return rederive_bundle(Path(directory), cohort, **form)


def latent_demo(out: str | Path, seed: int = 11, replicates: int = 0) -> dict[str, Any]:
    """The paper's experiment: writes stats.json, tables and figure into `out`, and gives the statistics.

    >>> isuit.latent_demo("demo")["kind"]
    'latent'
    """
    from isuit.experiment.cohort import Truth
    from isuit.experiment.run import run

    return run(Path(out), Truth(), seed, replicates)
