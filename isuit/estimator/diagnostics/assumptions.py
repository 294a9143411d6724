"""What the model takes for granted, tested from the fit at hand: score tests, without fitting anything more.

An assumption is a parameter fixed at zero: an interaction of skill with the metric, a curve of its own for each
clientele, a skewness of skill. At the maximum, the sum over riders of its score g should be chance. Each rider's score
is taken net of the parameters that were estimated (efficient score: the residual of a regression on their scores), and
its variance is what it is among riders, so that

    g' V^-1 g  is chi-square under the assumption,  and  V^-1 g  is about how large the parameter is.

In a large cohort a test finds departures that do not matter. A sentence is therefore said only when the departure is
both certain and large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import chdtrc

from isuit.domain import FloatArray, IntArray
from isuit.record.diagnostics import Assumptions, AsymptoteTest, ClienteleTest, DiscriminationTest, NormalityTest

from ..likelihood.asymptotes import asymptote_scores
from ..likelihood.latent import LatentFit
from ..likelihood.quadrature import ByEntry, MarginalLikelihood, Posterior
from ..likelihood.solver import evaluate
from ..model.arrow import Factor
from ..model.counts import Counts
from ..model.population import visits
from .exposure import along

LEVEL = 0.01
LEAST_RIDERS = 50  # with fewer the variance among riders is too uncertain to test with
MOST_ENTRIES = 1 << 22  # counts that are looked at; in a larger cohort those of every second or third rider, and so on
MOST_RIDERS = 1 << 17  # and riders: a score for every parameter and rider is more than all else that a fit holds
CLIENTELE_RIDERS = 20  # a clientele of fewer counts with the rest
MOST_CLIENTELES = 8
_OTHERS = -1  # code of the riders who are in none of the largest clienteles
STEEPER = 0.1  # relative change of discrimination over one sd of the metric that is worth a sentence
NOT_NORMAL = 0.1  # coefficient of a departure from normal that is worth one
LARGE_ASYMPTOTE = 0.02  # chance that is worth one: skill that is not normal can look like one of a hundredth


@dataclass(frozen=True)
class _Tested:
    """The riders that are tested, with their scores for the parameters that were estimated."""

    fit: LatentFit
    likelihood: MarginalLikelihood
    posterior: Posterior
    by_entry: ByEntry
    scores: csr_matrix
    covariance: Factor
    every: int  # one rider in so many

    @property
    def counts(self) -> Counts:
        return self.likelihood.counts

    @classmethod
    def of(cls, fit: LatentFit) -> _Tested:
        """All riders; of more than `MOST_ENTRIES` counts or `MOST_RIDERS`, every second or third rider, and so on."""
        solution, likelihood = fit.solution, fit.problem.likelihood
        counts, posterior = likelihood.counts, solution.at.posterior
        every = max(-(-counts.trials.nnz // MOST_ENTRIES), -(-counts.riders // MOST_RIDERS))
        if every > 1:
            part = fit.problem.of_riders(slice(None, None, every))
            likelihood, posterior = part.likelihood, evaluate(part, solution.phi, None, False)[0].posterior
        by_entry = likelihood.expected_by_entry(posterior)
        scores = likelihood.rider_scores(solution.curve, posterior, by_entry)
        return cls(fit, likelihood, posterior, by_entry, scores, solution.covariance, every)

    def score_test(self, extra: FloatArray) -> tuple[float, float, FloatArray]:
        """Statistic, p-value, and the size of the parameters; `extra` has a row per rider and a column each."""
        return score_test(self.efficient(extra))

    def efficient(self, extra: FloatArray) -> FloatArray:
        """Riders' scores net of the parameters that were estimated."""
        explained = self.every * self.covariance.solve(np.asarray(self.scores.T @ extra))
        return np.asarray(extra - self.scores @ explained)


