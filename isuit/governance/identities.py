"""When two spellings are one rider, and which are none.

Counting is where a spelling matters: `Anna`, `anna ` and `ＡＮＮＡ` are one person and must not make three of the ten
that a cell needs; `unknown` is not a person at all. Erasure and storage go by the exact ID, so nothing here is stored.
"""

from __future__ import annotations

import unicodedata

# After folding, and without the punctuation around them. A numeral is never one: platforms do start at rider 0.
PLACEHOLDERS = frozenset(
    """
    -1 #n/a anon anonym anonymous anonymised anonymized blank default deleted deleted-user deleted_user dummy empty
    guest missing n.a n/a n\\a na nan nil no_name noname no-name none not-available not_available null nobody other
    placeholder removed tba tbd test undefined unidentified unknown unknown-user unknown_user unspecified user void
    """.split()
) | {"not available", "no name", "unknown user", "unknown rider", "deleted user", "not applicable"}
_AROUND = " \t.,;:!?-_*#/\\|()[]{}<>'\"`~=+"


def fold(rider: str) -> str:
    """One spelling for all: NFKC, trimmed, case-folded (and NFKC again, which case-folding can undo)."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", rider).strip().casefold())
    # Characters that are not seen do not make another rider: zero-width spaces, joiners, soft hyphens.
    return "".join(sign for sign in folded if unicodedata.category(sign) != "Cf").strip()


def is_placeholder(folded: str) -> bool:
    """Whether a folded ID stands for nobody in particular."""
    return folded in PLACEHOLDERS or folded.strip(_AROUND) in PLACEHOLDERS or not any(map(str.isalnum, folded))
