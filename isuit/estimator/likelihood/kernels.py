"""Loops over riders: each rider's skill is integrated on a grid of its own.

A rider's grid is a window of a lattice: at level j the points are whole multiples of 2^(-j/2), and a window is (level,
first multiple, number of points). The trapezoid rule on it is exact to far more digits than anybody needs as soon as
the step is below the posterior's sd and below the distance at which the logistic curve bends (`Rule`). Windows of one
lattice let riders who share an item share its probabilities: these can be tabulated once per pass (`Table`), and are
computed on the spot where hardly two riders share an item.

An item's discrimination is a, or a times what `curve.relative` has for it, which is empty where all have the same.

The prior of skill is a density about the rider's prior mean: normal, or what `prior` says of its departure from that
(`model/density.py`).

What comes in is sparse: a rider's entries are (item, trials); an item's row of the design is a few raw functions
(index, value); a rider's visits are runs of entries at one place. `model/arrow.py` says what becomes of the sums.
"""

from __future__ import annotations

import math

import numpy as np

from isuit.compiled import compiled

STEP = 0.85  # of the posterior's sd, or of the normal that bends as sharply: the rule's error is then below 1e-10
STRIP = 0.75  # over a: the step that the logistic curve needs, for an error of about 1e-11
EDGE = 1e-8  # largest posterior weight at the end of a window; above, the window is too short
NOTHING = 1e-10  # points with less weight are left out of the next window
REACH = 6.2  # sds on either side that a new window covers
MOST_POINTS = 800
TOGETHER = 8  # points that a loop takes at once: rows are filled up to a multiple of it
_MOST_LOOKS = 14
_TAIL = 16.0  # of the log posterior below its top: further out a bend moves nothing
_LARGEST = 300.0  # exponent up to which odds are products of two exponentials
_PENDING = 600.0  # logarithm up to which factors are multiplied before a logarithm is taken


@compiled
def level_for(step):
    """The coarsest level whose step is not above this one."""
    return int(np.ceil(-2.0 * np.log2(step) - 1e-9))


@compiled
def step_at(level):
    return 2.0 ** (-0.5 * level)


@compiled
def _looked_up(table, lower, step, u):
    """A function of u from its table, by cubic pieces; straight beyond the ends."""
    x, last = (u - lower) / step, table.shape[0] - 1
    if x <= 0.0:
        return table[0, 0] + x * table[0, 1]
    if x >= last:
        return table[last, 0] + (x - last) * table[last, 1]
    i = int(x)
    r = x - i
    rest = 1.0 - r
    return (
        (1.0 + 2.0 * r) * rest * rest * table[i, 0]
        + r * rest * rest * table[i, 1]
        + r * r * (3.0 - 2.0 * r) * table[i + 1, 0]
        - r * r * rest * table[i + 1, 1]
    )


@compiled
def _all_looked_up(table, lower, step, u, weight, into):
    """The same of several functions at once, times a weight, added to `into`."""
    x, last = (u - lower) / step, table.shape[0] - 1
    if x <= 0.0 or x >= last:
        i = 0 if x <= 0.0 else last
        for k in range(into.size):
            into[k] += weight * (table[i, 0, k] + (x - i) * table[i, 1, k])
        return
    i = int(x)
    r = x - i
    rest = 1.0 - r
    one, two = weight * (1.0 + 2.0 * r) * rest * rest, weight * r * rest * rest
    three, four = weight * r * r * (3.0 - 2.0 * r), -weight * r * r * rest
    for k in range(into.size):
        into[k] += one * table[i, 0, k] + two * table[i, 1, k] + three * table[i + 1, 0, k] + four * table[i + 1, 1, k]


@compiled
def _pull(prior, u):
    """How the log prior at u changes with the prior mean: u, were it normal."""
    return u - _looked_up(prior.slope, prior.lower, prior.step, u) if prior.slope.shape[0] else u


@compiled
def _filled(points):
    """So many points, and those that fill a row up."""
    return (points + TOGETHER - 1) // TOGETHER * TOGETHER


@compiled
def _add(row, here, factor, values, there, points):
    """Add values, from `there` on, times a factor to a row, from `here` on.

    Whole numbers without a sign cannot count from the end, and a slice is one more thing to hold and to let go: so this
    is a loop of vectors, and twice as fast.
    """
    one, other = np.uint64(here), np.uint64(there)
    for q in range(np.uint64(points)):
        row[one + q] += factor * values[other + q]


