"""Who is linked with whom: the parts into which riders and what they were observed in (metric bins, sites) fall.

Riders are the rows of a sparse table and bins or sites its columns; an entry is a link. What nobody links has no
common origin: neither skills nor difficulties can be compared across two parts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from isuit.domain import FloatArray, IntArray


def components(links: csr_matrix) -> tuple[int, IntArray]:
    """How many parts rows and columns form, and the part of each column; parts are numbered by their first row."""
    rows, columns = links.nonzero()
    first_column = links.shape[0]
    size = first_column + links.shape[1]
    graph = csr_matrix((np.ones(rows.size, dtype=bool), (rows, first_column + columns)), shape=(size, size))
    number, part = connected_components(graph, directed=False)
    return int(number), part[first_column:]


def in_largest(links: csr_matrix, size: FloatArray) -> NDArray[np.bool_]:
    """By column, whether it is in the part whose columns are largest together; of equal ones that of the first row."""
    part = components(links)[1]
    return np.asarray(part == np.bincount(part, weights=size).argmax())


def visited(rider: IntArray, riders: int, site: IntArray, sites: int) -> csr_matrix:
    """Riders by sites, one where a rider was."""
    pairs = np.unique(rider * sites + site)
    return csr_matrix((np.ones(pairs.size), (pairs // sites, pairs % sites)), shape=(riders, sites))


def linked_without_any_one(visits: csr_matrix) -> NDArray[np.bool_]:
    """By site, whether riders link it to the part with most riders, and would do so without any one of them."""
    size = np.asarray(visits.sum(axis=0)).ravel()
    # Sites by sites, how many riders were at both. Rows are sites: a tie goes to places, not to persons.
    common = (visits.T @ visits).tocsr()
    linked = in_largest(common, size)
    several = np.flatnonzero(np.diff(visits.indptr) > 1)
    for rider in several.tolist():
        own = visits.indices[visits.indptr[rider] : visits.indptr[rider + 1]]
        links = common[own][:, own].toarray()
        if np.any(links == 1.0):  # the only rider of some link
            alone = csr_matrix((np.ones(own.size**2), (np.repeat(own, own.size), np.tile(own, own.size))), common.shape)
            linked &= in_largest(common - alone, size)
    return linked
