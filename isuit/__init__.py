"""How hard conditions are, net of who faced them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isuit.service.notebook import StoreHandle

__version__ = "0.1.0"
__all__ = ["__version__", "open"]


def open(path: str | Path, wait: float = 10.0) -> StoreHandle:
    """The store at `path`, for notebooks and programs; see `isuit.service.notebook`."""
    # Imported here, because the command line imports this package before it knows what it will do.
    from isuit.service.notebook import StoreHandle

    return StoreHandle(path, wait)