@compiled
def _tabulated(level, start, points, table):
    """Whether the table has these points: how many lie before them at their level, or -1."""
    here = level - table.first_level
    if here < 0 or here >= table.widths.size:
        return -1
    offset = start - table.starts[here]
    return offset if offset >= 0 and offset + points <= table.widths[here] else -1


@compiled
def _probabilities(first, last, counts, curve, a, level, start, points, table, row, log_failure, success):
    """Sum of trials times log(1 + exp(f - a theta)) at each point, and each entry's probability of success.

    Returns where the probabilities stand: the array, and whether it is the table. Entry e has them from
    `row_of(...)` on.
    """
    step, wide = step_at(level), _filled(points)
    item, trials, f, odds = counts.item, counts.trials, curve.f, curve.odds
    log_failure[:wide] = 0.0
    offset = _tabulated(level, start, points, table)
    if offset >= 0:
        here, values = level - table.first_level, table.log_failure
        base, width = table.bases[here] + offset, table.widths[here]
        for e in range(first, last):
            at = base + item[e] * width
            row[e - first] = at
            _add(log_failure, 0, trials[e], values, at, wide)
        return table.success
    if curve.relative.size:
        _probabilities_apart(first, last, counts, curve, a, level, start, points, row, log_failure, success)
        return success
    middle = start + points // 2
    centre = a * step * middle
    scale, product = np.empty(wide), np.ones(wide)
    for q in range(wide):
        scale[q] = np.exp(-a * step * (start + min(q, points - 1) - middle))
    span = a * step * max(middle - start, start + points - 1 - middle)
    factor, pending = np.exp(-centre), 0.0
    for e in range(first, last):
        i, n, at = item[e], trials[e], (e - first) * wide
        row[e - first] = at
        u = f[i] - centre
        if abs(u) + span > _LARGEST or abs(f[i]) > _LARGEST or abs(centre) > _LARGEST:
            for q in range(wide):
                x = u - a * step * (start + min(q, points - 1) - middle)
                small = np.exp(-abs(x))
                success[at + q] = (small if x > 0 else 1.0) / (1.0 + small)
                log_failure[q] += n * (max(x, 0.0) + np.log1p(small))
            continue
        o = odds[i] * factor
        into = success[at : at + wide]
        if n == 1.0:
            bound = max(u + span, 0.0) + 1.0
            if pending + bound > _PENDING:
                for q in range(wide):
                    log_failure[q] += np.log(product[q])
                    product[q] = 1.0
                pending = 0.0
            pending += bound
            for q in range(wide):
                z = 1.0 + o * scale[q]
                into[q] = 1.0 / z
                product[q] *= z
        else:
            for q in range(wide):
                z = 1.0 + o * scale[q]
                into[q] = 1.0 / z
                log_failure[q] += n * np.log(z)
    for q in range(wide):
        log_failure[q] += np.log(product[q])
    return success


@compiled
def _probabilities_apart(first, last, counts, curve, a, level, start, points, row, log_failure, success):
    """The same where each item has a discrimination of its own, so that no two share an exponential."""
    step, wide = step_at(level), _filled(points)
    for e in range(first, last):
        i, n, at = counts.item[e], counts.trials[e], (e - first) * wide
        row[e - first] = at
        own = a * curve.relative[i] * step
        for q in range(wide):
            x = curve.f[i] - own * (start + min(q, points - 1))
            small = np.exp(-abs(x))
            success[at + q] = (small if x > 0 else 1.0) / (1.0 + small)
            log_failure[q] += n * (max(x, 0.0) + np.log1p(small))


@compiled
def _failures(rider, counts, curve):
    """A rider's failures, each as often as its item discriminates more than a does."""
    if not curve.relative.size:
        return counts.rider_trials[rider] - counts.rider_successes[rider]
    total = 0.0
    for e in range(counts.entries[rider], counts.entries[rider + 1]):
        total += (counts.trials[e] - counts.successes[e]) * curve.relative[counts.item[e]]
    return total


@compiled
def _inner(weight, points, least):
    """The first and the last point with at least this weight."""
    begin, end = 0, points - 1
    while begin < end and weight[begin] < least:
        begin += 1
    while end > begin and weight[end] < least:
        end -= 1
    return begin, end


