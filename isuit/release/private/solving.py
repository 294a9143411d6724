"""From noised sums to curves and their errors. Everything here is computed from what is public already.

The sums are of clipped scores at public parameters. What they say about the difference between these and the true
ones depends on how scores respond (`response`) and how they vary between persons (`variation`). Both are found by
inventing persons: outings as the survey says, outcomes from the model at the same parameters, the same scores, the same
clipping. So clipping shrinks no estimate: what it takes from the scores it takes from the response too.

Scores of several rounds have the same sampling error and each its own noise. Their mean, with the noise's variance that
is known and priors for smoothness of the curve, level and tilt, gives a posterior, whose errors hold all of it. How
many riders a cell has is not certain either (`counted`): what all cells share is found with the likeliest numbers, then
each cell's level and tilt with all that are possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isuit.domain import FloatArray
from isuit.release.private.contributions import (
    CLIP,
    GRID,
    OUTINGS,
    SURVEY_OUTINGS,
    SURVEY_PERSON,
    SURVEY_SHARE,
    SURVEY_SUCCESSES,
    Entries,
    Parameters,
    across,
    between_bins,
    clipped,
    score_scales,
    scores_of_each,
)
from isuit.release.private.counted import Cells, Counts, OfARider, read_cells, read_counts

INVENTED = 3_000  # persons from whom response and variation are found
DISCRIMINATION, DISCRIMINATION_SD = math.log(1.7), 0.5  # prior of the logarithm; also where the first round starts
BEND_SD, CURVE_SD = 1.0, 3.0  # of the shared curve: of second differences between bins, and of each value
LEVEL_SD, TILT_SD, PRIOR_CELLS = 0.4, 0.15, 4  # of cells, worth so many cells when the sds are estimated
STRIDE = 1.8  # of the steps towards these sds: plain ones shorten as an sd comes near to zero, and seem to have arrived
FEWEST = 2.0  # persons that there are at least: noise can make their number negative


@dataclass(frozen=True)
class Survey:
    """What is known of where outings are: by bin for a person on average, riders in all and by cell."""

    outings: FloatArray  # of a person, by bin
    rate: FloatArray  # of success, by bin
    persons: float
    concentration: float  # of a person's outings: the sum of squared shares of cells
    riders: FloatArray  # by cell; one who visits several counts in each by share
    riders_variance: float  # of the noise


def read_survey(noised: FloatArray, sd: float, bins: int) -> Survey:
    """The survey from its noised sum, in units of `GRID`; `sd` is the noise's in the same units."""
    units, noise = noised / GRID, sd / GRID
    successes = units[:bins] / SURVEY_SUCCESSES
    outings = np.maximum(units[bins : 2 * bins] / SURVEY_OUTINGS, 2 * noise / SURVEY_OUTINGS)
    persons = max(units[2 * bins] / SURVEY_PERSON, FEWEST)
    concentration = min(max(units[2 * bins + 1] / SURVEY_PERSON / persons, 0.5), 1.0)
    rate = np.clip((successes / outings + 1) / 2, 0.01, 0.99)
    return Survey(
        np.clip(outings * OUTINGS / persons, 0.05, OUTINGS),
        rate,
        persons,
        concentration,
        units[2 * bins + 2 :] / SURVEY_SHARE,
        (noise / SURVEY_SHARE) ** 2,
    )


def start(survey: Survey) -> Parameters:
    """Where the first scores are taken: the curve that gives the surveyed rates, smoothed, and no cell apart."""
    a = math.exp(DISCRIMINATION)
    # Of a logistic curve averaged over N(0, 1): sigmoid(-a d / sqrt(1 + a² / 2.89)), to about 0.01.
    raw = -np.log(survey.rate / (1 - survey.rate)) * math.sqrt(1 + a * a / 2.89) / a
    weight = np.diag(survey.outings * survey.persons * survey.rate * (1 - survey.rate) / 10)
    curve: FloatArray = np.linalg.solve(weight + _bends(raw.size), weight @ raw).astype(np.float64)
    cells = survey.riders.size
    return Parameters(curve, DISCRIMINATION, np.zeros(cells), np.zeros(cells))


