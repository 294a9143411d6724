"""Dask's workers as the engine of a fit (`isuit.estimator.likelihood.far.Engine`).

What goes through Dask are byte strings under keys made of chance: no rider's ID, no path and no site's name is in them,
so none is in Dask's keys, logs or dashboard. Workers get counts at numbered items, and answer with sums.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import Any

from isuit import __version__
from isuit.errors import InputError

PATIENCE = 30.0  # seconds without any worker until the fit gives up: one that was killed is back before
CONNECTING = 10.0  # seconds until a scheduler that does not answer is none
_LOOK = 0.5  # seconds between looks at whether there are workers at all
# Of workers that are started here. Nobody looks at their profiles, and looking at the clock fifty times a second costs
# more than a small fit where the fit has to wait for a processor.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}
SENT = {"distributed.admin.large-graph-warning-threshold": "1TB"}  # riders go out once, as bytes: that is meant
MISSING = "fits on a cluster need Dask: pip install 'isuit[dask]'"


def versions() -> dict[str, str]:
    """Of all that decides which bits a pass finds."""
    import sys

    import numba
    import numpy
    import scipy

    python = ".".join(map(str, sys.version_info[:2]))
    return {
        "isuit": __version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "Python": python,
    }


def serve(request: bytes, asked_for: dict[str, str]) -> bytes | dict[str, str]:
    """On a worker: the answer to a request; the versions here, where they are not those that were asked for."""
    from distributed import get_worker

    from isuit.estimator import answer

    own = versions()
    return answer(request, get_worker().state.nthreads) if own == asked_for else own


def let_go(session: str) -> None:
    """On a worker: drop what is kept for a fit that is done."""
    from isuit.estimator import end_session

    end_session(session)


class DaskEngine:
    """The workers of one `distributed.Client`."""

    def __init__(self, client: Any) -> None:
        self.session = secrets.token_hex(8)
        self._client, self._versions = client, versions()
        if not self.workers():
            raise InputError("the Dask cluster has no workers: start some (`dask worker ADDRESS`), and fit again")

    def workers(self) -> Sequence[str]:
        """Addresses of those that are there; waits for one where all are gone."""
        end = monotonic() + PATIENCE
        while True:
            found = self._seen()
            if found or monotonic() > end:
                return found
            self._client.sync(_pause)

    def _seen(self) -> list[str]:
        if self._client.status != "running":
            raise InputError("the Dask scheduler is gone and nothing was recorded: start it, and fit again")
        return sorted(self._client.nthreads())

    def ask(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        """One task for each worker. Another takes it where its own is lost, and says that it lacks the riders."""
        import dask.config

        library = _dask()
        with dask.config.set(SENT):
            futures = self._submitted(requests)
        alone = monotonic()
        while True:
            try:
                library.wait(list(futures.values()), timeout=_LOOK)
                break
            except library.TimeoutError:
                if self._seen():
                    alone = monotonic()
                elif monotonic() - alone > PATIENCE:
                    self._client.cancel(list(futures.values()))
                    return dict.fromkeys(requests)
            except CancelledError:  # as all are when the scheduler is lost while they are waited for
                self._seen()
                break
        return {worker: self._answer(future) for worker, future in futures.items()}

    def _submitted(self, requests: Mapping[str, bytes]) -> dict[str, Any]:
        return {
            worker: self._client.submit(
                serve,
                request,
                self._versions,
                key=f"isuit-pass-{secrets.token_hex(8)}",
                workers=[worker],
                allow_other_workers=True,
                pure=False,
            )
            for worker, request in requests.items()
        }

    def _answer(self, future: Any) -> bytes | None:
        from distributed import KilledWorker

        try:
            found = future.result()
        except (KilledWorker, CancelledError):
            self._seen()
            return None
        except ModuleNotFoundError as error:
            raise InputError(
                f"a worker of the Dask cluster has no module {error.name}: install isuit[dask] {__version__} on every "
                "worker"
            ) from None
        if isinstance(found, bytes):
            return found
        other = ", ".join(
            f"{name} {found[name]} (here {ours})" for name, ours in self._versions.items() if found[name] != ours
        )
        raise InputError(f"a worker of the Dask cluster has {other}: install the same versions on every worker")

    def close(self) -> None:
        """Tell workers that the fit is done."""
        if self._client.status == "running":
            self._client.run(let_go, self.session, on_error="ignore")


def _dask() -> Any:
    """The library, which has no types."""
    try:
        import distributed
    except ImportError:
        raise InputError(MISSING) from None
    return distributed


async def _pause() -> None:
    import asyncio

    await asyncio.sleep(_LOOK)


@contextmanager
def engine_of(workers: int | None = None, scheduler: str | None = None, client: Any = None) -> Iterator[Any]:
    """The engine that a caller asks for: so many processes of this machine, a scheduler's workers, or a client's.

    Without any of them it is None, and the fit is made in this process.
    """
    given = [one for one in (workers, scheduler, client) if one is not None]
    if not given:
        yield None
        return
    if len(given) > 1:
        raise InputError("give --workers, or --scheduler, and not both")
    dask = _dask()
    if client is not None:
        if not isinstance(client, dask.Client) or client.asynchronous:
            raise InputError("client is a distributed.Client that is not asynchronous")
        with _closing(DaskEngine(client)) as engine:
            yield engine
    elif workers is not None:
        if not 1 <= workers <= 1000:
            raise InputError("--workers is a number of processes from 1 to 1000")
        with _here(workers) as local, _closing(DaskEngine(local)) as engine:
            yield engine
    else:
        with _there(str(scheduler)) as remote, _closing(DaskEngine(remote)) as engine:
            yield engine


@contextmanager
def _closing(engine: DaskEngine) -> Iterator[DaskEngine]:
    try:
        yield engine
    finally:
        engine.close()


@contextmanager
def _here(workers: int) -> Iterator[Any]:
    """A client of so many processes of this machine, which end with it; they share its cores and listen to it alone."""
    import dask.config

    from isuit.compiled import CORES

    library = _dask()
    with dask.config.set(QUIET), ExitStack() as stack:
        try:
            cluster = stack.enter_context(
                library.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=max(1, CORES // workers),
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    worker_dashboard_address="127.0.0.1:0",
                    memory_limit=0,
                    silence_logs=logging.CRITICAL,
                )
            )
            client = stack.enter_context(library.Client(cluster, timeout=f"{60 + workers}s"))
        except (RuntimeError, OSError, TimeoutError):
            raise InputError(f"{workers} processes could not be started here: try fewer with --workers") from None
        yield client


@contextmanager
def _there(address: str) -> Iterator[Any]:
    try:
        client = _dask().Client(address, timeout=CONNECTING)
    except (OSError, ValueError, TimeoutError):
        raise InputError(
            f"no Dask scheduler answers at {address}: start one (`dask scheduler`), and give its address as "
            "tcp://HOST:8786"
        ) from None
    with client:
        yield client
