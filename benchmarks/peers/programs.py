"""Who takes part, what is fitted, how a program is found, and up to which size it is worth starting."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
SLOW = "expected to take long; --program starts it"


@dataclass(frozen=True)
class Program:
    """One way to fit the model, as one row of the table."""

    name: str
    what: str
    package: str
    script: str | None = None  # of R; None: `in_python.py` knows the name
    option: str | None = None
    most_riders: int | None = None  # beyond, it is not started unless asked for by name
    hopeless: str = ""  # why
    one_thread: bool = True

    @property
    def version(self) -> str | None:
        """The installed version, or None."""
        if self.script is not None:
            return _r_version(self.package)
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None

    def command(self, cohort: Path, out: Path) -> list[str]:
        if self.script is None:
            known = self.name.removesuffix(" (own threads)")
            return [sys.executable, "-m", "peers.in_python", known, str(cohort), str(out)]
        option = [] if self.option is None else [self.option]
        return ["Rscript", "--vanilla", self.script, str(cohort), str(out), *option]

    @property
    def directory(self) -> Path:
        return HERE.parent if self.script is None else HERE


@cache
def _r_version(package: str) -> str | None:
    if shutil.which("Rscript") is None:
        return None
    code = f'cat(if (requireNamespace("{package}", quietly = TRUE)) as.character(packageVersion("{package}")))'
    found = subprocess.run(["Rscript", "--vanilla", "-e", code], capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


PROGRAMS = (
    Program("isuit", "penalised spline, quadrature", "isuit"),
    Program("isuit-whole", "the same, with gate, refits for held-out scores, and diagnostics", "isuit"),
    Program("gpboost", "quadratic, Laplace, one thread", "gpboost"),
    Program("gpboost-spline", "isuit's spline unpenalised, Laplace, one thread", "gpboost"),
    Program("gpboost (own threads)", "quadratic, Laplace, its own number of threads", "gpboost", one_thread=False),
    Program(
        "gpboost-spline (own threads)",
        "isuit's spline unpenalised, Laplace, its own number of threads",
        "gpboost",
        one_thread=False,
    ),
    Program("glmmTMB", "quadratic, Laplace", "glmmTMB", "glmmTMB.R", None, 10_000, SLOW),
    Program("lme4-fast", "quadratic, nAGQ = 0 (no integration)", "lme4", "lme4.R", "0"),
    Program("lme4", "quadratic, Laplace", "lme4", "lme4.R", "1", 10_000, SLOW),
    Program("lme4-quadrature", "quadratic, 11 nodes", "lme4", "lme4.R", "11", 10_000, SLOW),
    Program("mgcv", "bam, penalised smooth", "mgcv", "mgcv.R", None, 1_000, "its matrices are dense in riders"),
    # At 1,000 riders it had not finished after 90 CPU s.
    Program("statsmodels", "quadratic, variational Bayes", "statsmodels", None, None, 100, "dense in riders"),
)