def _bends(bins: int) -> FloatArray:
    """The prior's information about the shared curve."""
    second = np.diff(np.eye(bins), 2, axis=0)
    return np.asarray(second.T @ second / BEND_SD**2 + np.eye(bins) / CURVE_SD**2)


@dataclass(frozen=True)
class Round:
    """One round of scores in natural units, and what invented persons say about such scores."""

    at: Parameters  # where they were taken
    shared: FloatArray  # scores by bin and of the discrimination
    cells: FloatArray  # by cell: of level and tilt
    noise: FloatArray  # variance by coordinate: those of `shared`, then of a cell's two
    riders: FloatArray  # by cell, as this round's shares say
    riders_variance: float
    mean: FloatArray  # of one person's scores; as below, by what is shared, own cell, other cell
    response: FloatArray
    variation: FloatArray


def read_round(noised: FloatArray, sd: float, at: Parameters, survey: Survey, level_error: float) -> Round:
    """What a noised sum of scores at these parameters says; levels there are wrong by about `level_error`."""
    border, cells = at.curve.size + 1, at.level.size
    scales = score_scales(at.curve.size, cells)
    natural, noise = noised / GRID * CLIP / scales, (sd / GRID * CLIP / scales) ** 2
    by_cell = natural[border:].reshape(cells, 3)
    # Clipping takes from shares too: its mean over invented persons tells how much.
    mean, response, variation, kept = _invented(at, survey, level_error)
    return Round(
        at,
        natural[:border],
        by_cell[:, :2],
        noise[: border + 2],
        by_cell[:, 2] / kept,
        float(noise[border + 2]) / kept**2,
        mean,
        response,
        variation,
    )


def _counts(rounds: list[Round], survey: Survey) -> Counts:
    """Riders by cell from the survey and the rounds' shares, weighed by their noise."""
    found = [(survey.riders, survey.riders_variance), *((each.riders, each.riders_variance) for each in rounds)]
    weight = float(sum(1 / variance for _, variance in found))
    mean = np.sum([each / variance for each, variance in found], axis=0) / weight
    return read_counts(np.asarray(mean, dtype=np.float64), 1 / weight)


