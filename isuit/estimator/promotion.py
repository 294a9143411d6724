"""From a counted cohort to a latent fit that may stand for it, or to the reasons why there is none.

The order is always the same: the identification gate, outcomes that are not all equal, the latent fit, if there is a
best one, a discrimination that does not vanish, and the likelihood-ratio test of a = 0. A fit of a cohort asks one
thing more: that skill does not predict held-out outcomes worse than the single curve does (`also_predicts`). A release
predicts no rider and does not ask.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isuit.domain import FitConfig, GateReport, HeldOut, PromotionReport

from .likelihood.boundary import boundary_p_value
from .likelihood.latent import LatentFit, fit_latent, penalised_log_likelihood
from .likelihood.prepared import Prepared
from .likelihood.solver import NoMaximum, Progress

PROMOTION_LEVEL = 0.01


@dataclass(frozen=True)
class Candidate:
    """How far a cohort came on its way to a latent fit.

    `promotion` is None where the gate did not pass, `latent` is None where no latent fit was found. A latent fit that
    the likelihood-ratio test rejects is there, with a promotion that says so.
    """

    gate: GateReport
    promotion: PromotionReport | None = None
    latent: LatentFit | None = None

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """Why a latent fit may not stand for the cohort; empty where it may."""
        return self.gate.shortfalls if self.promotion is None else self.promotion.shortfalls


def candidate(
    prepared: Prepared, gate: GateReport, config: FitConfig, progress: Progress | None = None, roughly: bool = False
) -> Candidate:
    """Try a latent fit, and test whether skill is there at all; `roughly` where another fit starts from it."""
    if not gate:
        return Candidate(gate)
    if _all_equal(prepared):
        reason = "all outcomes are equal, so nothing tells riders apart"
        return Candidate(gate, PromotionReport(False, None, None, (reason,)))
    try:
        latent = fit_latent(
            prepared.counts,
            prepared.space,
            prepared.single,
            config.exposure == "correlated",
            progress=progress,
            roughly=roughly,
        )
    except NoMaximum as told:
        return Candidate(gate, PromotionReport(False, None, None, (told.reason,)))
    if latent.solution.no_skill:
        reason = "skill explains nothing: the discrimination goes to zero"
        return Candidate(gate, PromotionReport(False, 0.0, 0.5, (reason,)))
    ratio, p_value = skill_test(prepared, latent)
    shortfalls = []
    if p_value >= PROMOTION_LEVEL:
        shortfalls.append(
            f"skill does not explain outcomes: the likelihood-ratio test of a = 0 has p = {p_value:.2g}, "
            f"not below {PROMOTION_LEVEL}"
        )
    return Candidate(gate, PromotionReport(not shortfalls, ratio, p_value, tuple(shortfalls)), latent)


def skill_test(prepared: Prepared, latent: LatentFit) -> tuple[float, float]:
    """The likelihood-ratio test of a = 0, which is on the boundary: the statistic and its p-value.

    The null is the single curve with the latent fit's smoothing, so that the two differ by skill alone.
    """
    null = prepared.single_with(latent.solution.rho)
    ratio = max(0.0, 2.0 * (penalised_log_likelihood(latent) - null.penalised))
    # Under a = 0 the population's regressors do not matter either: each adds up to one degree of freedom.
    extra = int(np.ceil(latent.population_degrees_of_freedom - 1e-9))
    return ratio, boundary_p_value(ratio, extra)


def also_predicts(promotion: PromotionReport, held_out: HeldOut | None) -> PromotionReport:
    """The report with the verdict of held-out outcomes added, where any were scored."""
    if held_out is None or not held_out.brier_skill < -held_out.brier_skill_se:
        return promotion
    worse = (
        f"skill predicts held-out outcomes worse than the single curve: Brier skill {held_out.brier_skill:.3f} "
        f"with standard error {held_out.brier_skill_se:.3f}"
    )
    return PromotionReport(False, promotion.likelihood_ratio, promotion.p_value, (*promotion.shortfalls, worse))


def _all_equal(prepared: Prepared) -> bool:
    counts = prepared.counts
    return not counts.item_successes.any() or np.array_equal(counts.item_successes, counts.item_trials)
