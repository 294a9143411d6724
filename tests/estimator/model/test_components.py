"""Parts of the graph of riders and sites."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from isuit.estimator.model.components import components, in_largest, linked_without_any_one, visited


def table(*rows: list[int]) -> csr_matrix:
    return csr_matrix(np.array(rows, dtype=float))


def test_parts_are_numbered_by_their_first_row() -> None:
    number, part = components(table([0, 0, 1, 0], [1, 1, 0, 0], [0, 1, 0, 0]))
    assert number == 3, "two parts with riders, and a site where nobody was"
    assert part.tolist() == [1, 1, 0, 2]


def test_the_largest_part_is_that_of_its_columns_together() -> None:
    links = table([1, 1, 0], [0, 0, 1])
    assert in_largest(links, np.array([2.0, 3.0, 4.0])).tolist() == [True, True, False]
    assert in_largest(links, np.array([2.0, 1.0, 4.0])).tolist() == [False, False, True]


def test_a_tie_goes_to_the_part_of_the_first_row() -> None:
    equal = np.array([2.0, 2.0])
    assert in_largest(table([1, 0], [0, 1]), equal).tolist() == [True, False]
    assert in_largest(table([0, 1], [1, 0]), equal).tolist() == [False, True]


def test_visits_are_counted_once() -> None:
    found = visited(np.array([0, 0, 0, 2]), 3, np.array([1, 1, 0, 1]), 2)
    assert found.toarray().tolist() == [[1, 1], [0, 0], [0, 1]]


def test_a_link_must_outlast_any_one_rider() -> None:
    homes = [[1, 0, 0]] * 3 + [[0, 1, 0]] * 3 + [[0, 0, 1]] * 2
    assert linked_without_any_one(table(*homes, [1, 1, 0])).tolist() == [True, False, False], "one rider alone"
    assert linked_without_any_one(table(*homes, [1, 1, 0], [1, 1, 0])).tolist() == [True, True, False]
    # Each of two riders is the only one of a link, but a way round is left without either.
    ring = table(*homes, [1, 1, 0], [0, 1, 1], [1, 0, 1])
    assert linked_without_any_one(ring).all()
    assert linked_without_any_one(table(*homes, [1, 1, 1], [1, 1, 1])).all()
    assert linked_without_any_one(table(*homes, [1, 1, 1])).tolist() == [True, False, False]
