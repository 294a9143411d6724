"""A store in private mode, through the command line: the ledger of its budget, and what reaches a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h3
import numpy as np
import pytest
from release_lab import FIRST, SECOND, Answer, Lab, Mutant, draw

from isuit.release.private import releasing
from isuit.release.private.contributions import Entries

TOPIC = {"activity": "kitesurfing", "dimension": "wind_speed_kn", "lower": 0, "width": 4, "bins": 9}
SERVICE = "isuit.service.private_releases"


def policy(releases: int = 2, **topic: Any) -> dict[str, Any]:
    return {"private": {"epsilon": 4.0, "delta": 1e-6, "releases": releases, "topics": [{**TOPIC, **topic}]}}


def private_store(lab: Lab, releases: int = 2) -> Path:
    """Sixty riders: by the noise of epsilon 4 in two releases never fewer than ten."""
    return lab.store(draw(60, 12, seed=1), policy=policy(releases))


def events(lab: Lab, store: Path, kind: str) -> list[dict[str, Any]]:
    import duckdb

    with duckdb.connect(str(store / "store.duckdb"), read_only=True) as connection:
        found = connection.execute("SELECT payload FROM ledger.log WHERE kind = ? ORDER BY sequence", [kind])
        return [json.loads(payload) for (payload,) in found.fetchall()]


class TestARelease:
    def test_it_says_what_it_promises_and_holds_no_proof_made_of_outcomes(self, lab: Lab) -> None:
        store = private_store(lab)
        file = lab.path("atlas.jsonl")
        answer = lab.isuit("export-atlas", "--store", store, "--out", file, "--release", FIRST, "--explain")
        assert answer.code == 0, answer.err
        *rows, about = map(json.loads, file.read_text().splitlines())
        assert len(rows) == 9
        assert all(row["expert_difficulty"] is None and row["h3"] == "global" for row in rows)
        assert about["private"]["epsilon"] == 4.0
        assert about["private"]["rho"] == pytest.approx(about["private"]["budget"] / 2, rel=1e-6)
        assert "private" not in about["policy"]
        assert "proof" not in about
        assert "spent to 1 of 2" in answer.err
        assert lab.isuit("check-release", file).code == 0
        assert lab.isuit("verify", "--store", store).code == 0
        again = lab.isuit("rederive", FIRST, "--store", store, "--json")
        assert json.loads(again.out)["verdict"] == "identical"

    def test_the_same_date_is_written_again_and_neither_drawn_nor_charged(self, lab: Lab) -> None:
        store = private_store(lab)
        once, twice = lab.export(store), lab.export(store)
        assert once.file == twice.file is not None
        assert len(events(lab, store, "budget-charged")) == 1

    def test_noise_is_fresh_in_every_store(self, lab: Lab) -> None:
        store = private_store(lab)
        other = lab.copy(store)
        assert lab.export(store).rows != lab.export(other).rows

    def test_rows_follow_from_sums_and_declarations_alone(self, lab: Lab) -> None:
        """Not a digit of a fit: the sums on record give the file, without any outcome."""
        from datetime import date

        from isuit.release.policy import policy_of

        store = private_store(lab)
        released = lab.export(store)
        [charged] = events(lab, store, "budget-charged")
        made = releasing.draft(charged["sums"], date.fromisoformat(FIRST), policy_of(policy()), {})
        assert [json.loads(row.line()) for row in made.rows] == released.rows

    def test_erasure_leaves_the_release_and_the_ledger_as_they_are(self, lab: Lab) -> None:
        store = private_store(lab)
        before = lab.export(store)
        lab.opt_out(store, "rider-007")
        assert lab.export(store).file == before.file
        assert lab.isuit("verify", "--store", store).code == 0
        again = lab.isuit("rederive", FIRST, "--store", store, "--json")
        assert json.loads(again.out)["verdict"] == "identical"


class TestBudget:
    """Releases beyond the budget: each would take more of the noise away."""

    def third(self, lab: Lab) -> Answer:
        store = private_store(lab)
        assert lab.export(store, FIRST).code == 0
        assert lab.export(store, SECOND).code == 0
        return lab.export(store, "2026-07-01")

    def test_the_attack_fails(self, lab: Lab) -> None:
        answer = self.third(lab)
        assert answer.code == 3
        assert "privacy budget" in answer.err
        assert answer.err.strip().count("\n") == 0
        assert answer.file is None

    def test_it_succeeds_where_nothing_is_charged(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{SERVICE}.charge", lambda *_: None)
        assert self.third(lab).code == 0


class TestKilledBetweenTheFileAndTheCharge:
    """A release that is killed while its file is written, again and again: every file would have other noise."""

    def seen(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
        store = private_store(lab)
        written: list[list[str]] = []

        def killed(path: Path, kind: str, lines: list[str], *_: object) -> dict[Path, bytes]:
            written.append(lines)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("isuit.service.releases.files", killed)
            for _ in range(2):
                assert lab.export(store).file is None
        lines = lab.export(store).file
        assert lines is not None
        written.append(lines.decode().splitlines()[:-1])
        return written

    def test_the_attack_fails(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        first, *others = self.seen(lab, monkeypatch)
        assert all(lines == first for lines in others)

    def test_it_succeeds_where_the_charge_comes_with_the_record(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch, mutant: Mutant
    ) -> None:
        mutant(f"{SERVICE}.charge", lambda *_: None)
        first, *others = self.seen(lab, monkeypatch)
        assert all(lines != first for lines in others)


class TestDeclaration:
    @pytest.mark.parametrize(
        ("topic", "words"),
        [
            ({"cells": ["global", "871f1d489ffffff"]}, "stands alone"),
            ({"cells": ["somewhere"]}, "not an H3 cell"),
            ({"cells": ["861f1d48fffffff"]}, "another resolution"),
            ({"lower": 1.0}, "whole multiple"),
            ({"bins": 3}, "greater than or equal to 4"),
        ],
    )
    def test_what_cannot_be_meant_is_refused(self, lab: Lab, topic: dict[str, Any], words: str) -> None:
        file = lab.path("policy.json")
        file.write_text(json.dumps(policy(**topic)))
        answer = lab.isuit("init", "--store", lab.path("store"), "--policy", file)
        assert answer.code == 2
        assert words in answer.err

    def test_cells_that_nobody_visits_are_decided_by_noise_and_an_empty_store_releases_too(self, lab: Lab) -> None:
        """That there is nobody must not show: the release is drawn and charged as any other."""
        store, file = lab.path("store"), lab.path("policy.json")
        file.write_text(json.dumps(policy()))
        assert lab.isuit("init", "--store", store, "--policy", file).code == 0
        answer = lab.export(store)
        assert answer.code in (0, 3)
        assert len(events(lab, store, "budget-charged")) == 1
        if answer.code == 3:
            assert "by the count with noise" in answer.err

    def test_only_outings_in_declared_cells_go_in_and_each_into_its_own(self, lab: Lab, mutant: Mutant) -> None:
        places = {"alpha": (45.5004, 9.1007), "beta": (46.5, 7.25), "gamma": (36.01, -5.6)}
        rows = [row for n, site in enumerate(places) for row in draw(6 + n, 12, seed=n, site=site)]
        rows += draw(3, 12, seed=7, site="nowhere")
        cells = {site: h3.latlng_to_cell(*places[site], 7) for site in ("alpha", "beta")}
        seen: list[Entries] = []
        drawn = releasing.drawn
        mutant("isuit.release.private.releasing.drawn", lambda *given: seen.append(given[0]) or drawn(*given))
        lab.export(lab.store(rows, sites=places, policy=policy(cells=[*cells.values(), "871f1d489ffffff"])))
        [entries] = seen
        order = sorted([*cells.values(), "871f1d489ffffff"])
        number = np.bincount(entries.cell, minlength=3)
        assert {cell: int(count) for cell, count in zip(order, number, strict=True)} == {
            cells["alpha"]: 6 * 12,
            cells["beta"]: 7 * 12,
            "871f1d489ffffff": 0,
        }

    def test_the_operator_is_told_of_people_who_count_twice_and_nobody_is_refused(self, lab: Lab) -> None:
        rows = draw(12, 40, seed=1, low=0.0, high=36.0)
        store = lab.store(rows, policy=policy())
        lab.fit(store, rows, pseudonymised_in=lab.path("elsewhere"))
        answer = lab.export(store, FIRST, "--explain")
        assert "for whom this is true the guarantee is weaker: 24 of 24 riders" in answer.err
        assert len(events(lab, store, "budget-charged")) == 1

    def test_the_operator_is_told_of_a_topic_without_a_fit(self, lab: Lab) -> None:
        both = policy(releases=1)
        both["private"]["topics"].append({**TOPIC, "dimension": "wave_m"})
        answer = lab.export(lab.store(draw(60, 12, seed=1), policy=both), FIRST, "--explain")
        assert answer.code == 0, answer.err
        assert "kitesurfing, wave_m: the store has no fit of it, so its sums are noise alone" in answer.err