def _invented(at: Parameters, survey: Survey, level_error: float) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Of persons from the model: mean of clipped scores, response and variation by person, and the share that is kept.

    Coordinates are those of the shared curve, the discrimination, level and tilt of a person's own cell, and the two of
    another cell that the same person visits. The mean is that of persons whose cells have other levels than is thought:
    where hardly anybody succeeds, a place that is easier adds more successes than one that is harder takes away.
    """
    bins = at.curve.size
    random = np.random.default_rng(20_260_101)  # public: what is invented is no secret
    outings = random.poisson(np.tile(survey.outings, (INVENTED, 1)))
    # Shares x and 1 - x of two cells are as concentrated as x² + (1 - x)² says.
    larger = (1 + math.sqrt(max(2 * survey.concentration - 1, 0.0))) / 2
    first = random.binomial(outings, larger)
    by_cell = np.stack([first, outings - first], axis=1)
    # Anywhere in their bin: at its ends a steep curve is elsewhere than at its centre, and clipping is not linear.
    place: FloatArray = np.arange(float(bins)) + random.uniform(-0.5, 0.5, by_cell.shape)
    knot, weights = between_bins(np.asarray(place.ravel(), np.float64), bins)
    difficulty = (weights * at.curve[knot[:, None] + np.arange(4)]).sum(axis=1).reshape(place.shape)
    gap = random.standard_normal(INVENTED)[:, None, None] - difficulty
    luck = random.logistic(size=(*gap.shape, int(by_cell.max()))) / math.exp(at.log_discrimination)
    luck[np.arange(luck.shape[-1]) >= by_cell[..., None]] = -np.inf  # no such outing
    wrong = level_error * random.standard_normal((INVENTED, 2, 1))
    person, cell, bin_ = np.nonzero(by_cell)
    there = np.flatnonzero(by_cell)
    start = np.concatenate([[0], np.cumsum(np.bincount(person, minlength=INVENTED))]).astype(np.int64)
    trials = by_cell[person, cell, bin_].astype(np.float64)
    two = Parameters(at.curve, at.log_discrimination, np.zeros(2), np.zeros(2))
    scales, shares = score_scales(bins, 2), [bins + 3, bins + 6]

    def scored(gap: FloatArray) -> FloatArray:
        successes = (gap[..., None] + luck > 0).sum(axis=-1)[person, cell, bin_].astype(np.float64)
        columns = cell.astype(np.int64), bin_.astype(np.int64), knot[there], weights[there]
        return scores_of_each(Entries(start, *columns, trials, successes), two)

    scores = scored(gap)
    kept = clipped(scores * scales) / scales
    share = float(kept[:, shares].sum() / max(scores[:, shares].sum(), 1e-9))
    # Scores have a mean of zero before clipping, where levels are right; not so among so many persons.
    mean = (clipped(scored(gap - wrong) * scales) / scales - scores).mean(axis=0)
    scores, kept = np.delete(scores, shares, axis=1), np.delete(kept, shares, axis=1)
    return np.delete(mean, shares), kept.T @ scores / INVENTED, kept.T @ kept / INVENTED, share


def _whole(part: FloatArray, persons: float, riders: FloatArray, bins: int) -> FloatArray:
    """A person's matrix as that of all: by the riders of each cell, who visit any other in proportion to its riders."""
    border, size = bins + 1, bins + 1 + 2 * riders.size
    whole = np.zeros((size, size))
    one, other = slice(border, border + 2), slice(border + 2, border + 4)
    whole[:border, :border] = persons * part[:border, :border]
    own = part[one, one] + part[other, other]
    apart = part[one, other] + part[other, one]
    across_cells = np.outer(riders, riders) / max(riders.sum(), 1.0)
    whole[border:, border:] = np.kron(np.diag(riders), own) + np.kron(across_cells, apart)
    whole[:border, border:] = np.kron(riders, part[:border, one] + part[:border, other])
    whole[border:, :border] = np.kron(riders[:, None], part[one, :border] + part[other, :border])
    return whole


@dataclass(frozen=True)
class Posterior:
    """What was found: for everything that cells share (curve, discrimination) with covariance, and for each cell."""

    shared: FloatArray
    covariance: FloatArray  # of what is shared
    cells: Cells

    @property
    def bins(self) -> int:
        return int(self.shared.size) - 1

    @property
    def riders(self) -> FloatArray:
        return self.cells.riders

    @property
    def parameters(self) -> Parameters:
        level, tilt = self.cells.mean.T
        return Parameters(self.shared[:-1], float(self.shared[-1]), level, tilt)

    @property
    def level_error(self) -> float:
        """How far a rider's place is from the level that was found for it, as a root mean square over riders."""
        return math.sqrt(float(self.riders @ self.cells.covariance[:, 0, 0] / self.riders.sum()))

    def errors(self) -> FloatArray:
        """The standard error of every cell's difficulty, by bin: the cell's own, and what the shared part adds."""
        found = np.zeros((self.riders.size, self.bins))
        for b, tilt in enumerate(across(self.bins).tolist()):
            own = np.array([1.0, tilt])
            by_shared = own @ self.cells.by_shared  # a row for each cell
            by_shared[:, b] += 1.0
            found[:, b] = own @ self.cells.covariance @ own
            found[:, b] += np.einsum("ci,ij,cj->c", by_shared, self.covariance, by_shared)
        return np.asarray(np.sqrt(found))


