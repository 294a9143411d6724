"""The form of each cell of a surface: products of bins where they are thick, main effects where they are not (`grid`).

A line of outcomes is in one product, or in one bin of every metric: then it has as many rows here, and it stays or
leaves as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from isuit.release.grid import Grid, riders_needed
from isuit.release.policy import Policy
from isuit.release.screening import Placed, distinct_riders

Form = Literal["products", "main effects"]
THICK = 0.9  # of a cell's lines, in products with k riders, from which it is released as products


def forms_of(grid: Grid, released: Iterable[tuple[str, int]]) -> dict[str, Form]:
    """The form of each cell, by the places that were ever released of it."""
    return {cell: "products" if place < grid.products else "main effects" for cell, place in released}


def in_forms(placed: Placed, grid: Grid, before: Mapping[str, Form], policy: Policy) -> Placed:
    """The lines, which lie in products, in the form of their cells; cells released before keep theirs."""
    forms = {**_first_forms(placed, grid, policy), **before}
    mains = np.array([forms[cell] == "main effects" for cell in placed.cells], dtype=bool)[placed.cell]
    line = np.repeat(np.arange(mains.size), np.where(mains, len(grid.metrics), 1))
    first = np.searchsorted(line, np.arange(mains.size))
    own = grid.mains_of(placed.bin)[line, np.arange(line.size) - first[line]]
    found = placed.of_rows(line)
    return replace(found, bin=np.where(mains[line], own, placed.bin[line]), line=line)


def _first_forms(placed: Placed, grid: Grid, policy: Policy) -> dict[str, Form]:
    number, lines = len(placed.cells), np.bincount(placed.cell)
    riders = distinct_riders(placed.pair, placed.outcomes, number * grid.number)
    thick = np.bincount(placed.cell, weights=riders[placed.pair] >= policy.k, minlength=number) >= THICK * lines
    thick &= distinct_riders(placed.cell, placed.outcomes, number) >= riders_needed(grid.products)
    return {cell: "products" if thick[code] else "main effects" for code, cell in enumerate(placed.cells)}


def without_support(placed: Placed, grid: Grid, policy: Policy) -> set[tuple[str, int]]:
    """Places of main effects that fewer than k riders were near: a bin of one metric that nobody met with the others
    near what they are held at."""
    product = grid.product_of(placed.outcomes.metric)
    found = set()
    for number in np.unique(placed.bin[placed.bin >= grid.products]).tolist():
        # A line has several rows of main effects; each rider counts once all the same.
        near = grid.is_near(number, product)
        riders = distinct_riders(np.where(near, placed.cell, -1), placed.outcomes, len(placed.cells))
        found |= {(placed.cells[code], number) for code in np.flatnonzero(riders < policy.k).tolist()}
    return found
