"""`isuit latent-demo`: the paper's experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def latent_demo(
    out: Annotated[Path, typer.Option("--out", help="The directory to write into.")],
) -> None:
    """Reproduce the paper's recovery experiment: stats.json, table and figure."""
    raise SystemExit(f"not built yet: {out}")
