"""What every published model has in common, and how hashes are written."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from isuit.shown import record_as_html

HASH = r"^isuit-c[12]:[0-9a-f]{64}$"
FIT = r"^isuit-f1:[0-9a-f]{64}$"
HEAD = r"^[0-9a-f]{64}$"


class Published(BaseModel):
    """Strict, so that a key nobody described cannot leave the store.

    A model's validator is built when it is first used: a command uses two or three of some sixty.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    def as_json(self) -> dict[str, Any]:
        """The JSON object that `--json` prints."""
        return self.model_dump(mode="json")

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return record_as_html(type(self).__name__, self.as_json())


class Recorded(Published):
    """What is read back from a document in the store: a key that a newer version added is left out, not refused."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": False})
