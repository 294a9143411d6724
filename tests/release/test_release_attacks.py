"""One attack per leak, on crafted cohorts through the command line, comparing bytes.

Each attack is also shown to succeed on an exporter with the one rule removed that answers it: an attack that cannot
succeed proves nothing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from release_lab import FIRST, RECENT, SECOND, Answer, Lab, Mutant, Row, draw, table

from isuit.published import ReleaseMetadata

SCREENING, RELEASE, CARRYING = (f"isuit.release.{name}" for name in ("screening", "making", "carrying"))
# Two sites of one cell of resolution 7, and others far away.
TWIN = {"north-pier": (45.500411, 9.100722), "south-pier": (45.500903, 9.101377)}
FAR = {f"spot-{number}": (36.0 + 4 * number, -5.0 + 3 * number) for number in range(6)}


# --- who is counted ---------------------------------------------------------------------------------------------------


def four_cells(riders: int = 12) -> list[Row]:
    """A healthy release of four cells whose riders each visit two of them; the attacks add a fifth."""
    skills: dict[str, float] = {}
    rows = []
    for number in range(4):
        names = [f"rider-{(number * riders + index) % (4 * riders):03d}" for index in range(2 * riders)]
        rows += draw(names, 9, seed=13 + number, site=f"spot-{number}", skills=skills)
    return rows


def has_fifth_cell(lab: Lab, fifth: list[Row]) -> bool:
    released = lab.release([*four_cells(), *fifth], sites={**FAR, **TWIN})
    assert len(released.cells) >= 4, released.err
    return len(released.cells) == 5


@pytest.mark.long
class TestUnionOfRiders:
    """Six riders who visit both sites of a cell are six, not twelve."""

    def leaks(self, lab: Lab) -> bool:
        names = [f"rider-{number:03d}" for number in range(0, 42, 7)]
        fifth = [row for number, site in enumerate(TWIN, 1) for row in draw(names, 18, seed=number, site=site)]
        return has_fifth_cell(lab, fifth)

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_riders_are_summed_over_sites(self, lab: Lab, mutant: Mutant) -> None:
        def summed(group: Any, outcomes: Any, groups: int) -> Any:
            inside = group >= 0
            key = (group * 1000 + outcomes.place) * len(outcomes.riders) + outcomes.rider
            return np.bincount(np.unique(key[inside]) // len(outcomes.riders) // 1000, minlength=groups)

        mutant(f"{SCREENING}.distinct_riders", summed)
        assert self.leaks(lab)


@pytest.mark.long
class TestSpellingVariants:
    """Six riders in two spellings each are six."""

    def leaks(self, lab: Lab) -> bool:
        rows = draw([f"rider-{number:03d}" for number in range(0, 42, 7)], 36, seed=1, site="spot-4")
        return has_fifth_cell(
            lab, [replace(row, rider=row.rider.upper()) if number % 2 else row for number, row in enumerate(rows)]
        )

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_ids_are_taken_as_they_are(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.persons.fold", lambda rider: rider)
        assert self.leaks(lab)


class TestIdAndToken:
    """Six people, one season under their IDs and the next after `pseudonymise` in the same store, are six."""

    def released(self, lab: Lab, *, respelled: bool = False) -> Answer:
        rows = draw(6, 90, seed=1, low=0.0, high=36.0)
        store = lab.store([replace(row, rider=row.rider.upper()) for row in rows] if respelled else rows)
        lab.fit(store, draw(6, 90, seed=2, low=0.0, high=36.0), pseudonymised_in=store)
        return lab.export(store)

    @pytest.mark.parametrize("respelled", [False, True])
    def test_the_attack_fails(self, lab: Lab, respelled: bool) -> None:
        answer = self.released(lab, respelled=respelled)
        assert (answer.code, answer.file, answer.out) == (3, None, "")
        assert "fewer than 10 riders" in answer.err

    def test_it_succeeds_when_an_id_and_its_token_are_two(self, lab: Lab, mutant: Mutant) -> None:
        from isuit.spelling import fold

        mutant("isuit.release.persons.Persons.of", lambda self, name: fold(name))
        answer = self.released(lab)
        assert {row["contributors"] for row in answer.rows} == {"10-19"}, answer.err

    def test_the_same_outings_are_released_once(self, lab: Lab) -> None:
        """An ID and its token weigh as one, with each outing once: a second copy changes no value."""
        rows = draw(24, seed=1)
        store = lab.store(rows)
        again = lab.copy(store)
        lab.fit(again, rows, pseudonymised_in=again)
        once, twice = lab.export(store), lab.export(again)
        assert once.rows
        assert once.values == twice.values

    def test_the_token_of_a_placeholder_is_nobody(self, lab: Lab) -> None:
        names = [*(f"rider-{number:03d}" for number in range(9)), "unknown"]
        store = lab.store(draw(names, 60, seed=1, low=0.0, high=36.0))
        lab.fit(store, draw(names, 60, seed=2, low=0.0, high=36.0), pseudonymised_in=store)
        assert lab.export(store).code == 3

    def test_tokens_alone_are_released(self, lab: Lab) -> None:
        raw, tokens, store = lab.path("raw.parquet"), lab.path("tokens.parquet"), lab.path("store")
        pq.write_table(table(draw(24, seed=1)), raw)
        assert lab.isuit("pseudonymise", raw, "--out", tokens, "--store", store).code == 0
        assert lab.isuit("fit", "--cohort", tokens, "--store", store).code == 0
        assert lab.export(store).rows


class TestSamePeopleUnderOtherIds:
    """Six people whose cohort was pseudonymised elsewhere and fitted again: the store cannot know, the outings tell."""

    def released(self, lab: Lab) -> Answer:
        rows = draw(6, 90, seed=1, low=0.0, high=36.0)
        store = lab.store(rows)
        lab.fit(store, rows, pseudonymised_in=lab.path("elsewhere"))
        return lab.export(store)

    def test_the_attack_fails(self, lab: Lab) -> None:
        answer = self.released(lab)
        assert (answer.code, answer.file, answer.out) == (3, None, "")
        assert answer.err.startswith(
            "isuit: 12 of 12 riders of kitesurfing, wind_speed_kn have the same outings as others (540 with "
        )
        assert answer.err.count("\n") == 1

    def test_it_succeeds_when_outings_are_not_compared(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.persons.SAME_OUTINGS", 10**9)
        assert {row["contributors"] for row in self.released(lab).rows} == {"10-19"}


@pytest.mark.long
class TestPlaceholders:
    """Eight riders, `unknown`, `NULL` and `-` are eight."""

    def leaks(self, lab: Lab) -> bool:
        names = [*(f"rider-{number:03d}" for number in range(0, 48, 6)), "unknown", "NULL", "-"]
        return has_fifth_cell(lab, draw(names, 27, seed=1, site="spot-4", low=0.0, high=36.0))

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_placeholders_count(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.eligibility.counts_as_rider", lambda folded: True)
        assert self.leaks(lab)


class TestCountDifferencing:
    """A release with one rider more does not say that there is one more."""

    def leaks(self, lab: Lab) -> bool:
        rows = draw(26, seed=3)
        fewer = [row for row in rows if row.rider != "rider-025"]
        bands = [{row["contributors"] for row in lab.release(cohort).rows} for cohort in (rows, fewer)]
        assert all(bands)
        return bands[0] != bands[1]

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_a_band_is_a_count(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.policy.BANDS", ((26, "50-99"), (25, "20-49"), (0, "10-19")))
        assert self.leaks(lab)


# --- what is let in ---------------------------------------------------------------------------------------------------


class TestLag:
    """The recent outcomes of 16 riders leave the bytes unchanged, whatever they are."""

    def leaks(self, lab: Lab) -> bool:
        rows = draw(seed=4)
        recent = [replace(row, observed_at=RECENT, outcome=1) for row in rows if row.rider < "rider-008"]
        recent += [replace(row, observed_at=RECENT) for row in draw(8, tag="new", seed=9)]
        before, after = lab.release(rows), lab.release([*rows, *recent])
        assert before.rows
        return before.file != after.file

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_without_the_lag(self, lab: Lab, mutant: Mutant) -> None:
        from isuit.release.making import FAR_FUTURE

        mutant(f"{RELEASE}.cut_off", lambda release, lag_days: FAR_FUTURE)
        assert self.leaks(lab)


class TestLoneRiderInAThinBin:
    """One rider alone in a bin: turning all their outcomes there round leaves the bytes unchanged."""

    def leaks(self, lab: Lab) -> bool:
        rows = [row for row in draw(20, 27, seed=6) if not 16 <= row.metric < 20]
        alone = [Row("rider-003", 16.5 + number / 2, 0, None, rows[0].observed_at) for number in range(6)]
        before = lab.release([*rows, *alone])
        after = lab.release([*rows, *(replace(row, outcome=1) for row in alone)])
        assert before.rows
        return before.file != after.file

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_thin_bins_are_fitted(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{SCREENING}.bins_with_enough", lambda riders, policy: np.ones_like(riders, dtype=bool))
        assert self.leaks(lab)


class TestExtremeOuting:
    """One rider's outing far beyond everyone else's moves no edge of a bin."""

    def leaks(self, lab: Lab) -> bool:
        rows = draw(seed=7)
        storm = Row("rider-004", 61.3, 0, None, rows[0].observed_at)
        before, after = lab.release(rows), lab.release([*rows, storm])
        assert before.rows
        return before.file != after.file

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_bins_span_all_outcomes(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.bins._reached", lambda rider, metric, k: (metric.min(), metric.max()))
        assert self.leaks(lab)


# --- how much one rider weighs ----------------------------------------------------------------------------------------


class TestFourHundredRows:
    """A rider who logs the same outings with 400 rows weighs no more than with 40."""

    def leaks(self, lab: Lab) -> bool:
        others = draw(seed=8)
        start = others[0].observed_at
        assert start is not None
        outings = [(1.0 + 36 * number / 40, int(number % 3 > 0)) for number in range(40)]

        def logged(times: int) -> list[Row]:
            return [Row("keen", metric, outcome, None, start + timedelta(seconds=second)) for metric, outcome in
                    outings for second in range(times)]  # fmt: skip

        before, after = lab.release([*others, *logged(1)]), lab.release([*others, *logged(10)])
        assert before.rows
        return before.file != after.file

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_without_the_cap(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{SCREENING}.capped", lambda lines, policy: lines)
        assert self.leaks(lab)


class TestCopies:
    """One rider's rows copied fifty times, or half of the cohort fitted again, leave the bytes unchanged."""

    def leaks(self, lab: Lab) -> bool:
        rows = draw(16, seed=2)
        copies = [row for row in rows if row.rider == "rider-005"] * 50
        fine = {"rounding": 0.1}  # so that a rider who weighs twice moves a digit
        before, copied, twice = (
            lab.release(*each, policy=fine) for each in ([rows], [[*rows, *copies]], [rows, rows[::2]])
        )
        assert before.rows
        return len({before.file, copied.file, twice.file}) > 1

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_copies_weigh(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{SCREENING}.distinct_lines", lambda group, times: np.bincount(group, weights=times))
        assert self.leaks(lab)


@pytest.mark.long
class TestDominance:
    """A cell in which one rider outweighs nine others, each with one outcome per bin, is not released."""

    def leaks(self, lab: Lab) -> bool:
        thin = draw([f"rider-{number:03d}" for number in range(0, 45, 5)], 9, seed=21, site="spot-4", low=0, high=36)
        return has_fifth_cell(lab, [*thin, *draw(["rider-002"], 45, seed=22, site="spot-4", low=0, high=36)])

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_without_the_limits(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{SCREENING}.is_dominated", lambda heaviest, second, total, policy: np.zeros(total.size, dtype=bool))
        assert self.leaks(lab)


class TestLeaveOneOut:
    """Releases with and without one rider nowhere differ by more than the limit and the rounding of two values."""

    SLACK = 0.25 + 1e-9

    def leaks(self, lab: Lab) -> bool:
        rows = draw(10, 18, seed=31)
        # One rider of twelve succeeds where the others fail and fails where they succeed.
        rows += [Row("odd", metric, int(abs(metric - 18) > 9), None, rows[0].observed_at) for metric in
                 np.arange(1.0, 36.0, 0.5).tolist()]  # fmt: skip
        with_, without = lab.release(rows), lab.release([row for row in rows if row.rider != "odd"])
        before = {row["metric"]: row["difficulty"] for row in with_.rows}
        after = {row["metric"]: row["difficulty"] for row in without.rows}
        moved = [abs(before[metric] - after[metric]) for metric in before.keys() & after.keys()
                 if before[metric] is not None and after[metric] is not None]  # fmt: skip
        return max(moved, default=0.0) > 0.5 + self.SLACK

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_without_the_limit(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{RELEASE}.refused_bins", lambda curves, released, policy: np.zeros_like(released))
        assert self.leaks(lab)


# --- the policy and the series ----------------------------------------------------------------------------------------


class TestOtherValues:
    """No export loosens the policy, and after the first release none has other values."""

    LOOSER = (("--k", "9"), ("--lag-days", "89"), ("--resolution", "8"))
    TIGHTER = (("--k", "12"), ("--lag-days", "120"), ("--resolution", "6"))

    def leaks(self, lab: Lab) -> set[int]:
        store = lab.store(draw(seed=1))
        codes = {lab.export(store, FIRST, *options).code for options in self.LOOSER}
        assert lab.export(store, FIRST).code == 0
        return codes | {lab.export(store, SECOND, *options).code for options in self.TIGHTER}

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert self.leaks(lab) == {3}

    def test_it_succeeds_when_options_are_taken(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.policy._protects_less", lambda name, policy, other: False)
        assert 0 in self.leaks(lab)

    def test_it_succeeds_when_a_series_may_change(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.service.releases.other_than", lambda series, options: [])
        assert 0 in self.leaks(lab)


class TestSameDay:
    """The same date gives the same bytes, also after an opt-out and after new data."""

    def leaks(self, lab: Lab) -> bool:
        store = lab.store(draw(seed=1))
        first = lab.export(store)
        assert first.rows
        lab.fit(store, [*draw(seed=1), *draw(15, tag="new", seed=41)])
        with_new_data = lab.export(store)
        lab.opt_out(store, "rider-003")
        return {first.file} != {with_new_data.file, lab.export(store).file}

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_a_release_is_made_again(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.service.releases.published_on", lambda day, releases: None)
        assert self.leaks(lab)


class TestDepartureOfOne:
    """Two releases around one opt-out have the same values: they do not tell whether the person was good."""

    def leaks(self, lab: Lab) -> bool:
        store = lab.store(draw(26, seed=1))
        first = lab.export(store)
        assert first.rows
        lab.opt_out(store, "rider-003")
        return first.values != lab.export(store, SECOND).values

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_rows_are_always_computed_again(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{CARRYING}.is_held", lambda change, policy: False)
        mutant(f"{CARRYING}.may_change", lambda changed, policy: True)
        assert self.leaks(lab)


class TestDepartureAmongAdditions:
    """One opts out while twelve others add outcomes, which is a store that lives: the rows of the one are held."""

    def leaks(self, lab: Lab) -> bool:
        rows = draw(26, seed=1)
        store = lab.store(rows)
        first = lab.export(store)
        assert first.rows
        lab.opt_out(store, "rider-003")
        lab.fit(store, [*rows, *draw([f"rider-{number:03d}" for number in range(8, 20)], 18, seed=52)])
        return first.values != lab.export(store, SECOND).values

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_additions_hide_nothing(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{CARRYING}.is_held", lambda change, policy: False)
        assert self.leaks(lab)


class TestErasedForEver:
    """What an erased person gave is repeated in four releases at most; then the rows that hold it are gone."""

    DATES = tuple(f"2026-{month:02d}-01" for month in range(1, 7))

    def leaks(self, lab: Lab) -> bool:
        store = lab.store(draw(26, seed=1), policy={"spacing_days": 20})
        answers = [lab.export(store, self.DATES[0])]
        lab.opt_out(store, "rider-003")
        answers += [lab.export(store, day) for day in self.DATES[1:]]
        assert all(answer.values == answers[0].values for answer in answers[:5])
        return answers[5].values == answers[0].values

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_without_the_bound(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{CARRYING}.may_repeat", lambda held, policy: True)
        assert self.leaks(lab)


class TestCopiesAsChanges:
    """Twelve accomplices upload a second copy of their own lines, so that a row with one new outing is computed."""

    def leaks(self, lab: Lab) -> bool:
        rows = draw(seed=1)
        store = lab.store(rows)
        first = lab.export(store)
        assert first.rows
        copies = [row for row in rows if "rider-008" <= row.rider < "rider-020"]
        lab.fit(store, [*rows, *copies, *draw(["rider-007"], 40, seed=51)])
        return first.values != lab.export(store, SECOND).values

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_a_change_is_one_of_the_text(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{CARRYING}.weights", lambda placed, policy: placed.outcomes.times.astype(np.float64))
        assert self.leaks(lab)


class TestNineInLeague:
    """Eight who change their own outcomes do not make the rows of a ninth's new outings computed; ten changes do."""

    def leaks(self, lab: Lab, accomplices: int) -> bool:
        rows = draw(26, seed=1)
        store = lab.store(rows)
        first = lab.export(store)
        names = [f"rider-{number:03d}" for number in range(3, 4 + accomplices)]
        lab.fit(store, [*rows, *draw(names, 18, seed=54)])
        return first.values != lab.export(store, SECOND).values

    def test_the_attack_fails_with_eight(self, lab: Lab) -> None:
        assert not self.leaks(lab, 8)

    def test_it_succeeds_with_nine(self, lab: Lab) -> None:
        assert self.leaks(lab, 9)

    def test_it_succeeds_with_four_where_five_changes_are_enough(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{CARRYING}.may_change", lambda changed, policy: changed >= 5)
        assert self.leaks(lab, 4)


class TestDailyReleases:
    """Releases of two days in a row, which would show on which day somebody's outing passes the cut-off."""

    def codes(self, lab: Lab) -> list[int]:
        store = lab.store(draw(seed=1))
        return [lab.export(store, day).code for day in (FIRST, "2026-01-02", "2026-03-31", SECOND)]

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert self.codes(lab) == [0, 3, 3, 0]

    def test_it_succeeds_without_the_spacing(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.service.releases.is_too_soon", lambda day, newest, policy: False)
        assert self.codes(lab) == [0, 0, 0, 0]


class TestMarksOfWhatWasComputed:
    """Discrimination, which every computation gives anew, stays that of the first release."""

    def leaks(self, lab: Lab) -> bool:
        rows = draw(seed=1)
        store = lab.store(rows)
        first = lab.export(store)
        by_chance = [replace(row, outcome=number % 2) for number, row in enumerate(draw(14, tag="new", seed=77))]
        lab.fit(store, [*rows, *by_chance])
        second = lab.export(store, SECOND)
        assert first.values != second.values
        assert not any("discrimination" in row for row in [*first.rows, *second.rows])
        told = [answer.metadata["metrics"][0]["discrimination"] for answer in (first, second)]
        assert told[0] > 0
        return told[0] != told[1]

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_discrimination_follows_the_fit(self, lab: Lab, mutant: Mutant) -> None:
        from isuit.service import releases

        series = releases._series
        mutant("isuit.service.releases._series", lambda *given: replace(series(*given), discrimination={}))
        assert self.leaks(lab)


class TestBandAtItsEdge:
    """A row of sixteen riders that six join stands with its band: an edge does not tell that a count passed it."""

    def leaks(self, lab: Lab) -> bool:
        rows = draw(16, seed=2)
        store = lab.store(rows)
        first = lab.export(store)
        assert {row["contributors"] for row in first.rows} == {"10-19"}
        others = draw([f"rider-{number:03d}" for number in range(6)], 18, seed=55)
        lab.fit(store, [*rows, *draw(6, tag="new", seed=56), *others])
        second = lab.export(store, SECOND)
        assert first.values != second.values
        before = {row["metric"] for row in first.rows}
        return {row["contributors"] for row in second.rows if row["metric"] in before} != {"10-19"}

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_without_the_margin(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.policy.BAND_MARGIN", 0)
        assert self.leaks(lab)


class TestSomeoneWhoKnowsAllOthers:
    """With everyone else's outcomes, releases with a person and without can be computed; noise keeps them alike.

    The attacker has the exact curves of both and the size of the noise, and takes the likelihood ratio. Figures by size
    of cell, also for an expert: `benchmarks/disclosure.py`.
    """

    def area(self, lab: Lab) -> float:
        """Under the attacker's curve, over three persons and a hundred stores' secrets."""
        from isuit.release import noise
        from isuit.release.policy import Policy
        from isuit.release.rounding import to_step

        policy, rows = Policy(), draw(24, seed=3)
        exact = {"rounding": 1e-6, "rounding_many": 1e-6, "influence": 9.0}
        whole = lab.release(rows, policy=exact)
        found = []
        for who in ("rider-002", "rider-009", "rider-017"):
            without = lab.release([row for row in rows if row.rider != who], policy=exact)
            pairs = [(one["difficulty"], two["difficulty"]) for one, two in zip(whole.rows, without.rows, strict=True)]
            inside, outside = np.array([pair for pair in pairs if None not in pair]).T
            size, points = noise.scale(24, policy), inside.size
            shapes = size * noise.shapes(points)
            direction = np.linalg.solve(shapes.T @ shapes + 0.25**2 / 12 * np.eye(points), inside - outside)
            told = []
            for curve in (inside, outside):
                drawn = [size * noise.draw(bytes([number]), ["", "", who], [], points) for number in range(100)]
                told.append(
                    [np.array([to_step(value, 0.25) for value in (curve + one).tolist()]) @ direction for one in drawn]
                )
            found.append(np.mean(np.array(told[0])[:, None] > np.array(told[1])[None, :]))
        return float(np.mean(found))

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert self.area(lab) <= 0.65

    def test_it_succeeds_without_noise(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.noise.scale", lambda riders, policy: 1e-3)
        assert self.area(lab) > 0.8


class TestErrorsAndBandsBesideValues:
    """With everyone else's outcomes: the digits of errors and the bands of riders tell no more than values do.

    At 24 riders an error's first digit, or a band at its edge, was another without the person in most cells.
    """

    def area(self) -> float:
        """Under the curve of an attacker who learns from 120 stores what differs, and judges 120 others."""
        from dataclasses import replace

        from test_screening import placed

        from isuit.domain import FitConfig
        from isuit.release.cell_curves import fit_cells
        from isuit.release.eligibility import Topic
        from isuit.release.policy import Policy
        from isuit.release.rounding import RowMaker
        from isuit.release.screening import members

        whole = replace(placed(1, per_place=24), cells=("global",))
        worlds = [whole, whole.of_rows(whole.outcomes.rider != 3)]
        fits = [fit_cells(each, Policy(), FitConfig()) for each in worlds]
        counts = [{key: len(riders) for key, riders in members(each).items()} for each in worlds]

        def read(world: int, secret: int) -> np.ndarray:
            making = RowMaker("2026-01-01", Topic("kitesurfing", "wind_kn"), whole.bins, Policy(), bytes([secret]))
            rows = making.rows(fits[world], counts[world]).values()
            told = [(np.log(row.difficulty_se or 0.3), float(row.contributors != "10-19")) for row in rows]
            return np.array(told).ravel()

        loud = [np.array([read(world, secret) for secret in range(240)]) for world in (0, 1)]
        direction = loud[0][:120].mean(axis=0) - loud[1][:120].mean(axis=0)
        direction /= (
            loud[0][:120].var(axis=0) + loud[1][:120].var(axis=0)
        ) / 2 + 1e-6  # some points are saturated, or not
        mine, its = (each[120:] @ direction for each in loud)
        wins = np.mean(mine[:, None] > its[None, :]) + np.mean(mine[:, None] == its[None, :]) / 2
        return float(wins)

    def test_the_attack_fails(self) -> None:
        assert self.area() <= 0.7

    def test_it_succeeds_where_values_alone_have_noise(self, mutant: Mutant) -> None:
        mutant("isuit.release.noise.ERRORS", 0.0)
        mutant("isuit.release.noise.RIDERS", 0.0)
        assert self.area() == 1.0


class TestDiscriminationOfAFirstRelease:
    """With everyone else's outcomes: the discrimination in the metadata is another without the person in a third of all
    cells of 24 riders, and tells no more than values do."""

    def area(self) -> float:
        """Under the curve of an attacker who knows both fits, of a person whose absence moves the published digits."""
        from test_screening import placed

        from isuit.domain import FitConfig
        from isuit.release.cell_curves import fit_cells
        from isuit.release.eligibility import Topic
        from isuit.release.policy import Policy
        from isuit.release.rounding import RowMaker

        whole = replace(placed(1, per_place=24), cells=("global",))

        def published(fit: Any, secret: int, policy: Policy) -> float:
            making = RowMaker("2026-01-01", Topic("kitesurfing", "wind_kn"), whole.bins, policy, bytes([secret]))
            making.rows(fit, {})
            assert making.discrimination is not None
            return making.discrimination

        quiet, known = Policy(noise=0.0), fit_cells(whole, Policy(), FitConfig())
        for rider in range(24):
            other = fit_cells(whole.of_rows(whole.outcomes.rider != rider), Policy(), FitConfig())
            if published(known, 0, quiet) != published(other, 0, quiet):
                break
        else:
            pytest.fail("nobody moves the digits")
        ins, outs = (np.array([published(fit, secret, Policy()) for secret in range(240)]) for fit in (known, other))
        if known.fit.discrimination < other.fit.discrimination:
            ins, outs = outs, ins
        return float(np.mean(ins[:, None] > outs[None, :]) + np.mean(ins[:, None] == outs[None, :]) / 2)

    def test_the_attack_fails(self) -> None:
        assert self.area() <= 0.65

    def test_it_succeeds_where_all_but_it_has_noise(self, mutant: Mutant) -> None:
        mutant("isuit.release.noise.of_discrimination", lambda secret, about, went_in, riders, policy: (1.0, riders))
        assert self.area() == 1.0


class TestNoiseIsTheStores:
    """Noise is the same when a release is asked for again, and another in another store: averaging needs stores."""

    def released(self, lab: Lab) -> list[Answer]:
        rows = draw(26, seed=1)
        one = lab.store(rows, policy={"noise": 0.5})
        again, other = lab.copy(one), lab.path("other-store")
        file = lab.path("policy.json")
        file.write_text('{"noise": 0.5}')
        assert lab.isuit("init", "--store", other, "--policy", file).code == 0
        lab.fit(other, rows)
        return [lab.export(store) for store in (one, again, other)]

    def test_the_attack_fails(self, lab: Lab) -> None:
        one, again, other = self.released(lab)
        assert one.rows
        assert one.values == again.values != other.values

    def test_it_succeeds_when_noise_has_no_secret(self, lab: Lab, mutant: Mutant) -> None:
        from isuit.release import noise

        keyed = noise.draw
        mutant("isuit.release.noise.draw", lambda secret, *rest: keyed(b"", *rest))
        one, _, other = self.released(lab)
        assert one.values == other.values


class TestAddedRowsOfOne:
    """New outcomes of one rider leave the next release's values unchanged."""

    def leaks(self, lab: Lab) -> bool:
        rows = draw(seed=1)
        store = lab.store(rows)
        first = lab.export(store)
        assert first.rows
        lab.fit(store, [*rows, *draw(["rider-007"], 40, seed=51)])
        return first.values != lab.export(store, SECOND).values

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_rows_are_always_computed_again(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{CARRYING}.may_change", lambda changed, policy: True)
        assert self.leaks(lab)


@pytest.mark.long
class TestOptOutBelowK:
    """A cell of ten riders, one of whom opts out, is withdrawn."""

    def leaks(self, lab: Lab) -> bool:
        ten = [f"rider-{number:03d}" for number in range(0, 40, 4)]
        fifth = draw(ten, 27, seed=61, site="spot-4", low=0.0, high=36.0)
        store = lab.store([*four_cells(), *fifth], sites=FAR)
        first = lab.export(store)
        assert len(first.cells) == 5
        lab.opt_out(store, "rider-000")
        second = lab.export(store, SECOND)
        assert second.code == 0
        return len(second.cells) == 5

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_rows_are_carried_below_k(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{CARRYING}.is_withdrawn", lambda live_riders, policy: False)
        assert self.leaks(lab)


class TestReturnOfAWithdrawnRow:
    """A row that falls below k and comes back with one other rider is as it was: two people changed, not five."""

    def leaks(self, lab: Lab) -> bool:
        rows = [row for row in draw(26, seed=1) if not (row.rider >= "rider-020" and 16 <= row.metric < 20)]
        store = lab.store(rows, policy={"k": 20})
        first = [row for row in lab.export(store).values if row["metric"] == 18]
        lab.opt_out(store, "rider-003")
        assert not [row for row in lab.export(store, SECOND).rows if row["metric"] == 18]
        lab.fit(store, [*rows, *draw(["newcomer"], 18, seed=81)])
        third = [row for row in lab.export(store, "2026-07-01").values if row["metric"] == 18]
        assert len(first) == len(third) == 1
        return first != third

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_only_the_newest_release_counts(self, lab: Lab, mutant: Mutant) -> None:
        from isuit.release import making

        every = making._released_before
        mutant(
            f"{RELEASE}._released_before",
            lambda source, series: every(source, replace(series, releases=series.releases[-1:])),
        )
        assert self.leaks(lab)


# --- what the bytes say beside the numbers ----------------------------------------------------------------------------


class TestPlaces:
    """Neither a site's name nor its coordinates are in any file, only the centre of a cell."""

    def leaks(self, lab: Lab) -> bool:
        rows = [replace(row, site=sorted(TWIN)[number % 2]) for number, row in enumerate(draw(seed=1))]
        store = lab.store(rows, sites=TWIN)
        files = [lab.export(store, FIRST, "--format", kind, extension=extension).file for kind, extension in
                 (("jsonl", "jsonl"), ("csv", "csv"), ("geojson", "geojson"), ("geoparquet", "parquet"))]  # fmt: skip
        secrets = [*TWIN, *(str(number)[:8] for place in TWIN.values() for number in place)]
        assert all(files)
        return any(secret.encode() in (content or b"") for content in files for secret in secrets)

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_with_the_sites_own_coordinates(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.rounding.centre", lambda cell: TWIN["north-pier"])
        assert self.leaks(lab)


class TestSideChannels:
    """Order of rows, IDs, times of day and the store itself leave no trace in the bytes."""

    def leaks(self, lab: Lab) -> bool:
        rows = draw(seed=1)
        random = np.random.default_rng(0)
        token = {row.rider: random.bytes(8).hex() for row in rows}
        shuffled = [rows[index] for index in random.permutation(len(rows)).tolist()]
        hours = {row.rider: timedelta(hours=int(random.integers(-9, 9))) for row in rows}
        disguised = [replace(row, rider=token[row.rider], observed_at=(row.observed_at or RECENT) + hours[row.rider])
                     for row in shuffled]  # fmt: skip
        before, after = lab.release(rows), lab.release(disguised)
        assert before.rows
        return before.file != after.file

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    @pytest.mark.parametrize("what", ["clock", "digest of riders"])
    def test_it_succeeds_when_metadata_tell(self, lab: Lab, mutant: Mutant, what: str) -> None:
        from datetime import datetime

        line = ReleaseMetadata.line
        if what == "clock":
            mutant(
                "isuit.published.ReleaseMetadata.line",
                lambda self: line(self.model_copy(update={"citation": datetime.now().isoformat()})),
            )
        else:
            made = "isuit.release.eligibility.Outcomes.of_rows"
            from isuit.release import eligibility

            seen: list[str] = []
            original = eligibility.Outcomes.of_rows

            def remembered(self: Any, chosen: Any) -> Any:
                seen[:] = [str(hash(self.riders))]
                return original(self, chosen)

            mutant(made, remembered)
            mutant(
                "isuit.published.ReleaseMetadata.line",
                lambda self: line(self.model_copy(update={"citation": seen[0]})),
            )
        assert self.leaks(lab)


class TestOrderOfRows:
    """The order of rows does not tell which were carried forward and which computed again."""

    def leaks(self, lab: Lab) -> bool:
        rows = draw(seed=1)
        store = lab.store(rows)
        assert lab.export(store).rows
        lab.fit(store, [*rows, *draw(12, 6, tag="new", seed=71, low=12.0, high=23.9)])
        second = lab.export(store, SECOND)
        places = [row["metric"] for row in second.rows]
        return places != sorted(places)

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_rows_come_as_they_are_made(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{RELEASE}.in_order", lambda rows: rows)
        assert self.leaks(lab)


class TestFloatDigits:
    """No digit beyond the rounding is in a row: a full-precision curve gives one rider's outcomes away exactly."""

    def leaks(self, lab: Lab) -> bool:
        released = lab.release(draw(26, seed=1))
        assert released.rows
        for row in released.rows:
            if row["difficulty"] is not None and (row["difficulty"] / 0.25) % 1:
                return True
            if row["difficulty_se"] is not None and len(f"{row['difficulty_se']:.12f}".strip("0.")) > 2:
                return True
        return False

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    @pytest.mark.parametrize("rule", ["to_step", "to_two_digits"])
    def test_it_succeeds_without_rounding(self, lab: Lab, mutant: Mutant, rule: str) -> None:
        mutant(f"isuit.release.rounding.{rule}", lambda value, step=None: value)
        assert self.leaks(lab)


class TestTotals:
    """Neither the number of riders nor of outcomes is in a release."""

    def leaks(self, lab: Lab) -> bool:
        rows = draw(27, 17, seed=1)
        released = lab.release(rows)
        numbers = {27, 27 * 17, sum(row.outcome for row in rows)}
        return bool(numbers & set(_numbers([released.rows, released.metadata])))

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_totals_are_told(self, lab: Lab, mutant: Mutant) -> None:
        line = ReleaseMetadata.line

        def with_total(self: Any) -> str:
            return line(self.model_copy(update={"rows": 27}))

        mutant("isuit.published.ReleaseMetadata.line", with_total)
        assert self.leaks(lab)


def _numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for part in value.values() for number in _numbers(part)]
    if isinstance(value, list):
        return [number for part in value for number in _numbers(part)]
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


@pytest.mark.long
class TestCanaries:
    """No rider's ID is in rows, metadata, answers, errors, explanations, pictures or Parquet footers."""

    CANARY = "canary-7f3a"

    def leaks(self, lab: Lab) -> bool:
        rows = draw(seed=1, tag=self.CANARY)
        store = lab.store(rows)
        said: list[bytes] = []
        for kind, extension in (("jsonl", "jsonl"), ("csv", "csv"), ("geojson", "geojson"), ("geoparquet", "parquet")):
            answer = lab.export(store, FIRST, "--format", kind, "--explain", extension=extension)
            assert answer.code == 0
            said += [answer.file or b"", answer.out.encode(), answer.err.encode()]
        said += [path.read_bytes() for path in lab.directory.glob("*.metadata.json")]
        refused = lab.release(draw(4, tag=self.CANARY), options=("--gate", "core"))
        assert refused.code == 3
        said += [refused.out.encode(), refused.err.encode(), lab.export(store, FIRST, "--k", "3").err.encode()]
        picture = lab.path("picture.svg")
        fit = lab.isuit("fits", "--store", store).out.split()[0]
        assert lab.isuit("show", fit, "--store", store, "--plot", picture).code == 0
        said.append(picture.read_bytes())
        return any(self.CANARY.encode() in text or self.CANARY.upper().encode() in text for text in said)

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert not self.leaks(lab)

    def test_it_succeeds_when_a_reason_names_someone(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.service.releases._nothing_qualifies", lambda explanation, policy: f"{self.CANARY}-001 is alone")
        assert self.leaks(lab)

    def test_it_succeeds_when_a_footer_names_someone(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.files.METADATA_KEY", self.CANARY.encode())
        assert self.leaks(lab)