@compiled
def _settle(rider, counts, curve, a, prior_mean, prior, window, table, work):
    """Integrate one rider's skill: widen and refine the window until it is enough.

    Returns the level, start and number of points, the log of the integral, the mean and the sd, the array with the
    probabilities of success, and whether the window was enough; `work.weight` has the posterior's weights, zeros where
    its row is filled up, and `window[rider]` becomes the window for the next pass nearby.
    """
    first, last = counts.entries[rider], counts.entries[rider + 1]
    failures, strip = _failures(rider, counts, curve), STRIP / (a * curve.steepest)
    mu, bent = prior_mean[rider], prior.log.shape[0] > 0
    level, start, points = window[rider, 0], window[rider, 1], window[rider, 2]
    if points == 0:
        level = level_for(min(STEP, strip))
        start = int(np.floor((mu - REACH) / step_at(level)))
        points = int(np.ceil((mu + REACH) / step_at(level))) - start + 1
    weight = work.weight
    exact = False
    for look in range(_MOST_LOOKS):
        points = max(3, min(points, MOST_POINTS))
        step = step_at(level)
        success = work.success
        if (last - first) * _filled(points) > success.size:
            success = np.empty((last - first) * _filled(points))
        where = _probabilities(first, last, counts, curve, a, level, start, points, table, work.row, weight, success)
        top = -np.inf
        for q in range(points):
            t = step * (start + q)
            x = -weight[q] - failures * a * t - 0.5 * (t - mu) ** 2
            if bent:
                x += _looked_up(prior.log, prior.lower, prior.step, t - mu)
            weight[q] = x
            top = max(top, x)
        # The sharpest bend of the log posterior: of a skewed one the sd alone says too little.
        bend = 0.0
        for q in range(1, points - 1):
            if weight[q] > top - _TAIL:
                bend = max(bend, abs(2.0 * weight[q] - weight[q - 1] - weight[q + 1]))
        total, mean, square = 0.0, 0.0, 0.0
        for q in range(points):
            w = np.exp(weight[q] - top)
            weight[q] = w
            total += w
            mean += w * q
        if not total < np.inf:  # not a number: the parameters are out of all bounds
            window[rider, 2] = 0
            return level, start, 0, -np.inf, mu, 1.0, where, False
        mean /= total
        for q in range(points):
            square += weight[q] * (q - mean) ** 2
        sd = step * np.sqrt(max(square / total, 1e-300))
        mean = step * (start + mean)
        left, right = weight[0] / total, weight[points - 1] / total
        sharp = min(sd, step / np.sqrt(max(bend, 1e-300)))
        needed = min(STEP * sharp, strip)
        coarse = step > 1.1 * needed and points < MOST_POINTS
        if left < EDGE and right < EDGE and not coarse:
            exact = True
            break
        if look == _MOST_LOOKS - 1:
            break
        # A posterior that fell between two points seems to have no width: go on in steps.
        wide = max(sd, 0.3 * step)
        further = 0.4 * step * points
        begin, end = _inner(weight, points, NOTHING * total)
        # An end that was far enough comes in to where there is any weight; what is left out there once stays in.
        lower = step * (start + begin - 1)
        if left >= EDGE:
            lower = min(mean - REACH * wide, step * start - further)
        upper = step * (start + end + 1)
        if right >= EDGE:
            upper = max(mean + REACH * wide, step * (start + points - 1) + further)
        level = level_for(min(STEP * max(sharp, 0.3 * step), strip))
        start = int(np.floor(lower / step_at(level)))
        points = int(np.ceil(upper / step_at(level))) - start + 1
    for q in range(points):
        weight[q] /= total
    weight[points : _filled(points)] = 0.0
    begin, end = _inner(weight, points, NOTHING)
    following = level_for(1.05 * needed)
    finer = step_at(following)
    window[rider, 0] = following
    window[rider, 1] = int(np.floor((step * (start + begin - 1)) / finer + 1e-9))
    window[rider, 2] = int(np.ceil((step * (start + end + 1)) / finer - 1e-9)) - window[rider, 1] + 1
    value = top + np.log(total) + np.log(step / np.sqrt(2.0 * np.pi))
    return level, start, points, value, mean, sd, where, exact


