"""How often asymptotes are told that are there, or not."""

from __future__ import annotations

import numpy as np

from isuit.domain import Z95
from isuit.estimator.diagnostics import assumptions
from isuit.estimator.likelihood.latent import fit_latent
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.likelihood.threads import one_thread
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace
from isuit.experiment.cohort import Truth

from .populations import POPULATIONS, Ends, cohort

ENDS = {
    "none": Ends(),
    "lapses of 5 %": Ends(lapse=0.05),
    "floor of a half": Ends(floor=0.5),
    "floor of a half, lapses of 5 %": Ends(floor=0.5, lapse=0.05),
    "none, exponential skill": Ends(population="exponential"),
    "none, two groups": Ends(population="two groups"),
}


@one_thread()
def with_ends(ends: Ends, truth: Truth, seed: int) -> list[float]:
    """Of a normal fit: p and size of both asymptotes, the discrimination, and what is wrong with difficulty."""
    data, _ = cohort(POPULATIONS[ends.population], truth, seed, ends)
    spline = spline_for(data.metric)
    counts = count(data.rider, data.metric, data.outcome, spline, len(data.riders))
    space = CurveSpace(spline, 0)
    fit = fit_latent(counts, space, Prepared(counts, space).single)
    tests = assumptions.tests(fit, None, None)
    assert tests.lower_asymptote is not None
    assert tests.upper_asymptote is not None
    metric = np.linspace(spline.lower, spline.upper, 161)
    band = fit.difficulty(metric)
    error = band.value - truth.difficulty(metric)
    lower, upper = tests.lower_asymptote, tests.upper_asymptote
    return [
        lower.p_value, upper.p_value, lower.size, upper.size, fit.discrimination, float(np.mean(error**2)),
        float(np.mean(np.abs(error) <= Z95 * band.se)), lower.sentence is not None, upper.sentence is not None,
    ]  # fmt: skip


def asymptotes(truth: Truth, first: int, cohorts: int) -> None:
    print("| curve | n | lower: p < 0.05 | told | size (sd) | upper: p < 0.05 | told | size (sd) | a | RMSE | covers |")
    print("|---|" + "--:|" * 10)
    for name, ends in ENDS.items():
        found = np.array([with_ends(ends, truth, seed) for seed in range(first, first + cohorts)])
        mean, sd = found.mean(axis=0), found.std(axis=0)
        print(
            f"| {name} | {len(found)} | {np.mean(found[:, 0] < 0.05):.1%} | {mean[7]:.1%} "
            f"| {mean[2]:+.3f} ({sd[2]:.3f}) | {np.mean(found[:, 1] < 0.05):.1%} | {mean[8]:.1%} "
            f"| {mean[3]:+.3f} ({sd[3]:.3f}) | {mean[4]:.2f} | {np.sqrt(mean[5]):.3f} | {mean[6]:.1%} |",
            flush=True,
        )
