"""Who is one person, and when outings tell that people stand in a union twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isuit.release.identities import is_placeholder
from isuit.release.persons import Persons, doubled
from isuit.spelling import fold


def test_a_person_is_an_id_its_tokens_and_their_spellings() -> None:
    persons = Persons([("Anna", "T1"), ("ben", "t2"), ("t2", "t3")])
    assert len({persons.of(name) for name in ("anna", "ANNA ", "t1", "\uff34\uff11")}) == 1
    assert len({persons.of(name) for name in ("ben", "T2", "t3")}) == 1
    assert len({persons.of(name) for name in ("anna", "ben", "carl", "t4")}) == 4


def test_whoever_is_one_with_a_placeholder_is_nobody() -> None:
    persons = Persons([("unknown", "0token")])
    assert is_placeholder(persons.of("0TOKEN"))


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("stuvwxabc")), max_size=8))
def test_persons_are_the_components_of_the_pairs(pairs: list[tuple[str, str]]) -> None:
    persons = Persons(pairs)
    names = set("abcdefghstuvwx")
    reach = {name: {name} for name in names}
    for _ in names:
        for one, other in pairs:
            reach[one] = reach[other] = reach[one] | reach[other]
            for name in reach[one]:
                reach[name] |= reach[one]
    for one in names:
        assert {name for name in names if persons.of(name) == persons.of(one)} == reach[one]
        assert persons.of(one) == persons.of(fold(one.upper()))


def lines(persons: int, each: int, seed: int = 1, hours: int = 10**6) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(seed)
    person = np.repeat(np.arange(persons), each)
    at = random.integers(0, hours, person.size)
    # The metric is the hour's, as a weather model gives it.
    return person, at, at / 7, random.integers(0, 2, person.size)


@pytest.mark.parametrize(("copied", "is_a_copy"), [(1, False), (2, True), (40, True)])
def test_copies_are_found_and_a_pair_of_friends_is_none(copied: int, is_a_copy: bool) -> None:
    person, at, metric, outcome = lines(100, 12)
    again = person < copied
    found = doubled(
        np.append(person, person[again] + 100),
        *(np.append(column, column[again]) for column in (at, metric, outcome)),
    )
    assert (found.persons, found.outings, found.among) == (2 * copied, 12 * copied, 100 + copied)
    assert found.is_a_copy == is_a_copy


def test_people_at_one_place_with_an_hourly_metric_are_not_copies() -> None:
    """Two hundred riders in four hundred hours meet often, and share time, metric and half of the outcomes."""
    assert doubled(*lines(200, 30, hours=400)).persons == 0
    nothing = np.zeros(0, np.int64)
    assert doubled(nothing, nothing, np.zeros(0), nothing).persons == 0