@compiled
def gradient(
    begin, end, counts, curve, a, prior_mean, prior, window, table, work, mean, sd, pull, expected, tilts, looked_up
):
    """Log-likelihood, score of the discrimination, and windows that were not enough, of riders begin to end.

    `expected` gains the expected successes of each item, `looked_up` how often each entry of the density's tables is
    read; `pull` is each rider's score of the prior mean. `tilts`, where discriminations differ, gains the score of each
    item's, and the score that is returned is then of no use.
    """
    value, score, short = 0.0, 0.0, 0
    # To take these in the loop would cost as much as a row.
    item, trials, gathered = counts.item, counts.trials, work.gathered
    for rider in range(begin, end):
        level, start, points, one, m, s, where, exact = _settle(
            rider, counts, curve, a, prior_mean, prior, window, table, work
        )
        weight, row = work.weight, work.row
        mean[rider], sd[rider] = m, s
        value += one
        short += not exact
        step, first = step_at(level), counts.entries[rider]
        with_skill = 0.0
        gathers, wide = gathered.size > 0 and _tabulated(level, start, points, table) >= 0, _filled(points)
        for e in range(first, counts.entries[rider + 1]):
            at, n = row[e - first], trials[e]
            if gathers:
                _add(gathered, at, n, weight, 0, wide)
                if tilts.size:
                    tilts[item[e]] += counts.successes[e] * m
                continue
            p, by_point = 0.0, 0.0
            for q in range(points):
                x = weight[q] * where[at + q]
                p += x
                by_point += x * q
            expected[item[e]] += n * p
            with_skill += n * (by_point + start * p)
            if tilts.size:
                tilts[item[e]] += counts.successes[e] * m - n * step * (by_point + start * p)
        score += counts.rider_successes[rider] * m - step * with_skill
        pull[rider] = m - prior_mean[rider]
        if looked_up.size:
            pull[rider] = _expected_prior(rider, level, start, points, prior_mean, prior, weight, looked_up)
    return value, score - _told_by_gathered(gathered, table, expected, tilts, np.zeros((0, 3))), short


@compiled
def _told_by_gathered(gathered, table, expected, tilts, moments):
    """What riders whose weights are in `gathered`, times trials, add to the sums over items.

    Returns the sum of trials times the expectation of success times skill.
    """
    total = 0.0
    if gathered.size:
        for level in range(table.widths.size):
            step, width = step_at(table.first_level + level), table.widths[level]
            for i in range(expected.size):
                p, by_skill, v0, v1, v2 = 0.0, 0.0, 0.0, 0.0, 0.0
                for q in range(width):
                    at = table.bases[level] + i * width + q
                    x, skill = gathered[at] * table.success[at], step * (table.starts[level] + q)
                    y = x * (1.0 - table.success[at])
                    p += x
                    by_skill += x * skill
                    v0 += y
                    v1 += y * skill
                    v2 += y * skill * skill
                expected[i] += p
                total += by_skill
                if tilts.size:
                    tilts[i] -= by_skill
                if moments.shape[0]:
                    moments[i, 0] += v0
                    moments[i, 1] += v1
                    moments[i, 2] += v2
    return total


@compiled
def _expected_prior(rider, level, start, points, prior_mean, prior, weight, looked_up):
    """The expected score of the prior mean; `looked_up` gains how often each entry of a table is read."""
    total, step = 0.0, step_at(level)
    for q in range(points):
        u = step * (start + q) - prior_mean[rider]
        total += weight[q] * _pull(prior, u)
        _read(prior, u, weight[q], looked_up)
    return total


@compiled
def _read(prior, u, weight, looked_up):
    """Add to `looked_up` what looking up any table at u multiplies its entries by, times a weight: sums over riders of
    all functions are then one product with their table, the same as by `_all_looked_up` but for rounding."""
    x, last = (u - prior.lower) / prior.step, looked_up.shape[0] - 1
    if x <= 0.0 or x >= last:
        i = 0 if x <= 0.0 else last
        looked_up[i, 0] += weight
        looked_up[i, 1] += weight * (x - i)
        return
    i = int(x)
    r = x - i
    rest = 1.0 - r
    looked_up[i, 0] += weight * (1.0 + 2.0 * r) * rest * rest
    looked_up[i, 1] += weight * r * rest * rest
    looked_up[i + 1, 0] += weight * r * r * (3.0 - 2.0 * r)
    looked_up[i + 1, 1] -= weight * r * r * rest


