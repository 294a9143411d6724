"""What a process does that keeps shares of riders for another: it takes errands and answers them.

An errand is for one unit of riders. It may bring the riders along, and names the passes to make, each from the grids
that another one left. What passes leave is kept, the latest few of each unit; an errand that begins with one that is
not there is answered by None, and comes again with all passes since the first. So a process that was started in the
place of another takes its work over and finds the same numbers.

Nothing here knows who riders are: what is kept are counts at items.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from isuit.domain import FloatArray, IntArray

from ..model.design import NO_PLACE
from ..model.population import Visits
from . import threads
from .grids import AtItems, Entries, Spans, Table
from .shares import Asked, Bends, Found, Lane, OfLane, Share

KEPT = 3  # passes of a unit whose grids are kept: a line search goes back to one that is not the last
MOST_SESSIONS = 4  # fits that a process keeps riders of; one that ended without a word gives way

Pass = int  # the number of a pass


class Packed(NamedTuple):
    """A share on its way, without what follows from the rest."""

    entries: Entries
    visits: Visits | None  # None without places: all entries of a rider are one visit
    regressors: FloatArray
    places: int
    pairs: int
    density: int

    @classmethod
    def of(cls, share: Share) -> Packed:
        entries = share.entries._replace(trials=_narrow(share.entries.trials))
        visits = share.visits if share.places else None
        return cls(entries, visits, share.visits.regressors, share.places, share.pairs, share.density)

    def unpacked(self) -> Share:
        entries, visits = self.entries._replace(trials=self.entries.trials.astype(np.float64)), self.visits
        if visits is None:
            riders = entries.entries.size - 1
            visits = Visits(
                np.arange(riders + 1),
                entries.entries,
                np.full(riders, NO_PLACE),
                np.zeros(riders),
                np.zeros(riders, np.int64),
                np.zeros(1, np.int32),
                self.regressors,
            )
        return Share(entries, visits, self.places, self.pairs, self.density)


def _narrow(numbers: FloatArray) -> Any:
    """The numbers as one byte each where that loses nothing: most counts of trials are small whole numbers."""
    small = numbers.astype(np.uint8)
    return small if np.array_equal(small, numbers) else numbers


class Step(NamedTuple):
    """One pass over a unit: from the grids of another pass, from windows that are given, or from none."""

    number: Pass
    after: Pass | None
    lanes: list[Lane]  # counted from the unit's first rider
    prior_mean: FloatArray | None
    windows: IntArray | None = None


class Errand(NamedTuple):
    """What is to be done for one unit of riders."""

    steps: list[Step]
    share: Packed | None = None
    tell: Pass | None = None  # what this pass found of each rider is the answer, and not that of the last step


class Request(NamedTuple):
    """Errands for some units of one likelihood of a session."""

    session: str
    likelihood: int
    asked: dict[Pass, Asked]
    errands: dict[int, Errand]
    forget: tuple[int, ...] = ()  # likelihoods that are not needed any more


class Answer(NamedTuple):
    """What a unit found; `pull` and `bends` only where the population's part of the gradient needs them."""

    lanes: list[OfLane]
    spans: Spans
    pull: FloatArray | None
    bends: Bends | None


@dataclass
class _Unit:
    share: Share
    found: dict[Pass, Found] = field(default_factory=dict)

    def keep(self, number: Pass, found: Found) -> None:
        self.found.pop(number, None)
        self.found[number] = found
        while len(self.found) > KEPT:
            del self.found[next(iter(self.found))]


_SESSIONS: dict[str, dict[tuple[int, int], _Unit]] = {}


def packed(message: object) -> bytes:
    return pickle.dumps(message, protocol=5)


def short(asked: Asked) -> Asked:
    """The same request without what the receiver can compute: the odds, which are exp(f), and a derivative that is
    zero."""
    at = asked.at
    nothing = np.zeros(0)
    return asked._replace(at=at._replace(odds=nothing, by_a=at.by_a if at.anchored else nothing))


def answer(request: bytes, cores: int = 1) -> bytes:
    """Run the errands of a request; the answers by unit, None of those that lack something."""
    asked = pickle.loads(request)
    assert isinstance(asked, Request)
    with threads.one_thread():
        return packed(_answers(asked, cores))


def end(session: str) -> None:
    """Let go of all that is kept for a session."""
    _SESSIONS.pop(session, None)


def _answers(request: Request, cores: int) -> dict[int, Answer | Found | None]:
    units = _SESSIONS.pop(request.session, {})
    _SESSIONS[request.session] = units
    while len(_SESSIONS) > MOST_SESSIONS:
        del _SESSIONS[next(iter(_SESSIONS))]
    for key in [key for key in units if key[0] in request.forget]:
        del units[key]
    # A table can cost more than a unit's pass with it: all units of this process share that of a pass.
    questions = {number: _Question.of(_whole(asked)) for number, asked in request.asked.items()}
    return {
        unit: _answer(units, (request.likelihood, unit), errand, questions, cores)
        for unit, errand in request.errands.items()
    }


class _Question(NamedTuple):
    asked: Asked
    table: Table

    @classmethod
    def of(cls, asked: Asked) -> _Question:
        return cls(asked, asked.table())


def _whole(asked: Asked) -> Asked:
    at = asked.at
    by_a = at.by_a if at.anchored else np.zeros(at.f.size)
    return asked._replace(at=at._replace(odds=AtItems.of(at.f, by_a).odds, by_a=by_a))


def _answer(
    units: dict[tuple[int, int], _Unit],
    key: tuple[int, int],
    errand: Errand,
    questions: dict[Pass, _Question],
    cores: int,
) -> Answer | Found | None:
    if errand.share is not None:
        units[key] = _Unit(errand.share.unpacked())
    unit = units.get(key)
    if unit is None:
        return None
    result: Answer | None = None
    for step in errand.steps:
        share, (asked, table) = unit.share, questions[step.number]
        if step.windows is not None:
            windows = step.windows.astype(np.int64)
        elif step.after is None:
            windows = np.zeros((share.riders, 3), np.int64)
        elif step.after in unit.found:
            unit.keep(step.after, unit.found[step.after])  # whoever comes back to it may do so again
            windows = unit.found[step.after].windows
        else:
            return None
        prior_mean = np.zeros(share.riders) if step.prior_mean is None else step.prior_mean
        looked = share.look(asked, step.lanes, prior_mean, windows, table, cores)
        lanes = list(looked.lanes)
        unit.keep(step.number, looked.found)
        pull = looked.found.pull if share.regressed else None
        bends = looked.bends if looked.bends.bend.size else None
        result = Answer(lanes, Spans.of(looked.found.windows), pull, bends)
    if errand.tell is None:
        return result
    told = unit.found.get(errand.tell)
    return None if told is None else told._replace(windows=told.windows.astype(np.int32))
