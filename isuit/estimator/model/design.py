"""Designs: how coefficients become f at items, or prior means at riders.

A design has a dense part, the functions that everybody shares, and a local part, sparse, with a few columns for each
site. Keeping them apart keeps many sites cheap: products with the local part touch only the sites that a rider
visited.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from isuit.domain import FloatArray, IntArray

from .smoothing import FREE


@dataclass(frozen=True)
class Design:
    """Rows (items or riders) by coefficients, dense columns first; `groups` says which share a precision."""

    dense: FloatArray
    local: csr_matrix | None
    groups: IntArray

    @property
    def rows(self) -> int:
        return int(self.dense.shape[0])

    @property
    def size(self) -> int:
        return int(self.dense.shape[1]) + (0 if self.local is None else int(self.local.shape[1]))

    def apply(self, coefficients: FloatArray) -> FloatArray:
        """Values at the rows."""
        width = self.dense.shape[1]
        values = self.dense @ coefficients[:width]
        return values if self.local is None else np.asarray(values + self.local @ coefficients[width:])

    def pull_back(self, by_row: FloatArray) -> FloatArray:
        """The transpose applied to one number per row."""
        dense = self.dense.T @ by_row
        return dense if self.local is None else np.concatenate([dense, self.local.T @ by_row])

    def gram(self, weight: FloatArray) -> FloatArray:
        """Transpose times weights times itself."""
        return gram(self.dense, self.local, weight)

    def of_rows(self, chosen: slice | IntArray) -> Design:
        return Design(self.dense[chosen], None if self.local is None else self.local[chosen], self.groups)


def gram(dense: FloatArray, local: csr_matrix | None, weight: FloatArray | None = None) -> FloatArray:
    """Second moments of rows that have a dense and a local part."""
    scaled = dense if weight is None else dense * weight[:, None]
    if local is None:
        return dense.T @ scaled
    width, size = dense.shape[1], dense.shape[1] + local.shape[1]
    total = np.empty((size, size))
    total[:width, :width] = dense.T @ scaled
    total[width:, :width] = local.T @ scaled
    total[:width, width:] = total[width:, :width].T
    weighted = local if weight is None else local.multiply(weight[:, None]).tocsr()
    total[width:, width:] = (local.T @ weighted).toarray()
    return total


def local_columns(values: FloatArray, place: IntArray, places: int) -> csr_matrix:
    """Rows of `values` written into the columns of their place; rows without a place (-1) are empty."""
    rows, width = values.shape
    here = place >= 0
    columns = place[here, None] * width + np.arange(width)
    indptr = np.concatenate([[0], np.cumsum(np.where(here, width, 0))])
    return csr_matrix((values[here].ravel(), columns.ravel(), indptr), shape=(rows, places * width))


def no_columns(rows: int) -> Design:
    return Design(np.zeros((rows, 0)), None, np.zeros(0, dtype=np.int64))


def free_groups(size: int) -> IntArray:
    return np.full(size, FREE, dtype=np.int64)