@compiled
def _pool(prior, u, weight, pooled):
    """Share out a weight at u between the four points of the tables around it, so that cubics are added up exactly."""
    x, last = (u - prior.lower) / prior.step, pooled.size - 1
    x = min(max(x, 0.0), float(last))
    i = min(max(int(x) - 1, 0), last - 3)
    r = x - i
    pooled[i] -= weight * (r - 1.0) * (r - 2.0) * (r - 3.0) / 6.0
    pooled[i + 1] += weight * r * (r - 2.0) * (r - 3.0) / 2.0
    pooled[i + 2] -= weight * r * (r - 1.0) * (r - 3.0) / 2.0
    pooled[i + 3] += weight * r * (r - 1.0) * (r - 2.0) / 6.0


@compiled
def _score_functions(rider, counts, curve, design, places, a, prior_mean, prior, level, start, points, where, work):
    """The complete-data scores as functions of skill: rows of `work.score`, one value for each point.

    Rows are the discrimination, the raw functions, the prior mean, the density's functions, and the own functions of
    each visit; what fills them up means nothing. Where discriminations differ the last raw functions are those of their
    change.
    """
    first, step = counts.entries[rider], step_at(level)
    varied = curve.relative.size > 0
    raw, width = design.own.shape
    one, two = places.visits[rider], places.visits[rider + 1]
    density = prior.functions.shape[2]
    rows = raw + 2 + density + (two - one) * width
    wide = _filled(points)
    flat = work.score if rows * wide <= work.score.size else np.empty(rows * wide)
    score = flat[: rows * wide].reshape(rows, wide)
    score[:] = 0.0
    row, own, item, trials = work.row, np.empty(width), counts.item, counts.trials
    function, value, curves, place = design.function, design.value, design.own, design.place
    for visit in range(one, two):
        base = raw + 2 + density + (visit - one) * width
        for e in range(places.entries[visit], places.entries[visit + 1]):
            i, n, at = item[e], trials[e], row[e - first]
            if varied:
                _score_of_slopes(e, counts, curve, raw, a, where[at : at + wide], score)
            else:
                _add(flat, 0, n, where, at, wide)
            own[:] = 0.0
            for d in range(function.shape[1]):
                k, b = function[i, d], value[i, d]
                if b != 0.0:
                    _add(flat, (1 + k) * wide, n * b, where, at, wide)
                    for w in range(width):
                        own[w] += b * curves[k, w]
            if place[i] >= 0:
                for w in range(width):
                    _add(flat, (base + w) * wide, n * own[w], where, at, wide)
    successes = counts.rider_successes[rider]
    for q in range(points):
        t = step * (start + q)
        if varied:
            score[0, q] *= t
            for k in range(1 + raw - curve.slopes, 1 + raw):
                score[k, q] *= t
        else:
            score[0, q] = t * (successes - score[0, q])
        score[raw + 1, q] = t
        if density:
            u = t - prior_mean[rider]
            score[raw + 1, q] = _pull(prior, u)
            _all_looked_up(prior.functions, prior.lower, prior.step, u, 1.0, score[raw + 2 : raw + 2 + density, q])
    if curve.anchored:
        for e in range(first, counts.entries[rider + 1]):
            x, at = counts.trials[e] * curve.by_a[counts.item[e]], row[e - first]
            for q in range(points):
                score[0, q] += x * where[at + q]
    return score


@compiled
def _score_of_slopes(e, counts, curve, raw, a, chance, score):
    """What an entry adds to the scores of a and of the functions of its change, but for the factor of skill."""
    i, n, k = counts.item[e], counts.trials[e], counts.successes[e]
    first = 1 + raw - curve.slopes
    for q in range(chance.size):
        left = curve.relative[i] * (k - n * chance[q])
        score[0, q] += left
        for d in range(curve.function.shape[1]):
            score[first + curve.function[i, d], q] += a * curve.value[i, d] * left


