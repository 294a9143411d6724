"""Loops over riders whose skill moves: each rider's occasions are a chain, summed on a grid of the rider's own.

Beside its prior mean, skill u is N(0, 1) at the rider's first occasion and a random walk from there: over a gap it
changes by N(0, variance). On a lattice of step h that change is the convolution with

    K_v(n) = 1/pi  integral_0^pi  S(k) cos(n k) dk,      S(k) = exp(-v k^2 / 2),      v = variance / h^2,

which has the variance v exactly and is as good for a gap of an hour, when the walk's sd is far below the step, as for
one of years. From v = 1.5 on it is the sampled normal density. Below, it is had from a few taps: the combination of
cos(n k), n = 0 to `TAPS`, that is nearest to S where a bell of the posterior's sd has its frequencies. The forward and
backward sums give the likelihood and every occasion's posterior; the derivative by the variance is a third sum. All
three are those of the chain on the grid, so that gradient and likelihood agree to rounding.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from isuit.compiled import compiled
from isuit.domain import FloatArray

from .kernels import level_for, step_at

STEP = 0.85  # of the least posterior sd among a rider's occasions
STRIP = 0.75  # over a: the step that the logistic curve needs
EDGE = 1e-8  # largest posterior weight at the end of a window; above, the window is too short
NOTHING = 1e-11  # points with less weight at every occasion are left out of the next window
MOST_POINTS = 256
_MOST_LOOKS = 16
_FINER = 5  # levels that a look may go finer by: the sd that a coarse grid shows is a guess
_PENDING = 600.0  # logarithm up to which factors are multiplied before a logarithm is taken
_FLAT = 1.5  # v from which K_v is the normal density
_V_STEP = 0.02  # between tabulated v
TAPS = 8
_LARGEST = 1e200  # of products of odds that are multiplied as they are
_MOST_FAILURES = 8  # at an occasion, for that
_TAIL = 6.3  # sds of the normal density that are summed


@cache
def kernel_table() -> FloatArray:
    """K_v(n) and its first two derivatives by v: v x derivative x n, for v below `_FLAT`."""
    k = (np.arange(2000) + 0.5) * np.pi / 2000
    v = np.arange(round(_FLAT / _V_STEP) + 1) * _V_STEP
    functions = np.cos(np.outer(k, np.arange(TAPS + 1))) * np.where(np.arange(TAPS + 1) > 0, 2.0, 1.0)
    # Frequencies that the grid resolves count; the others a little, so that no step makes them grow.
    weight = np.exp(-2.3 * k * k) + 1e-8
    wanted = np.exp(-0.5 * np.outer(k * k, v))
    by_derivative = [
        np.linalg.lstsq(weight[:, None] * functions, weight[:, None] * wanted * ((-0.5 * k * k) ** m)[:, None])[0].T
        for m in range(3)
    ]
    return np.ascontiguousarray(np.stack(by_derivative, axis=1))


@compiled
def _kernel(v, table, points, value, slope):
    """K_v and its derivative by v for shifts from 0 on; how many there are."""
    if v >= _FLAT:
        top = 1.0 / math.sqrt(2.0 * math.pi * v)
        count = min(points, int(_TAIL * math.sqrt(v)) + 2)
        for n in range(count):
            square = n * n / v
            value[n] = top * math.exp(-0.5 * square)
            slope[n] = value[n] * (square - 1.0) / (2.0 * v)
        return count
    i = min(int(v / _V_STEP), table.shape[0] - 2)
    r = v / _V_STEP - i
    rest = 1.0 - r
    one, two = (1.0 + 2.0 * r) * rest * rest, r * rest * rest * _V_STEP
    three, four = r * r * (3.0 - 2.0 * r), -r * r * rest * _V_STEP
    low, high = table[i], table[i + 1]
    count = min(points, low.shape[1])
    for n in range(count):
        value[n] = one * low[0, n] + two * low[1, n] + three * high[0, n] + four * high[1, n]
        slope[n] = one * low[1, n] + two * low[2, n] + three * high[1, n] + four * high[2, n]
    return count


@compiled
def _convolved(padded, pad, points, taps, count, into):
    """The symmetric convolution of what stands from `pad` on, between zeros; two taps at a time."""
    first, n = taps[0], 1
    for q in range(points):
        into[q] = first * padded[pad + q]
    while n + 1 < count:
        one, two = taps[n], taps[n + 1]
        below, above = padded[pad - n : pad - n + points], padded[pad + n : pad + n + points]
        lower, upper = padded[pad - n - 1 : pad - n - 1 + points], padded[pad + n + 1 : pad + n + 1 + points]
        for q in range(points):
            into[q] += one * (below[q] + above[q]) + two * (lower[q] + upper[q])
        n += 2
    if n < count:
        one = taps[n]
        below, above = padded[pad - n : pad - n + points], padded[pad + n : pad + n + points]
        for q in range(points):
            into[q] += one * (below[q] + above[q])


@compiled
def _is_small(o, chain, at, shift, steepest):
    """Whether an occasion's likelihood is a product of a few numbers that no double is too small or too large for."""
    failures = chain.outcomes[o] - chain.successes[o]
    bound = 1.0
    if failures > 0.0:
        bound = steepest**failures
    for e in range(chain.entries[o], chain.entries[o + 1]):
        n, most = chain.trials[e], 1.0 + at.odds[chain.item[e]] * shift * steepest
        bound *= most if n == 1.0 else most**n
        if not bound < _LARGEST:
            return False
    return failures <= _MOST_FAILURES and bound < _LARGEST


