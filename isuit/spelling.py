"""When two spellings of an ID are one rider: for releases, which count persons, and for whoever opted out."""

from __future__ import annotations

import unicodedata


def fold(rider: str) -> str:
    """One spelling for all: NFKC, trimmed, case-folded (and NFKC again, which case-folding can undo)."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", rider).strip().casefold())
    # Characters that are not seen do not make another rider: zero-width spaces, joiners, soft hyphens.
    return "".join(sign for sign in folded if unicodedata.category(sign) != "Cf").strip()