@compiled
def information(
    begin, end, counts, curve, design, places, a, prior_mean, prior, window, table, work, mean, sd, pull, sums, bends
):
    """The same as `gradient`, and what not knowing skill takes away from the information, into `sums`.

    What is taken away is the posterior variance of the complete-data score (Louis). Sums over raw functions, over
    regressors of the population, over the density's functions, over a place's own functions and its clientele, and over
    pairs of places.
    """
    value, score_a, short = 0.0, 0.0, 0
    raw, width = design.own.shape
    regressors = places.regressors.shape[1]
    size, density = raw + 1, prior.functions.shape[2]
    first_visit, last = size + 1 + density, size + regressors  # rows of the visits, columns of the density
    item, trials, gathered = counts.item, counts.trials, work.gathered
    for rider in range(begin, end):
        level, start, points, one, m, s, where, exact = _settle(
            rider, counts, curve, a, prior_mean, prior, window, table, work
        )
        weight, row = work.weight, work.row
        mean[rider], sd[rider] = m, s
        value += one
        short += not exact
        step, first = step_at(level), counts.entries[rider]
        with_skill = 0.0
        gathers, wide = gathered.size > 0 and _tabulated(level, start, points, table) >= 0, _filled(points)
        for e in range(first, counts.entries[rider + 1]):
            at, n, i = row[e - first], trials[e], item[e]
            if gathers:
                _add(gathered, at, n, weight, 0, wide)
                if sums.tilts.size:
                    sums.tilts[i] += counts.successes[e] * m
                continue
            p, by_point, v0, v1, v2 = 0.0, 0.0, 0.0, 0.0, 0.0
            for q in range(points):
                x = weight[q] * where[at + q]
                y = x * (1.0 - where[at + q])
                p += x
                by_point += x * q
                v0 += y
                v1 += y * q
                v2 += y * q * q
            sums.expected[i] += n * p
            with_skill += n * (by_point + start * p)
            if sums.tilts.size:
                sums.tilts[i] += counts.successes[e] * m - n * step * (by_point + start * p)
            sums.moments[i, 0] += n * v0
            sums.moments[i, 1] += n * step * (v1 + start * v0)
            sums.moments[i, 2] += n * step * step * (v2 + 2.0 * start * v1 + start * start * v0)
        score_a += counts.rider_successes[rider] * m - step * with_skill
        pull[rider] = m - prior_mean[rider]
        if density:
            pull[rider] = _expected_prior(rider, level, start, points, prior_mean, prior, weight, sums.looked_up)
            for q in range(points):
                _pool(prior, step * (start + q) - prior_mean[rider], weight[q], sums.pooled)
            if bends.bend.size:
                bends.bend[rider] = 1.0
                for q in range(points):
                    u = step * (start + q) - prior_mean[rider]
                    bends.bend[rider] -= weight[q] * _looked_up(prior.bend, prior.lower, prior.step, u)
                    _all_looked_up(prior.slopes, prior.lower, prior.step, u, weight[q], bends.slopes[rider])

        score = _score_functions(
            rider, counts, curve, design, places, a, prior_mean, prior, level, start, points, where, work
        )
        root = np.sqrt(weight[:wide])
        for k in range(score.shape[0]):
            x = 0.0
            for q in range(points):
                x += weight[q] * score[k, q]
            for q in range(wide):
                score[k, q] = root[q] * (score[k, q] - x)
        taken = np.dot(score, score.T)
        skill = size  # its row
        for k in range(size):
            for j in range(size):
                sums.shared[k, j] += taken[k, j]
        for k in range(regressors):
            x = places.regressors[rider, k]
            for j in range(size):
                sums.shared[size + k, j] += x * taken[skill, j]
            for j in range(regressors):
                sums.shared[size + k, size + j] += x * places.regressors[rider, j] * taken[skill, skill]
        for k in range(density):
            for j in range(size):
                sums.shared[last + k, j] += taken[skill + 1 + k, j]
            for j in range(regressors):
                x = places.regressors[rider, j] * taken[skill + 1 + k, skill]
                sums.shared[last + k, size + j] += x
                sums.shared[size + j, last + k] += x
            for j in range(density):
                sums.shared[last + k, last + j] += taken[skill + 1 + k, skill + 1 + j]
        u0 = places.visits[rider]
        pair = places.pairs_of_rider[rider]
        for u in range(u0, places.visits[rider + 1]):
            place, base, share = places.place[u], first_visit + (u - u0) * width, places.share[u]
            if place < 0:
                continue
            for k in range(width):
                for j in range(size):
                    sums.across[place, k, j] += taken[base + k, j]
                for j in range(regressors):
                    sums.across[place, k, size + j] += places.regressors[rider, j] * taken[base + k, skill]
                for j in range(density):
                    sums.across[place, k, last + j] += taken[base + k, skill + 1 + j]
                for j in range(width):
                    sums.own[place, k, j] += taken[base + k, base + j]
                x = share * taken[base + k, skill]
                sums.own[place, k, width] += x
                sums.own[place, width, k] += x
            for j in range(size):
                sums.across[place, width, j] += share * taken[skill, j]
            for j in range(regressors):
                sums.across[place, width, size + j] += share * places.regressors[rider, j] * taken[skill, skill]
            for j in range(density):
                sums.across[place, width, last + j] += share * taken[skill, skill + 1 + j]
            sums.own[place, width, width] += share * share * taken[skill, skill]
            for v in range(u + 1, places.visits[rider + 1]):
                other, portion = first_visit + (v - u0) * width, places.share[v]
                number = places.pair[pair]
                pair += 1
                for k in range(width):
                    for j in range(width):
                        sums.pairs[number, k, j] += taken[base + k, other + j]
                    sums.pairs[number, k, width] += portion * taken[base + k, skill]
                    sums.pairs[number, width, k] += share * taken[other + k, skill]
                sums.pairs[number, width, width] += share * portion * taken[skill, skill]
    score_a -= _told_by_gathered(gathered, table, sums.expected, sums.tilts, sums.moments)
    return value, score_a, short