def solve(rounds: list[Round], survey: Survey) -> Posterior:
    """The posterior after these rounds; the sds of levels and tilts are estimated with it."""
    bins, border, number = survey.rate.size, survey.rate.size + 1, len(rounds)
    counts = _counts(rounds, survey)
    likely = counts.mean
    cells = likely.size
    response: FloatArray = np.mean([each.response for each in rounds], axis=0)
    variation: FloatArray = np.mean([each.variation for each in rounds], axis=0)
    noise: FloatArray = np.mean([each.noise for each in rounds], axis=0) / number
    pseudo: FloatArray = np.mean([_pseudo(each, survey.persons, likely) for each in rounds], axis=0)
    whole, spread = (_whole(part, survey.persons, likely, bins) for part in (response, (variation + variation.T) / 2))
    all_noise = np.concatenate([noise[:border], np.tile(noise[border:], cells)])
    weighed = np.linalg.solve(spread + np.diag(all_noise), np.column_stack([whole, pseudo]))
    information, target = whole.T @ weighed[:, :-1], whole.T @ weighed[:, -1]
    sds = np.array([LEVEL_SD, TILT_SD])
    for _ in range(30):
        prior = np.zeros_like(information)
        prior[:bins, :bins] = _bends(bins)
        prior[bins, bins] = 1 / DISCRIMINATION_SD**2
        prior[border:, border:] = np.diag(np.tile(1 / sds**2, cells))
        right = target.copy()
        right[bins] += DISCRIMINATION / DISCRIMINATION_SD**2
        covariance = np.linalg.inv(information + prior)
        mean = covariance @ right
        squares = (mean**2 + np.diag(covariance))[border:].reshape(-1, 2).sum(axis=0)
        fresh = np.sqrt((squares + PRIOR_CELLS * np.array([LEVEL_SD, TILT_SD]) ** 2) / (cells + PRIOR_CELLS))
        settled = np.max(np.abs(fresh - sds)) < 1e-3
        sds = sds * (fresh / sds) ** STRIDE
        if settled or cells < 2:
            break
    shared, by_cell = mean[:border], mean[border:].reshape(cells, 2)
    one, other = slice(border, border + 2), slice(border + 2, border + 4)
    rider = OfARider(
        response[one, one] + response[other, other],
        response[one, :border] + response[other, :border],
        (variation + variation.T)[one, one] / 2 + (variation + variation.T)[other, other] / 2,
        noise[border:],
    )
    elsewhere = (response[one, other] + response[other, one]) @ (likely @ by_cell / max(likely.sum(), 1.0))
    offset = rider.shared @ shared + elsewhere - np.mean([_linear(each, likely) for each in rounds], axis=0)
    scores: FloatArray = np.mean([each.cells for each in rounds], axis=0)
    found = read_cells(scores, offset, rider, sds, counts)
    return Posterior(shared, (covariance + covariance.T)[:border, :border] / 2, found)


def _pseudo(each: Round, persons: float, riders: FloatArray) -> FloatArray:
    """Scores less what clipping adds on average, with the linear part added back."""
    bins, border = each.at.curve.size, each.at.curve.size + 1
    shared = np.concatenate([each.at.curve, [each.at.log_discrimination]])
    cells = np.column_stack([each.at.level, each.at.tilt])
    whole = _whole(each.response, persons, riders, bins) @ np.concatenate([shared, cells.ravel()])
    natural = np.concatenate([each.shared - persons * each.mean[:border], each.cells.ravel()])
    of_a_rider = each.mean[border:].reshape(2, 2).sum(axis=0)
    return np.asarray(natural + whole - np.concatenate([np.zeros(border), np.kron(riders, of_a_rider)]))


def _linear(each: Round, riders: FloatArray) -> FloatArray:
    """By cell what is added back for each of its riders: the part of `_pseudo` that a count multiplies."""
    border = each.at.curve.size + 1
    one, other = slice(border, border + 2), slice(border + 2, border + 4)
    shared = np.concatenate([each.at.curve, [each.at.log_discrimination]])
    cells = np.column_stack([each.at.level, each.at.tilt])
    apart = each.response[one, other] + each.response[other, one]
    found = cells @ (each.response[one, one] + each.response[other, other]).T
    found += (each.response[one, :border] + each.response[other, :border]) @ shared
    found += apart @ (riders @ cells / max(riders.sum(), 1.0)) - each.mean[border:].reshape(2, 2).sum(axis=0)
    return np.asarray(found)