@compiled
def _likelihood(o, chain, at, a, shift, scale, u, into, product):
    """Of an occasion's outcomes at each point, over its largest value where products would leave the doubles' range:
    the logarithm of what it was divided by. `scale` is exp(-a u), `shift` exp(-a mu)."""
    points = scale.size
    if _is_small(o, chain, at, shift, max(scale[0], scale[points - 1])):
        failures = int(chain.outcomes[o] - chain.successes[o])
        for q in range(points):
            product[q] = 1.0
        for e in range(chain.entries[o], chain.entries[o + 1]):
            factor, n = at.odds[chain.item[e]] * shift, chain.trials[e]
            if n == 1.0:
                for q in range(points):
                    product[q] *= 1.0 + factor * scale[q]
            else:
                for q in range(points):
                    product[q] *= (1.0 + factor * scale[q]) ** n
        for q in range(points):
            into[q] = 1.0 / product[q]
        for _ in range(failures):
            for q in range(points):
                into[q] *= scale[q]
        return -a * chain.mean[o] * failures
    _log_likelihood(o, chain, at, a, shift, scale, u, into, product)
    top = into.max()
    for q in range(points):
        into[q] = math.exp(into[q] - top)
    return top


@compiled
def _log_likelihood(o, chain, at, a, shift, scale, u, into, product):
    """Of an occasion's outcomes at each point, up to a sum without skill."""
    points = scale.size
    missed = chain.successes[o] - chain.outcomes[o]
    for q in range(points):
        into[q] = a * (chain.mean[o] + u[q]) * missed
        product[q] = 1.0
    pending, steepest = 0.0, max(scale[0], scale[points - 1])
    for e in range(chain.entries[o], chain.entries[o + 1]):
        factor, n = at.odds[chain.item[e]] * shift, chain.trials[e]
        grows = n * math.log1p(factor * steepest)
        if pending + grows > _PENDING:
            for q in range(points):
                into[q] -= math.log(product[q])
                product[q] = 1.0
            pending = 0.0
        if grows > _PENDING:
            for q in range(points):
                into[q] -= n * math.log1p(factor * scale[q])
            continue
        pending += grows
        if n == 1.0:
            for q in range(points):
                product[q] *= 1.0 + factor * scale[q]
        else:
            for q in range(points):
                product[q] *= (1.0 + factor * scale[q]) ** n
    if pending > 0.0:
        for q in range(points):
            into[q] -= math.log(product[q])


