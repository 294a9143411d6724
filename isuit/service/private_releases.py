"""Releases of a store in private mode: the ledger of the budget, and what is drawn under it.

A charge is an event of the log, `budget-charged`, with the sums that were paid for, noise and all. It is committed
before anything is made from the sums, so there is no moment at which something was drawn, may have been seen, and is
not paid: a command that is killed before the commit has shown nothing, and one that is killed after it finds its sums
on record and draws no others. The event holds sums with noise and costs; no person, and no count without noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb

from isuit.audit.log import append_event, read_log
from isuit.errors import PolicyRefusal
from isuit.published.releases import PrivatePromise
from isuit.release.making import Draft, Series, Source
from isuit.release.policy import Policy
from isuit.release.private.accounting import UNIT
from isuit.release.private.releasing import Costs, Sums, draft, measure
from isuit.store.opening import Store

CHARGED = "budget-charged"


@dataclass(frozen=True)
class Ledger:
    """Every charge so far, by the release that it was for."""

    charges: dict[str, dict[str, Any]]

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection) -> Ledger:
        events = (event.content for event in read_log(connection) if event.kind == CHARGED)
        return cls({str(content["release"]): content for content in events})

    @property
    def spent(self) -> int:
        return sum(int(content["cost"]) for content in self.charges.values())

    def sums(self, day: date, policy: Policy) -> list[Sums] | None:
        """What was drawn for a release that is paid."""
        content = self.charges.get(day.isoformat())
        if content is None:
            return None
        if content["lag_days"] != policy.lag_days:
            raise PolicyRefusal(
                f"the sums of {day} were drawn and paid with lag_days {content['lag_days']}; export with the same."
            )
        return [list(sums) for sums in content["sums"]]


def private_release(store: Store, source: Source, day: date, series: Series) -> Draft:
    """The release of a date: drawn and charged now, or made from what was drawn for it before."""
    policy = series.policy
    ledger = Ledger.of(store.connection)
    sums = ledger.sums(day, policy)
    if sums is None:
        costs = _affordable(policy, ledger)
        with store.transaction():
            sums, notes = measure(source, day, policy)
            charge(store.connection, day, policy, costs, sums)
    else:
        notes = ["the sums of this date were drawn and paid before: they are used again, and nothing is drawn"]
    made = draft(sums, day, policy, dict(series.declared))
    paid = len(Ledger.of(store.connection).charges)
    assert policy.private is not None
    notes.append(f"the budget of epsilon {policy.private.epsilon:g} is spent to {paid} of {policy.private.releases}")
    for reasons in list(made.reasons.values())[:1]:
        reasons.notes[:0] = notes
    return made


def private_release_again(connection: duckdb.DuckDBPyConnection, day: date, series: Series) -> Draft:
    """The release that follows from the sums on record."""
    sums = Ledger.of(connection).sums(day, series.policy)
    if sums is None:
        raise PolicyRefusal("the log has no sums of that release; run `isuit verify`.")
    return draft(sums, day, series.policy, dict(series.declared))


def charge(connection: duckdb.DuckDBPyConnection, day: date, policy: Policy, costs: Costs, sums: list[Sums]) -> None:
    """Write the charge, with what was bought, in the caller's transaction."""
    paid = {"release": day.isoformat(), "lag_days": policy.lag_days, "cost": costs.release, "budget": costs.budget}
    append_event(connection, CHARGED, {**paid, "sums": sums})


def _affordable(policy: Policy, ledger: Ledger) -> Costs:
    assert policy.private is not None
    costs = Costs.of(policy.private)
    if ledger.spent + costs.release > costs.budget:
        raise PolicyRefusal(
            f"the store's privacy budget (epsilon {policy.private.epsilon:g}, delta {policy.private.delta:g}) is spent "
            f"by {len(ledger.charges)} releases: export one of their dates, which costs nothing, and release nothing "
            "more about these people from any store."
        )
    return costs


def promise(policy: Policy) -> PrivatePromise | None:
    """What the metadata of a private release say of its privacy."""
    if policy.private is None:
        return None
    costs = Costs.of(policy.private)
    return PrivatePromise(
        epsilon=policy.private.epsilon,
        delta=policy.private.delta,
        releases=policy.private.releases,
        rho=costs.release / UNIT,
        budget=costs.budget / UNIT,
    )
