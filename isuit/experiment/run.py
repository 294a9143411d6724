"""`isuit latent-demo`: run the experiment and write what it found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from isuit.errors import InputError
from isuit.estimator.likelihood.solver import Progress
from isuit.files import write_whole
from isuit.tables import write_table

from .cohort import REFERENCE_SEED, Truth, draw
from .recovery import recover, replicate, summarise
from .report import figure, latex, markdown, with_paper


def run(
    out: Path,
    truth: Truth,
    seed: int = REFERENCE_SEED,
    replicates: int = 0,
    progress: Progress = lambda stage, share: None,
) -> dict[str, Any]:
    """Fit the reference cohort (or the one asked for) and write stats.json, results.md, results.tex and the figure."""
    stats, estimate = recover(truth, seed)
    stats = with_paper(stats, reference=truth == Truth() and seed == REFERENCE_SEED)
    if replicates:
        stats["replicates_summary"] = summarise(truth, replicate(truth, replicates, progress))
    stats = {key: _rounded(value) for key, value in stats.items()}
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot write into {out}: {error.strerror}; give a directory that can be written.") from None
    texts = {
        "stats.json": json.dumps(stats, indent=2, sort_keys=True, allow_nan=False) + "\n",
        "results.md": markdown(stats),
        "results.tex": latex(stats),
    }
    for name, text in texts.items():
        write_whole(out / name, [text.encode()])
    if estimate.kind == "latent":
        figure(truth, estimate, out / "difficulty")
    return stats


def write_cohort(path: Path, truth: Truth, seed: int = REFERENCE_SEED) -> None:
    """The drawn cohort as a table, for whoever wants to fit it: columns rider, metric and outcome."""
    import pyarrow as pa

    data, _ = draw(truth, seed)
    columns = {
        "rider": [data.riders[code] for code in data.rider.tolist()],
        "metric": data.metric,
        "outcome": data.outcome.astype(np.int8),
    }
    write_table(pa.table(columns), path)


def _rounded(value: Any) -> Any:
    """Nine digits: what is beyond the gradient's tolerance is not a result, and must not change the file's bytes."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(np.format_float_scientific(value, precision=8)) if isinstance(value, float) else value
