"""What the paper's experiment found: latent-demo, and its stats.json."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from isuit.published.base import Published


class MeanOverCohorts(Published):
    """A figure's mean over fresh cohorts."""

    mean: float
    monte_carlo_error: float | None = Field(description="Null for one cohort.")


class ExperimentStats(Published):
    """`isuit latent-demo`, and `stats.json`; a key that does not apply is not there."""

    seed: int
    n_riders: int
    n_train: int
    kind: Literal["latent", "single-curve"]
    identification_ok: bool
    shortfalls: list[str]
    theta_recovery_corr: float | None = Field(None, description="Pearson correlation of true and estimated skill.")
    difficulty_min_knots: float | None = Field(None, description="Null where the data show no minimum.")
    difficulty_min_interval: list[float | None] | None = None
    discrimination_a: float | None = None
    discrimination_a_se: float | None = None
    discrimination_a_interval: tuple[float, float] | None = None
    marginal_matches: bool | None = None
    marginal_largest_difference: float | None = None
    held_out_bss: float | None = Field(None, description="80/20, against the single curve.")
    held_out_bss_se: float | None = None
    held_out_bss_70_30: float | None = Field(None, description="As the paper has it, against logistic(1, x, x²).")
    difficulty_rmse: float | None = None
    difficulty_se_mean: float | None = None
    difficulty_coverage_95: float | None = None
    skill_rmse: float | None = None
    skill_sd_mean: float | None = None
    skill_coverage_95: float | None = None
    log_likelihood: float | None = None
    gradient_tolerance: float | None = None
    paper: dict[str, bool | int | float] = Field(description="The paper's values, where the cohort is the paper's.")
    replicates_summary: dict[str, int | MeanOverCohorts] | None = Field(
        None, description="Over fresh cohorts: how many, of which kinds, and the mean of each figure."
    )

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_unset=True)
