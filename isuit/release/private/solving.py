"""From noised sums to curves and their errors. Everything here is computed from what is public already.

The sums are of clipped scores at public parameters. What they say about the difference between these and the true
ones depends on how scores respond (`response`) and how they vary between persons (`variation`). Both are found by
inventing persons: outings as the survey says, outcomes from the model at the same parameters, the same scores, the same
clipping. So clipping shrinks no estimate: what it takes from the scores it takes from the response too.

Scores of several rounds have the same sampling error and each its own noise. Their mean, with the noise's variance that
is known and priors for smoothness of the curve, level and tilt, gives a posterior, whose errors hold all of it.
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

INVENTED = 3_000  # persons from whom response and variation are found
DISCRIMINATION, DISCRIMINATION_SD = math.log(1.7), 0.5  # prior of the logarithm; also where the first round starts
BEND_SD, CURVE_SD = 1.0, 3.0  # of the shared curve: of second differences between bins, and of each value
LEVEL_SD, TILT_SD, PRIOR_CELLS = 0.4, 0.2, 6  # of cells, worth so many cells when the sds are estimated
FEWEST = 2.0  # riders that a cell is taken to have at least: noise can make their number negative


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
    """One round of scores in natural units: less what clipping adds on average, with the linear part added back."""

    pseudo: FloatArray  # score + response @ parameters
    response: FloatArray
    variation: FloatArray
    noise: FloatArray  # variance by coordinate
    riders: FloatArray  # by cell, as this round's shares say
    riders_variance: float


def read_round(noised: FloatArray, sd: float, at: Parameters, survey: Survey) -> Round:
    """What a noised sum of scores at these parameters says."""
    bins, cells = at.curve.size, at.level.size
    scales = score_scales(bins, cells)
    natural, noise = noised / GRID * CLIP / scales, sd / GRID * CLIP / scales
    share = np.zeros(natural.size, bool)
    share[bins + 3 :: 3] = True
    riders, variance = natural[share], float(noise[share][0] ** 2) if cells else 0.0
    # Clipping takes from shares too: its mean over invented persons tells how much.
    mean, response, variation, kept = _invented(at, survey)
    riders = riders / kept
    known = _riders(survey, [(riders, variance / kept**2)])
    response, variation = (_whole(part, survey.persons, known, bins) for part in (response, variation))
    of_a_rider = mean[bins + 1 :].reshape(2, 2).sum(axis=0)
    bias = np.concatenate([survey.persons * mean[: bins + 1], np.kron(known, of_a_rider)])
    parameters = np.concatenate([at.curve, [at.log_discrimination], np.column_stack([at.level, at.tilt]).ravel()])
    pseudo = natural[~share] - bias + response @ parameters
    return Round(pseudo, response, variation, noise[~share] ** 2, riders, variance / kept**2)


def _riders(survey: Survey, rounds: list[tuple[FloatArray, float]]) -> FloatArray:
    """Riders by cell from the survey and the rounds' shares, weighed by their noise."""
    found = [(survey.riders, survey.riders_variance), *rounds]
    weight = np.array([1 / variance for _, variance in found])
    mean = np.sum([each / variance for each, variance in found], axis=0) / weight.sum()
    return np.asarray(np.maximum(mean, FEWEST), dtype=np.float64)


