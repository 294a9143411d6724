"""How a cohort reaches a program and how its answer comes back: plain binary columns, which Python and R read alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

GRID_POINTS = 321


@dataclass(frozen=True)
class Columns:
    """A cohort's outcomes; riders are numbered from 0."""

    rider: NDArray[np.int32]
    metric: FloatArray
    outcome: NDArray[np.int32]
    grid: FloatArray  # metrics at which difficulty is asked for

    @property
    def riders(self) -> int:
        return int(self.rider.max()) + 1


@dataclass(frozen=True)
class Answer:
    """What a program found. Difficulty and skill are in units of the skill sd."""

    cpu_seconds: float  # user and system time of the fit, without imports and reading
    discrimination: float
    difficulty: FloatArray  # at the grid
    skill: FloatArray  # of each rider
    difficulty_se: FloatArray | None = None


def peak_megabytes() -> float:
    """The largest resident memory of this process so far.

    Not `ru_maxrss`: that of a child begins with the memory of the parent that started it.
    """
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def write_columns(folder: Path, rider: NDArray[np.int64], metric: FloatArray, outcome: NDArray[np.int64]) -> None:
    rider.astype("<i4").tofile(folder / "rider.i32")
    metric.astype("<f8").tofile(folder / "metric.f64")
    outcome.astype("<i4").tofile(folder / "outcome.i32")
    np.linspace(metric.min(), metric.max(), GRID_POINTS).astype("<f8").tofile(folder / "grid.f64")


def read_columns(folder: Path) -> Columns:
    return Columns(
        np.fromfile(folder / "rider.i32", "<i4"),
        np.fromfile(folder / "metric.f64", "<f8"),
        np.fromfile(folder / "outcome.i32", "<i4"),
        np.fromfile(folder / "grid.f64", "<f8"),
    )


def write_answer(folder: Path, answer: Answer) -> None:
    scalars = {
        "cpu_seconds": answer.cpu_seconds,
        "peak_megabytes": peak_megabytes(),
        "discrimination": answer.discrimination,
    }
    (folder / "scalars.txt").write_text("".join(f"{name} {value}\n" for name, value in scalars.items()))
    answer.difficulty.astype("<f8").tofile(folder / "difficulty.f64")
    answer.skill.astype("<f8").tofile(folder / "skill.f64")
    if answer.difficulty_se is not None:
        answer.difficulty_se.astype("<f8").tofile(folder / "difficulty_se.f64")


def read_answer(folder: Path) -> tuple[Answer, float]:
    """The answer, and the peak memory of the process that gave it, in megabytes."""
    scalars = dict(line.split() for line in (folder / "scalars.txt").read_text().splitlines())
    se = folder / "difficulty_se.f64"
    answer = Answer(
        float(scalars["cpu_seconds"]),
        float(scalars["discrimination"]),
        np.fromfile(folder / "difficulty.f64", "<f8"),
        np.fromfile(folder / "skill.f64", "<f8"),
        np.fromfile(se, "<f8") if se.exists() else None,
    )
    return answer, float(scalars["peak_megabytes"])
