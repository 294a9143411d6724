"""When two spellings are one rider, and which are none; `persons.py` adds the tokens of an ID.

Counting is where a spelling matters: `Anna`, `anna ` and `ＡＮＮＡ` are one person and must not make three of the ten
that a cell needs; `unknown` is not a person at all. Erasure and storage go by the exact ID, so nothing here is stored.
"""

from __future__ import annotations

# After folding, and without the punctuation around them. A numeral is never one: platforms do start at rider 0.
PLACEHOLDERS = {"-1", "n.a", "n/a", "n\\a", "na", "nan", "nil", "none", "null", "void", "tba", "tbd", "empty", "blank"}
PLACEHOLDERS |= {"missing", "unknown", "unknown user", "unknown rider", "undefined", "unidentified", "unspecified"}
PLACEHOLDERS |= {"not available", "not applicable", "anon", "anonym", "anonymous", "anonymised", "anonymized", "nobody"}
PLACEHOLDERS |= {"noname", "no name", "default", "deleted", "deleted user", "removed", "dummy", "guest", "other"}
PLACEHOLDERS |= {"placeholder", "test", "user"}
_AROUND = " \t.,;:!?-_*#/\\|()[]{}<>'\"`~=+"


def is_placeholder(folded: str) -> bool:
    """Whether a folded ID stands for nobody in particular."""
    words = " ".join(folded.replace("_", " ").replace("-", " ").split())
    found = {folded, folded.strip(_AROUND), words, words.strip(_AROUND)}
    return bool(found & PLACEHOLDERS) or not any(map(str.isalnum, folded))
