"""CPU time of a whole fit with an estimated density over that with normal skill, on the same cohort."""

from __future__ import annotations

import time

from isuit.domain import FitConfig
from isuit.estimator import fit
from isuit.experiment.cohort import Truth

from .populations import POPULATIONS, cohort


def cost(truth: Truth, first: int, cohorts: int, names: list[str]) -> None:
    small = cohort(POPULATIONS["normal"], Truth(100, 30, truth.discrimination, lower=truth.lower, upper=truth.upper), 1)
    fit(small[0], FitConfig(skill="estimated"))  # loads the compiled loops
    print("| true skill | seed | normal, CPU s | estimated, CPU s | ratio |\n|---|--:|--:|--:|--:|")
    for name in names:
        for seed in range(first, first + cohorts):
            data, _ = cohort(POPULATIONS[name], truth, seed)
            spent = []
            for kind in ("normal", "estimated"):
                began = time.process_time()
                fit(data, FitConfig(skill=kind))
                spent.append(time.process_time() - began)
            print(f"| {name} | {seed} | {spent[0]:.2f} | {spent[1]:.2f} | {spent[1] / spent[0]:.2f} |", flush=True)
