"""What is said of a store as a whole: init, status."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from isuit.published.base import HEAD, Published


class Status(Published):
    """`isuit status`."""

    store_id: str
    cohorts: int
    outcomes: int
    fits: int
    riders: int
    sites: int
    suppressed: int
    receipts: int
    releases: int
    policy: dict[str, Any]
    tool_version: str
    log_length: int
    log_head: str = Field(pattern=HEAD)


class Created(Published):
    """`isuit init`."""

    store_id: str
    policy: dict[str, Any]
    log_head: str = Field(pattern=HEAD)