def tests(fit: LatentFit, normal: LatentFit | None, constant: LatentFit | None) -> Assumptions:
    """All tests; None where a cohort cannot be tested.

    Normality is tested in the fit with `normal` skill, and a discrimination that is the same everywhere in the one with
    a `constant` one, where those are others.
    """
    if fit.problem.likelihood.counts.riders < LEAST_RIDERS or fit.solution.no_skill:
        return Assumptions(
            discrimination_by_metric=None,
            difficulty_by_clientele=None,
            normality_of_skill=None,
            lower_asymptote=None,
            upper_asymptote=None,
        )
    tested = _Tested.of(fit)
    lower, upper = _asymptotes(tested)
    return Assumptions(
        discrimination_by_metric=_discrimination(
            tested if fit.space.slopes is None or constant is None else _Tested.of(constant),
            corrected=fit.space.slopes is not None,
        ),
        difficulty_by_clientele=_clienteles(tested),
        normality_of_skill=_normality(tested if normal is None else _Tested.of(normal), corrected=normal is not None),
        lower_asymptote=lower,
        upper_asymptote=upper,
    )


def score_test(efficient: FloatArray) -> tuple[float, float, FloatArray]:
    """Statistic, p-value, and the size of the parameters, from riders' efficient scores, a column per parameter."""
    total = efficient.sum(axis=0)
    centred = efficient - efficient.mean(axis=0)
    size = np.linalg.lstsq(centred.T @ centred, total, rcond=1e-10)[0]
    statistic = max(float(total @ size), 0.0)
    return statistic, float(chdtrc(efficient.shape[1], statistic)), size


def _discrimination(tested: _Tested, corrected: bool = False) -> DiscriminationTest | None:
    """Does skill tell more apart at high metrics than at low ones: a(x) = a + gamma u(x), u the standardised metric.

    Of several metrics u is the standardised difficulty of the condition.
    """
    counts, solution = tested.counts, tested.fit.solution
    share, metric = counts.item_trials / counts.item_trials.sum(), along(counts, tested.fit)
    mean = float(share @ metric)
    sd = float(np.sqrt(share @ (metric - mean) ** 2))
    if sd == 0.0:
        return None
    u = (metric - mean) / sd
    score = (counts.successes @ u) * tested.posterior.mean - tested.by_entry.with_skill @ u
    statistic, p_value, size = tested.score_test(score[:, None])
    change = float(size[0]) / solution.discrimination
    sentence = None
    if p_value < LEVEL and abs(change) >= STEEPER:
        where = "high" if change > 0 else "low"
        what, each = ("metric", "metrics") if counts.item_metric.ndim == 1 else ("difficulty", "difficulties")
        todo = "its change is estimated" if corrected else "--discrimination varying estimates it"
        sentence = (
            f"Skill matters more at {where} {each}: the discrimination changes by about {change:+.0%} over one "
            f"standard deviation of the {what}; {todo}."
        )
    return DiscriminationTest(
        statistic=statistic,
        degrees_of_freedom=1,
        p_value=p_value,
        sentence=sentence,
        relative_change_per_sd=change,
    )


def _clienteles(tested: _Tested) -> ClienteleTest | None:
    """Does difficulty along the metric differ between clienteles: a tilt and bend of its own for each of the larger.

    A level of its own is a difference in skill, which the model has. Sites have their curves, so that this sees only
    clienteles that meet at a site.
    """
    space = tested.fit.space
    member = _clientele_of(tested.counts, space.sites)
    if member is None:
        return None
    first = 1 + (1 if space.anchor is not None else 0)
    columns = tested.scores[:, 1 + first : 1 + first + max(1, space.spline.free - 1)].toarray()
    groups = np.unique(member[member != _OTHERS])
    chosen = groups[1:] if np.all(member != _OTHERS) else groups  # all of them together are the curve itself
    extra = np.hstack([columns * (member == group)[:, None] for group in chosen])
    statistic, p_value, _ = tested.score_test(extra)
    sentence = None
    if p_value < LEVEL:
        sentence = (
            f"Difficulty differs between clienteles at the same site (p = {p_value:.2g}): the curve is an average over "
            "them; fit the larger clienteles apart and compare."
        )
    return ClienteleTest(
        statistic=statistic,
        degrees_of_freedom=extra.shape[1],
        p_value=p_value,
        sentence=sentence,
        clienteles=int(groups.size),
    )


