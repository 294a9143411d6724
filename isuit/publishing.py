"""What every published model has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Published(BaseModel):
    """Strict, so that a key nobody described cannot leave the store."""

    model_config = ConfigDict(extra="forbid", frozen=True)