@compiled
def _chain(first, last, chain, at, a, rate, start, points, step, table, smooth, by_variance):
    """Forward and backward sums over a rider's occasions: the log-likelihood.

    `smooth` gets each occasion's posterior weights, `by_variance` the derivative by the variance of the gap before it.
    """
    count = last - first
    u, scale = np.empty(points), np.empty(points)
    for q in range(points):
        u[q] = step * (start + q)
        scale[q] = math.exp(-a * u[q])
    value, slope = np.empty(max(points, TAPS + 1)), np.empty(max(points, TAPS + 1))
    padded = np.zeros(3 * points)
    likelihood = np.empty((count, points))
    norm, carried, turned, product = np.empty(count), np.empty(points), np.empty(points), np.empty(points)
    total = 0.0
    for c in range(count):
        o = first + c
        here, forward = likelihood[c], smooth[c]
        total += _likelihood(o, chain, at, a, math.exp(-a * chain.mean[o]), scale, u, here, product)
        if c == 0:
            for q in range(points):
                forward[q] = here[q] * math.exp(-0.5 * u[q] * u[q])
        else:
            taps = _kernel(rate * chain.gap[o] / (step * step), table, points, value, slope)
            padded[points : 2 * points] = smooth[c - 1]
            _convolved(padded, points, points, value, taps, forward)
            for q in range(points):
                forward[q] = max(forward[q], 0.0) * here[q]
        size = forward.sum()
        norm[c] = size
        for q in range(points):
            forward[q] /= size
        total += math.log(size)
    total += math.log(step) - 0.5 * math.log(2.0 * math.pi)
    for q in range(points):
        carried[q] = 1.0
    by_variance[0] = 0.0
    for c in range(count - 1, 0, -1):
        # `carried` is what later occasions say of this one, over what was expected of them.
        taps = _kernel(rate * chain.gap[first + c] / (step * step), table, points, value, slope)
        here, forward, before = likelihood[c], smooth[c], smooth[c - 1]
        for q in range(points):
            forward[q] *= carried[q]
            padded[points + q] = here[q] * carried[q] / norm[c]
        _convolved(padded, points, points, value, taps, carried)
        _convolved(padded, points, points, slope, taps, turned)
        by = 0.0
        for q in range(points):
            by += before[q] * turned[q]
        by_variance[c] = by / (step * step)
    for q in range(points):
        smooth[0, q] *= carried[q]
    return total


@compiled
def _look(first, last, chain, at, a, rate, window, table, by_variance):
    """The rider's posterior weights on a window that is wide and fine enough; the log-likelihood, and whether it is."""
    level, start, points = window[0], window[1], window[2]
    if points == 0:
        level = level_for(min(0.5, STRIP / a))
        half = int(np.ceil(6.5 / step_at(level)))
        start, points = -half, 2 * half + 1
    total, smooth, good = 0.0, np.empty((1, 1)), False
    for look in range(_MOST_LOOKS):
        points = min(points, MOST_POINTS)
        step = step_at(level)
        smooth = np.empty((last - first, points))
        total = _chain(first, last, chain, at, a, rate, start, points, step, table, smooth, by_variance)
        low, high, left, right, narrow = points - 1, 0, 0.0, 0.0, 1e300
        for c in range(last - first):
            one, two, all_ = 0.0, 0.0, 0.0
            for q in range(points):
                w = smooth[c, q]
                all_ += w
                one += w * q
                two += w * q * q
                if w > NOTHING:
                    low, high = min(low, q), max(high, q)
            mean = one / all_
            narrow = min(narrow, two / all_ - mean * mean)
            left, right = max(left, smooth[c, 0] / all_), max(right, smooth[c, points - 1] / all_)
        sd = step * math.sqrt(max(narrow, 1e-6))
        limit = min(STEP * sd, STRIP / a)
        wanted = level_for(limit)
        good = left < EDGE and right < EDGE and level >= wanted
        if good or (points == MOST_POINTS and look > 4):
            break
        lower, upper = step * (start + low - 1), step * (start + high + 1)
        width = step * points
        if left >= EDGE:
            lower = min(lower, step * start) - 0.5 * width
        if right >= EDGE:
            upper = max(upper, step * (start + points)) + 0.5 * width
        level = min(max(level, wanted), level + _FINER) if level < wanted else level
        step = step_at(level)
        start = int(np.floor(lower / step))
        points = int(np.ceil(upper / step)) - start + 1
        while points > MOST_POINTS:
            level -= 1
            step = step_at(level)
            start = int(np.floor(lower / step))
            points = int(np.ceil(upper / step)) - start + 1
    window[0], window[1], window[2] = level, start, points
    if good and high - low + 3 < 0.75 * points:
        window[1], window[2] = start + low - 1, high - low + 3
    return total, smooth, step_at(level) * start, step_at(level), good


