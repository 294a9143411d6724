"""Who opted out, as a store remembers it: keyed digests, useless to anyone without the store's key file."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from isuit.audit.digests import rider_digest
from isuit.audit.log import append_event
from isuit.erasure.personal import DIGESTS, is_text
from isuit.errors import NotFound
from isuit.spelling import fold
from isuit.store.opening import Store
from isuit.store.query import rows


@dataclass
class OptedOut:
    """Who opted out, as a store knows it. Remembers nothing about riders it was asked about; outlives the store."""

    key: bytes = field(default=b"", repr=False)
    digests: frozenset[str] = frozenset()

    @classmethod
    def of(cls, store: Store) -> OptedOut:
        return cls(
            store.key, frozenset(digest for (digest,) in rows(store.connection, f"SELECT digest FROM {DIGESTS}"))
        )

    def has(self, rider: str) -> bool:
        """Whether the person opted out, under this spelling or another that folds alike."""
        return is_text(rider) and not self.digests.isdisjoint(digests_of(self.key, rider))

    def exclude(self, riders: pa.Array) -> pa.Array:
        """For `read_cohort`: which of these riders' rows are left out."""
        if not self.digests:
            return pa.array([False] * len(riders), pa.bool_())
        return pa.array([self.has(rider) for rider in riders.to_pylist()], pa.bool_())


def digests_of(key: bytes, rider: str) -> set[str]:
    """Under what a person may be remembered: the folded ID, or the exact one as versions before folding did."""
    return {rider_digest(key, fold(rider)), rider_digest(key, rider)}


def reinstate(store: Store, rider: str) -> str:
    """End a rider's suppression (a new opt-in); the new log head. What was erased does not come back by it."""
    if not OptedOut.of(store).has(rider):
        raise NotFound("this rider is not suppressed in the store, and nothing was changed; check the ID's spelling.")
    with store.transaction() as connection:
        gone = sorted(digests_of(store.key, rider))
        connection.execute(f"DELETE FROM {DIGESTS} WHERE list_contains(?::VARCHAR[], digest)", [gone])
        return append_event(connection, "rider-reinstated", {}, tables=[DIGESTS], key=store.key)
