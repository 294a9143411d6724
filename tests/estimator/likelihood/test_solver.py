"""What converged means: a small gradient after a refresh of the nodes, from any start; and a = 0 is no answer."""

from __future__ import annotations

import numpy as np
import pytest

from isuit.domain import Observations
from isuit.errors import EstimationError
from isuit.estimator.likelihood import solver
from isuit.estimator.likelihood.latent import LatentFit, fit_latent
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.likelihood.solver import State, evaluate, solve
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace
from isuit.estimator.model.smoothing import precisions
from isuit.experiment.cohort import Truth, draw

from ..cohorts import latent_fit, observations, parabola, simulate


def test_the_gradient_vanishes_on_fresh_nodes(reference_fit: LatentFit) -> None:
    found, problem = reference_fit.solution, reference_fit.problem
    at = evaluate(problem, found.phi, None, False)[0]
    gradient = at.gradient - precisions(found.rho, problem.groups) * found.phi
    assert np.sqrt(gradient @ found.covariance.solve(gradient)) < 1e-5
    assert found.gradient_norm < solver.TOLERANCE


@pytest.mark.parametrize("start", [0.2, 0.7, 4.0, 8.0])
def test_every_start_ends_at_the_same_maximum(reference_fit: LatentFit, start: float) -> None:
    """Plain EM in these coordinates stands at 2.02 or 2.56 on heavy riders, by where it started."""
    phi = reference_fit.solution.phi.copy()
    phi[0], phi[1:] = start, phi[1:] * 0.3
    begin = State(phi, np.array([3.0]))
    found = solve(reference_fit.problem, begin)
    error = found.phi - reference_fit.solution.phi
    assert found.discrimination == pytest.approx(reference_fit.solution.discrimination, abs=1e-4)
    assert np.max(np.abs(error) / np.sqrt(found.covariance.diagonal())) < 1e-2


def test_the_maximum_is_one(reference_fit: LatentFit) -> None:
    """Steps of a tenth of a standard error in every direction lower the penalised likelihood."""
    found, problem = reference_fit.solution, reference_fit.problem

    def value(phi: np.ndarray) -> float:
        at = evaluate(problem, phi, None, False)[0]
        return solver.penalised(problem, phi, found.rho, at.log_likelihood)

    top = value(found.phi)
    se = np.sqrt(found.covariance.diagonal())
    for k in range(found.phi.size):
        for sign in (-1, 1):
            step = np.zeros_like(se)
            step[k] = 0.1 * sign * se[k]
            assert value(found.phi + step) < top


def test_no_place_is_looked_at_twice(reference_fit: LatentFit, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a long step is checked with is the pass that the next step needs."""
    seen: list[tuple[float, ...]] = []
    look = solver.evaluate

    def noted(problem: solver.Problem, phi: np.ndarray, windows: object, information: bool) -> object:
        if not information:
            seen.append(tuple(phi))
        return look(problem, phi, windows, information)

    monkeypatch.setattr(solver, "evaluate", noted)
    phi = reference_fit.solution.phi.copy()
    phi[0] = 4.0
    solve(reference_fit.problem, State(phi, np.array([3.0])))
    assert len(seen) > 2
    assert len(set(seen)) == len(seen)


def test_steps_in_the_effects_of_regressors_converge_quadratically() -> None:
    """From a fiftieth of a standard error off, one step with the information there leaves next to nothing."""
    generator = np.random.default_rng(3)
    rider = np.repeat(np.arange(150), 20)
    home = generator.normal(18, 5, 150)
    metric = np.clip(generator.normal(home[rider], 4), 3, 35)
    outcome = simulate(generator, rider, 0.3 * generator.standard_normal(150) + 0.1 * (home - 18), parabola(metric))
    data = observations(rider, metric, outcome)
    spline = spline_for(data.metric)
    counts = count(data.rider, data.metric, data.outcome, spline, 150)
    space = CurveSpace(spline, 0)
    found = fit_latent(counts, space, Prepared(counts, space).single, True)
    problem, solution = found.problem, found.solution
    signs = np.where(np.arange(solution.phi.size) % 2, 1, -1)
    off = solution.phi + 0.02 * np.sqrt(solution.covariance.diagonal()) * signs
    norms = []
    for _ in range(2):
        climb = solver._Climb(problem, State(off, solution.rho), certainty=False)
        climb._held = True
        climb.look()
        climb.find_direction()
        climb.advance()
        norms.append(climb.norm)
        off = climb.phi
    assert norms[1] < 0.03 * norms[0]


def test_too_few_steps_are_an_error(reference: Observations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "_MOST_STEPS", 3)
    with pytest.raises(EstimationError, match="gradient tolerance of 1e-07"):
        latent_fit(reference)


def test_discrimination_of_zero_is_a_verdict_and_not_convergence() -> None:
    """Every rider alike, to the last outcome: the likelihood falls from a = 0 on."""
    metric = np.tile(np.linspace(3, 35, 20), 40)
    outcome = np.tile(simulate(np.random.default_rng(0), np.arange(20), np.zeros(20), parabola(metric[:20])), 40)
    found = latent_fit(observations(np.repeat(np.arange(40), 20), metric, outcome))
    assert found.solution.no_skill
    # From so low a start, skill that is there is found all the same.
    there = latent_fit(draw(Truth(), 11)[0])
    phi = there.solution.phi.copy()
    phi[0] = 0.05
    found_again = solve(there.problem, State(phi, there.solution.rho))
    assert found_again.discrimination == pytest.approx(there.discrimination, abs=1e-4)


def test_progress_runs_to_its_end(reference_fit: LatentFit) -> None:
    told: list[float] = []
    begin = State(reference_fit.solution.phi * 0.9, reference_fit.solution.rho)
    solve(reference_fit.problem, begin, lambda _, share: told.append(share))
    assert told[0] < 0.5
    assert told[-1] == 1.0
    assert all(0 <= share <= 1 for share in told)
