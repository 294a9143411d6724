"""A prior under which levels of places near one another are alike, as a part of the likelihood.

Its precision matrix touches pairs of neighbours, as the information touches pairs of places with a common rider. So it
is added to the likelihood, its gradient and its information, and everything that solves with these stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from isuit.domain import FloatArray, IntArray

from ..model.arrow import Arrow
from ..model.nearness import Precision
from ..model.population import Population


@dataclass(frozen=True)
class LevelPrior:
    """The precision of all places' levels, and where its pairs stand among those of places with a common rider.

    Pairs of neighbours that share no rider come after the others, whose numbers riders know.
    """

    precision: Precision
    number: IntArray  # of each pair of the precision
    first: IntArray  # of all pairs
    second: IntArray

    @classmethod
    def of(cls, precision: Precision, population: Population) -> LevelPrior:
        """Beside the pairs of places that share a rider, which are in order."""
        places, first, second = precision.diagonal.size, population.first, population.second
        known, code = first * places + second, precision.first * places + precision.second
        at = np.searchsorted(known, code)
        found = np.append(known, places * places)[at] == code  # which is no pair's
        number = np.where(found, at, known.size + np.cumsum(~found) - 1)
        return cls(
            precision,
            number,
            np.concatenate([first, precision.first[~found]]),
            np.concatenate([second, precision.second[~found]]),
        )

    def times(self, level: FloatArray) -> FloatArray:
        """The precision matrix times levels, one for each place."""
        p = self.precision
        count = level.size
        return np.asarray(
            p.diagonal * level
            + np.bincount(p.first, weights=p.value * level[p.second], minlength=count)
            + np.bincount(p.second, weights=p.value * level[p.first], minlength=count)
        )

    def added_to(self, information: Arrow) -> Arrow:
        """The information with this precision, which adds to levels alone: each place's first own parameter."""
        own, width = information.own.copy(), information.own.shape[1]
        own[:, 0, 0] += self.precision.diagonal
        pairs = np.zeros((self.first.size, width, width))
        pairs[: len(information.pairs)] = information.pairs
        pairs[self.number, 0, 0] += self.precision.value
        return replace(information, own=own, pairs=pairs, first=self.first, second=self.second)

    def taken(self, blocks: FloatArray, pairs: FloatArray) -> FloatArray:
        """Of each level, what the prior takes of its degree of freedom, from the covariance's blocks and pairs."""
        p = self.precision
        across, count = p.value * pairs[self.number, 0, 0], len(blocks)
        return np.asarray(
            p.diagonal * blocks[:, 0, 0]
            + np.bincount(p.first, weights=across, minlength=count)
            + np.bincount(p.second, weights=across, minlength=count)
        )