def _clientele_of(counts: Counts, sites: int) -> IntArray | None:
    """The site that each rider visits most, among the largest clienteles; `_OTHERS` for the others."""
    if sites < 2:
        return None
    most = np.asarray(visits(counts, sites).argmax(axis=1)).ravel()
    riders = np.bincount(most, minlength=sites + 1)
    large = np.flatnonzero(riders >= CLIENTELE_RIDERS)
    large = large[np.argsort(-riders[large], kind="stable")][:MOST_CLIENTELES]
    if large.size < 2:
        return None
    return np.where(np.isin(most, large), most, _OTHERS)


def _normality(tested: _Tested, corrected: bool) -> NormalityTest:
    """Is skill, within a clientele, skewed or of heavy tails: the normal density times 1 + c3 h3 + c4 h4.

    The functions are Legendre polynomials of the normal distribution function (Neyman's smooth test). Hermite
    polynomials would give skewness and kurtosis themselves, but a few riders far out decide them: with 80 riders that
    test rejects a true normal one time in four.
    """
    third, fourth = np.sqrt(7) / 2 * np.array([0, -3, 0, 5, 0]), 3 / 8 * np.array([3, 0, -30, 0, 35])
    extra = tested.posterior.polynomials(np.stack([third, fourth]))
    statistic, p_value, size = tested.score_test(extra)
    asymmetry, tails = float(size[0]), float(size[1])
    sentence = None
    if p_value < LEVEL and max(abs(asymmetry), abs(tails)) >= NOT_NORMAL:
        lopsided = f"more {'strong' if asymmetry > 0 else 'weak'} riders far out than on the other side"
        ends = f"{'more' if tails > 0 else 'fewer'} riders at both ends"
        how = lopsided if abs(asymmetry) >= abs(tails) else ends
        what = (
            "its density is estimated"
            if corrected
            else "skills at the ends are shrunk as if it were; --skill estimated"
        )
        sentence = f"Skill is not normal among riders ({how}): {what}."
    return NormalityTest(
        statistic=statistic,
        degrees_of_freedom=2,
        p_value=p_value,
        sentence=sentence,
        asymmetry=asymmetry,
        tails=tails,
    )


def _asymptotes(tested: _Tested) -> tuple[AsymptoteTest, AsymptoteTest]:
    """Is there a chance of success that no difficulty takes away, or one of failure that no skill does.

    Each is zero or more, so each test has one side. They are not taken net of skewness and tails of skill: that would
    be one step, and where skill is far from normal (an exponential's) a step too far, which told asymptotes in a fifth
    of the cohorts that had none.
    """
    scores = tested.efficient(asymptote_scores(tested.posterior))
    lower, upper = _one_sided(scores[:, :1]), _one_sided(scores[:, 1:])
    guess = (
        f"Successes are left where the logistic curve leaves none (p = {lower[1]:.2g}): a chance of about "
        f"{lower[2]:.0%} that no difficulty takes away, as of a guess; the hardest conditions are told too "
        "easy, and skill as mattering too little."
    )
    lapse = (
        f"Failures are left where the logistic curve leaves none (p = {upper[1]:.2g}): a chance of about "
        f"{upper[2]:.0%} that no skill takes away, as of a lapse; the easiest conditions are told too hard, and "
        "skill as mattering too little."
    )
    return _asymptote(lower, guess), _asymptote(upper, lapse)


def _one_sided(efficient: FloatArray) -> tuple[float, float, float]:
    """Statistic, p-value and size of a parameter that is zero or more."""
    statistic, both_sides, size = score_test(efficient)
    p_value = both_sides / 2 if size[0] > 0 else 1.0 - both_sides / 2
    return statistic, p_value, float(size[0])


def _asymptote(found: tuple[float, float, float], sentence: str) -> AsymptoteTest:
    statistic, p_value, size = found
    large = p_value < LEVEL and size >= LARGE_ASYMPTOTE
    return AsymptoteTest(
        statistic=statistic, degrees_of_freedom=1, p_value=p_value, sentence=sentence if large else None, size=size
    )