@compiled
def skill_variance(
    begin, end, counts, curve, design, places, a, prior_mean, prior, window, table, work, shared, covariance, slope,
    own, pairs, added,
):  # fmt: skip
    """What the parameters' uncertainty adds to the variance of each rider's posterior mean (delta method).

    The mean moves with the parameters by its posterior covariance with their scores. `shared` turns raw functions into
    shared parameters, `covariance` is that of the border, `slope` = (own part)^-1 times its columns of the border, and
    `own` and `pairs` are blocks of the inverse of the own part. Riders' scores know nothing of a border that is longer.
    """
    width, density = design.own.shape[1], prior.functions.shape[2]
    regressors, size = places.regressors.shape[1], design.own.shape[0] + 1
    border, curves = covariance.shape[0], shared.shape[1]
    for rider in range(begin, end):
        level, start, points, _, m, _, where, _ = _settle(
            rider, counts, curve, a, prior_mean, prior, window, table, work
        )
        weight, step = work.weight, step_at(level)
        score = _score_functions(
            rider, counts, curve, design, places, a, prior_mean, prior, level, start, points, where, work
        )
        with_skill = np.zeros(score.shape[0])
        for q in range(points):
            x = weight[q] * (step * (start + q) - m)
            for k in range(score.shape[0]):
                with_skill[k] += x * score[k, q]
        u0, u1 = places.visits[rider], places.visits[rider + 1]
        if own.shape[0] == 0:
            u1 = u0
        by_place = np.empty((u1 - u0, width + 1))
        by_border = np.zeros(border)
        for k in range(size):
            for j in range(curves):
                by_border[j] += with_skill[k] * shared[k, j]
        for k in range(regressors):
            by_border[curves + k] = places.regressors[rider, k] * with_skill[size]
        for k in range(density):
            by_border[curves + regressors + k] = with_skill[size + 1 + k]
        for u in range(u0, u1):
            for k in range(width):
                by_place[u - u0, k] = with_skill[size + 1 + density + (u - u0) * width + k]
            by_place[u - u0, width] = places.share[u] * with_skill[size]
            for k in range(width + 1):
                for j in range(border):
                    by_border[j] -= slope[places.place[u], k, j] * by_place[u - u0, k]
        total = 0.0
        for k in range(border):
            for j in range(border):
                total += by_border[k] * covariance[k, j] * by_border[j]
        pair = places.pairs_of_rider[rider]
        for u in range(u1 - u0):
            for k in range(width + 1):
                for j in range(width + 1):
                    total += by_place[u, k] * own[places.place[u0 + u], k, j] * by_place[u, j]
            for v in range(u + 1, u1 - u0):
                number = places.pair[pair]
                pair += 1
                for k in range(width + 1):
                    for j in range(width + 1):
                        total += 2.0 * by_place[u, k] * pairs[number, k, j] * by_place[v, j]
        added[rider] = total