@compiled
def chains(begin, end, chain, at, a, rate, windows, table, mean, sd, pull, moved, by_rider, rows, scores, expected):
    """Over the riders of a lane: the log-likelihood, the score of the discrimination, and how many grids fell short.

    Written are: of occasions the posterior mean and sd of u, and the score of their prior mean; of riders the score of
    the walk's rate and the log-likelihood; and of items expected successes. `scores`, where it has rows, gets each
    rider's score of the discrimination and the raw functions.
    """
    total, score, short = 0.0, 0.0, 0
    functions = rows.function.shape[1]
    for r in range(begin, end):
        first, last = chain.riders[r], chain.riders[r + 1]
        moved[r], by_rider[r] = 0.0, 0.0
        if first == last:
            continue
        by_variance = np.empty(last - first)
        found, smooth, lowest, step, good = _look(first, last, chain, at, a, rate, windows[r], table, by_variance)
        total += found
        by_rider[r] = found
        short += not good
        points = smooth.shape[1]
        scale, residual = np.empty(points), np.empty(points)
        for q in range(points):
            scale[q] = math.exp(-a * (lowest + step * q))
        own = 0.0
        for c in range(last - first):
            o, weight = first + c, smooth[c]
            weight /= weight.sum()
            one, two = 0.0, 0.0
            for q in range(points):
                u = lowest + step * q
                one += weight[q] * u
                residual[q] = chain.successes[o]
            for q in range(points):
                gap = lowest + step * q - one
                two += weight[q] * gap * gap
            mean[o], sd[o] = one, math.sqrt(max(two, 0.0))
            shift = math.exp(-a * chain.mean[o])
            for e in range(chain.entries[o], chain.entries[o + 1]):
                i, n = chain.item[e], chain.trials[e]
                factor, success = at.odds[i] * shift, 0.0
                for q in range(points):
                    p = n / (1.0 + factor * scale[q])
                    residual[q] -= p
                    success += weight[q] * p
                expected[i] += success
                surprise = chain.won[e] - success
                own -= surprise * at.by_a[i]
                if scores.shape[0]:
                    for d in range(functions):
                        scores[r, 1 + rows.function[i, d]] -= surprise * rows.value[i, d]
            along, level = 0.0, 0.0
            for q in range(points):
                level += weight[q] * residual[q]
                along += weight[q] * residual[q] * (lowest + step * q)
            pull[o] = a * level
            own += along + chain.mean[o] * level
            moved[r] += by_variance[c] * chain.gap[o]
        score += own
        if scores.shape[0]:
            scores[r, 0] = own
    return total, score, short


@compiled
def predictions(begin, end, chain, at, a, rate, windows, table, asked, f, found):
    """Posterior-predictive probabilities at each f asked for; of occasion o those from asked[o] to asked[o + 1]."""
    for r in range(begin, end):
        first, last = chain.riders[r], chain.riders[r + 1]
        if first == last:
            continue
        by_variance = np.empty(last - first)
        _, smooth, lowest, step, _ = _look(first, last, chain, at, a, rate, windows[r], table, by_variance)
        for c in range(last - first):
            o, size = first + c, smooth[c].sum()
            for k in range(asked[o], asked[o + 1]):
                expected = 0.0
                for q in range(smooth.shape[1]):
                    theta = chain.mean[o] + lowest + step * q
                    expected += smooth[c, q] / (1.0 + math.exp(min(f[k] - a * theta, 700.0)))
                found[k] = expected / size
