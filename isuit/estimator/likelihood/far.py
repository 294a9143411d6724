"""Riders who are elsewhere: their shares go to the workers of an engine once, and every pass asks all of them.

A unit is one or more lanes; a worker has some units. One call to each worker makes a pass: out goes the curve at the
items, a few thousand numbers, back come the sums of each lane, which are added up here in the order of lanes. So one
process, two workers and five find the same bits, and so does a worker that takes over from one that was lost: it is
sent the riders again, and all passes since the first, because grids follow from one another.

What an engine must offer is two calls (`Engine`); Dask's is in `isuit.cluster`.
"""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from isuit.domain import FloatArray, IntArray
from isuit.errors import InputError

from .errands import Answer, Errand, Packed, Request, Step, packed, short
from .grids import Spans
from .shares import Asked, Bends, Found, Lane, OfLane, Share

MOST_LOSSES = 12  # workers lost one after the other without any answer in between


class Engine(Protocol):
    """Where riders can be kept and asked: other processes, on this machine or on many."""

    session: str  # tells the riders of one fit from those of another that uses the same workers

    def workers(self) -> Sequence[str]:
        """Those that can be asked, always in the same order; none where all are lost."""

    def ask(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        """One call to each worker, to run `errands.answer`; None of one that was lost on the way."""


@dataclass
class _Cluster:
    """An engine in use, with what is the same for all likelihoods of a fit."""

    engine: Engine
    numbers: Iterator[int] = field(default_factory=count)
    forgotten: list[int] = field(default_factory=list)


_CLUSTER: ContextVar[_Cluster | None] = ContextVar("cluster", default=None)


@contextmanager
def riders_on(engine: Engine | None) -> Iterator[None]:
    """Within this, riders of a fit are on the engine's workers; None: in this process."""
    before = _CLUSTER.set(None if engine is None else _Cluster(engine))
    try:
        yield
    finally:
        _CLUSTER.reset(before)


def far_riders(share: Share) -> FarRiders | None:
    """These riders on the workers that are in use, if any."""
    cluster = _CLUSTER.get()
    return None if cluster is None else FarRiders(cluster, share)


@dataclass(frozen=True)
class _Pass:
    """A pass that was made, with all that is needed to make it again."""

    number: int
    after: _Pass | None
    windows: IntArray | None  # that it began with, if they were given
    asked: Asked
    lanes: list[Lane]
    prior: Callable[[], FloatArray] | None

    def history(self) -> list[_Pass]:
        """This pass and those that it follows from, the first one first."""
        found: list[_Pass] = []
        at: _Pass | None = self
        while at is not None:
            found.append(at)
            at = at.after
        return found[::-1]


class _Begin(NamedTuple):
    """What a pass begins with: another pass, windows, or nothing."""

    after: _Pass | None
    windows: IntArray | None
    spans: Spans


@dataclass(frozen=True)
class FarFound:
    """What a pass found of each rider, where the riders are."""

    riders: FarRiders
    last: _Pass
    spans: Spans

    @cached_property
    def all(self) -> Found:
        """Of all riders, here."""
        return self.riders.found(self.last)


Near = IntArray | FarFound  # what a pass begins with: windows, or a pass over riders who are elsewhere


def windows_of(near: Near) -> IntArray:
    return near.all.windows if isinstance(near, FarFound) else near


class FarLooked(NamedTuple):
    """What a pass saw, of all riders."""

    lanes: list[OfLane]
    found: FarFound
    pull: FloatArray
    bends: Bends


class FarRiders:
    """The riders of one likelihood on the workers of a cluster."""

    def __init__(self, cluster: _Cluster, share: Share) -> None:
        self._cluster, self._share = cluster, share
        self._number = next(cluster.numbers)
        self._edges: list[int] | None = None
        self._holder: dict[int, str] = {}  # of each unit
        weakref.finalize(self, cluster.forgotten.append, self._number)

    def is_worth_it(self, *kinds: list[Lane]) -> bool:
        """Whether there are lanes enough to share out. Units end where a lane of either kind of pass does."""
        if self._edges is None:
            ends = (set().union(*lanes) for lanes in kinds)
            self._edges = sorted(set.intersection(*ends))
        return len(self._edges) > 2

    def begin(self, near: Near | None) -> _Begin:
        if isinstance(near, FarFound) and near.riders is self:
            return _Begin(near.last, None, near.spans)
        windows = None if near is None else windows_of(near)
        return _Begin(None, windows, Spans.of(np.zeros((0, 3), np.int64) if windows is None else windows))

    def look(self, asked: Asked, lanes: list[Lane], prior: Callable[[], FloatArray] | None, begin: _Begin) -> FarLooked:
        """One pass over all riders."""
        new = _Pass(next(self._cluster.numbers), begin.after, begin.windows, short(asked), lanes, prior)
        answers: list[Answer] = self._asked_all([new])
        pull = np.zeros(self._share.riders)
        if answers[0].pull is not None:
            pull = np.concatenate([one.pull for one in answers])
        bends = Bends(np.zeros(0), np.zeros((0, self._share.density)))
        if answers[0].bends is not None:
            bends = Bends(*(np.concatenate(part) for part in zip(*(one.bends for one in answers), strict=True)))
        spans = Spans.joined([one.spans for one in answers])
        # A pass that is made again is only for its grids.
        again = _Pass(
            new.number, new.after, new.windows, new.asked._replace(information=False, rows=None), lanes, prior
        )
        return FarLooked([lane for one in answers for lane in one.lanes], FarFound(self, again, spans), pull, bends)

    def found(self, last: _Pass) -> Found:
        """What a pass found of each rider."""
        told: list[Found] = self._asked_all([], last)
        windows, *rest = (np.concatenate(part) for part in zip(*told, strict=True))
        return Found(windows.astype(np.int64), *rest)

    def _asked_all(self, steps: list[_Pass], tell: _Pass | None = None) -> list[Any]:
        """The answers of all units, in their order. A unit whose worker was lost, or has forgotten it, is sent
        again whole."""
        assert self._edges is not None
        units = dict(enumerate(pairwise(self._edges)))
        answers: dict[int, Answer | Found] = {}
        whole: set[int] = {unit for unit in units if unit not in self._holder}
        losses = 0
        while len(answers) < len(units):
            left = [unit for unit in units if unit not in answers]
            whole |= self._settle(left)
            history = (tell or steps[-1]).history()
            requests = {}
            for worker in dict.fromkeys(self._holder[unit] for unit in left):
                own = {unit: units[unit] for unit in left if self._holder[unit] == worker}
                requests[worker] = self._request(own, whole, steps, history, tell)
            for worker, reply in self._cluster.engine.ask(requests).items():
                mine = [unit for unit in left if self._holder.get(unit) == worker]
                if reply is None:
                    losses += 1
                    for unit in mine:
                        del self._holder[unit]
                    continue
                losses = 0
                for unit, one in pickle.loads(reply).items():
                    if one is None:
                        assert unit not in whole, "a worker lacks something although it was sent everything"
                        whole.add(unit)
                    else:
                        answers[unit] = one
            if losses > MOST_LOSSES:
                raise InputError(
                    f"{losses} workers were lost one after the other in one pass and nothing was recorded: see why in "
                    "their logs (too little memory?), and fit again"
                )
        return [answers[unit] for unit in units]

    def _settle(self, units: list[int]) -> set[int]:
        """Give every unit without a living worker a new one, neighbours the same where it can be; returns those
        units."""
        workers = list(self._cluster.engine.workers())
        if not workers:
            raise InputError("no worker of the cluster is left and nothing was recorded: start some, and fit again")
        assert self._edges is not None
        lost = [unit for unit in units if self._holder.get(unit) not in workers]
        count_ = len(self._edges) - 1
        for unit in lost:
            first = workers[unit * len(workers) // count_]
            load = {worker: list(self._holder.values()).count(worker) for worker in workers}
            most = -(-count_ // len(workers))
            self._holder[unit] = first if load[first] < most else min(workers, key=load.__getitem__)
        return set(lost)

    def _request(
        self, units: dict[int, Lane], whole: set[int], steps: list[_Pass], history: list[_Pass], tell: _Pass | None
    ) -> bytes:
        errands, asked = {}, {}
        priors: dict[int, FloatArray] = {}
        for unit, (begin, end) in units.items():
            anew = unit in whole
            share = Packed.of(self._share.of_riders(begin, end)) if anew else None
            own = history if anew else steps
            for one in own:
                asked[one.number] = one.asked
                if one.prior is not None and one.number not in priors:
                    priors[one.number] = one.prior()
            errands[unit] = Errand(
                [_step(one, begin, end, priors.get(one.number)) for one in own],
                share,
                None if tell is None else tell.number,
            )
        forget = tuple(self._cluster.forgotten)
        return packed(Request(self._cluster.engine.session, self._number, asked, errands, forget))


def _step(one: _Pass, begin: int, end: int, prior: FloatArray | None) -> Step:
    """A pass, as it is for the riders of one unit."""
    return Step(
        one.number,
        None if one.after is None else one.after.number,
        [(lane[0] - begin, lane[1] - begin) for lane in one.lanes if begin <= lane[0] and lane[1] <= end],
        None if prior is None else prior[begin:end],
        None if one.windows is None else one.windows[begin:end].astype(np.int32),
    )