@compiled
def by_entry(begin, end, counts, curve, a, prior_mean, prior, window, table, work, success, with_skill):
    """Of each entry the expected probability of success, and its expectation times skill."""
    for rider in range(begin, end):
        level, start, points, _, _, _, where, _ = _settle(
            rider, counts, curve, a, prior_mean, prior, window, table, work
        )
        first, step = counts.entries[rider], step_at(level)
        for e in range(first, counts.entries[rider + 1]):
            at = work.row[e - first]
            p, by_point = 0.0, 0.0
            for q in range(points):
                x = work.weight[q] * where[at + q]
                p += x
                by_point += x * q
            success[e], with_skill[e] = p, step * (by_point + start * p)


@compiled
def expectations(begin, end, counts, curve, a, prior_mean, prior, window, table, work, rows, f, relative, expected):
    """Posterior-predictive probability of success of rows that stand in the order of riders, at these f, with these
    discriminations over a."""
    for rider in range(begin, end):
        if rows[rider] == rows[rider + 1]:
            continue
        level, start, points, _, _, _, _, _ = _settle(rider, counts, curve, a, prior_mean, prior, window, table, work)
        step = step_at(level)
        for i in range(rows[rider], rows[rider + 1]):
            total = 0.0
            for q in range(points):
                x = f[i] - a * relative[i] * step * (start + q)
                small = np.exp(-abs(x))
                total += work.weight[q] * (small if x > 0 else 1.0) / (1.0 + small)
            expected[i] = total


@compiled
def polynomial_means(begin, end, counts, curve, a, prior_mean, prior, window, table, work, coefficients, means):
    """Posterior means of polynomials of v = 2 Phi(theta - prior mean) - 1, one column each."""
    for rider in range(begin, end):
        level, start, points, _, _, _, _, _ = _settle(rider, counts, curve, a, prior_mean, prior, window, table, work)
        step = step_at(level)
        for k in range(coefficients.shape[0]):
            means[rider, k] = 0.0
        for q in range(points):
            v = math.erf((step * (start + q) - prior_mean[rider]) / np.sqrt(2.0))
            for k in range(coefficients.shape[0]):
                x = 0.0
                for d in range(coefficients.shape[1] - 1, -1, -1):
                    x = x * v + coefficients[k, d]
                means[rider, k] += work.weight[q] * x


@compiled
def prior_scores(begin, end, counts, curve, a, prior_mean, prior, window, table, work, functions):
    """Each rider's expected functions of the density, a row each."""
    for rider in range(begin, end):
        level, start, points, _, _, _, _, _ = _settle(rider, counts, curve, a, prior_mean, prior, window, table, work)
        functions[rider] = 0.0
        for q in range(points):
            u = step_at(level) * (start + q) - prior_mean[rider]
            _all_looked_up(prior.functions, prior.lower, prior.step, u, work.weight[q], functions[rider])


@compiled
def level_profiles(
    begin, end, counts, curve, a, prior_mean, prior, window, table, work, places, row_of_place, steps, profiles
):
    """How the log-likelihood of each small place's outcomes moves with the place's level, riders' skill integrated.

    `profiles` has a row for each small place (`row_of_place`; -1: not small) and a column for each level, `steps` apart
    and about the level that stands; the failures' part, which is straight, is left out. The rider's posterior holds the
    place's outcomes at the level that stands, so that a ratio of probabilities is all that is needed.
    """
    nodes = profiles.shape[1]
    for rider in range(begin, end):
        any_small = False
        for visit in range(places.visits[rider], places.visits[rider + 1]):
            any_small |= places.place[visit] >= 0 and row_of_place[places.place[visit]] >= 0
        if not any_small:
            continue
        _, _, points, _, _, _, where, _ = _settle(rider, counts, curve, a, prior_mean, prior, window, table, work)
        first = counts.entries[rider]
        ratio = np.empty(points)
        for visit in range(places.visits[rider], places.visits[rider + 1]):
            small = row_of_place[places.place[visit]]
            if small < 0:
                continue
            for j in range(nodes):
                odds = np.exp((j - nodes // 2) * steps[small])
                ratio[:] = 1.0
                for e in range(places.entries[visit], places.entries[visit + 1]):
                    n, at = counts.trials[e], work.row[e - first]
                    for q in range(points):
                        p = where[at + q]
                        change = p + (1.0 - p) * odds
                        ratio[q] /= change if n == 1.0 else change**n
                total = 0.0
                for q in range(points):
                    total += work.weight[q] * ratio[q]
                profiles[small, j] += np.log(total)