def _invented(at: Parameters, survey: Survey) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Of persons from the model: mean of clipped scores, response and variation by person, and the share that is kept.

    Coordinates are those of the shared curve, the discrimination, level and tilt of a person's own cell, and the two of
    another cell that the same person visits.
    """
    bins = at.curve.size
    random = np.random.default_rng(20_260_101)  # public: what is invented is no secret
    outings = random.poisson(np.tile(survey.outings, (INVENTED, 1)))
    # Shares x and 1 - x of two cells are as concentrated as x² + (1 - x)² says.
    larger = (1 + math.sqrt(max(2 * survey.concentration - 1, 0.0))) / 2
    first = random.binomial(outings, larger)
    by_cell = np.stack([first, outings - first], axis=1)
    skill = random.standard_normal(INVENTED)
    two = Parameters(at.curve, at.log_discrimination, np.zeros(2), np.zeros(2))
    chance = 1 / (1 + np.exp(-math.exp(at.log_discrimination) * (skill[:, None] - at.curve)))
    successes = random.binomial(by_cell, chance[:, None, :])
    person, cell, bin_ = np.nonzero(by_cell)
    # At the centre of their bin: where in it they are makes no difference to how scores respond.
    knot, weights = between_bins(bin_.astype(np.float64), bins)
    counted = np.bincount(person, minlength=INVENTED)
    entries = Entries(
        np.concatenate([[0], np.cumsum(counted)]).astype(np.int64),
        cell.astype(np.int64),
        bin_.astype(np.int64),
        knot,
        weights,
        by_cell[person, cell, bin_].astype(np.float64),
        successes[person, cell, bin_].astype(np.float64),
    )
    scores = scores_of_each(entries, two)
    scales = score_scales(bins, 2)
    kept = clipped(scores * scales) / scales
    shares = [bins + 3, bins + 6]
    share = float(kept[:, shares].sum() / max(scores[:, shares].sum(), 1e-9))
    scores, kept = np.delete(scores, shares, axis=1), np.delete(kept, shares, axis=1)
    return kept.mean(axis=0), kept.T @ scores / INVENTED, kept.T @ kept / INVENTED, share


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
    """The parameters with their covariance, in the order curve, discrimination, (level, tilt) by cell."""

    mean: FloatArray
    covariance: FloatArray
    riders: FloatArray
    bins: int

    @property
    def parameters(self) -> Parameters:
        cells = self.mean[self.bins + 1 :].reshape(-1, 2)
        return Parameters(self.mean[: self.bins], float(self.mean[self.bins]), cells[:, 0], cells[:, 1])

    def errors(self) -> FloatArray:
        """The standard error of every cell's difficulty, by bin."""
        tilt = across(self.bins)
        found = np.zeros((self.riders.size, self.bins))
        for cell in range(self.riders.size):
            for b in range(self.bins):
                place = [b, self.bins + 1 + 2 * cell, self.bins + 2 + 2 * cell]
                weight = np.array([1.0, 1.0, tilt[b]])
                found[cell, b] = math.sqrt(float(weight @ self.covariance[np.ix_(place, place)] @ weight))
        return found


def solve(rounds: list[Round], survey: Survey) -> Posterior:
    """The posterior after these rounds; the sds of levels and tilts are estimated with it."""
    number = len(rounds)
    response: FloatArray = np.mean([each.response for each in rounds], axis=0)
    variation: FloatArray = np.mean([each.variation for each in rounds], axis=0)
    pseudo: FloatArray = np.mean([each.pseudo for each in rounds], axis=0)
    noise: FloatArray = np.mean([each.noise for each in rounds], axis=0) / number
    bins = survey.rate.size
    cells = survey.riders.size
    weighed = np.linalg.solve((variation + variation.T) / 2 + np.diag(noise), np.column_stack([response, pseudo]))
    information, target = response.T @ weighed[:, :-1], response.T @ weighed[:, -1]
    sds = np.array([LEVEL_SD, TILT_SD])
    for _ in range(30):
        prior = np.zeros_like(information)
        prior[:bins, :bins] = _bends(bins)
        prior[bins, bins] = 1 / DISCRIMINATION_SD**2
        prior[bins + 1 :, bins + 1 :] = np.diag(np.tile(1 / sds**2, cells))
        right = target.copy()
        right[bins] += DISCRIMINATION / DISCRIMINATION_SD**2
        covariance = np.linalg.inv(information + prior)
        mean = covariance @ right
        squares = (mean**2 + np.diag(covariance))[bins + 1 :].reshape(-1, 2).sum(axis=0)
        fresh = np.sqrt((squares + PRIOR_CELLS * np.array([LEVEL_SD, TILT_SD]) ** 2) / (cells + PRIOR_CELLS))
        settled = np.max(np.abs(fresh - sds)) < 1e-3
        sds = fresh
        if settled or cells < 2:
            break
    riders = _riders(survey, [(each.riders, each.riders_variance) for each in rounds])
    return Posterior(mean, (covariance + covariance.T) / 2, riders, bins)
