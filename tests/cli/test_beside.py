"""`isuit rank`, `compare` and `alias`, on one store of two fits."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import isuit as library
from isuit.domain import FitConfig
from isuit.service.fitting import fit

if TYPE_CHECKING:
    from conftest import Answer

HARDER = {"calm": -0.6, "middle": 0.0, "rough": 0.9}  # what each site adds to the difficulty


def sited_cohort(seed: int, riders: int = 60, outcomes: int = 30, harder: float = 0.0) -> pa.Table:
    random = np.random.default_rng(seed)
    skill = np.random.default_rng(1).standard_normal(riders)  # the same people, whatever the seed
    rider = np.repeat(np.arange(riders), outcomes)
    site = random.integers(0, 3, rider.size)
    metric = random.uniform(3, 35, rider.size)
    difficulty = ((metric - 18) / 8) ** 2 - 1 + np.array(list(HARDER.values()))[site] + harder
    outcome = random.random(rider.size) < 1 / (1 + np.exp(-2 * (skill[rider] - difficulty)))
    return pa.table(
        {
            "rider": [f"rider-{number:03d}" for number in rider],
            "metric": metric,
            "outcome": outcome.astype(np.int8),
            "site": [list(HARDER)[place] for place in site],
        }
    )


@pytest.fixture(scope="module")
def two_fits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    path = tmp_path_factory.mktemp("beside") / "store"
    config = FitConfig(activity="kitesurfing", dimension="wind")
    first = fit(path, sited_cohort(1), config).fit_id
    second = fit(path, sited_cohort(2, harder=0.5), config).fit_id
    return path, first, second


@pytest.fixture
def store(two_fits: tuple[Path, str, str], tmp_path: Path) -> Path:
    return Path(shutil.copytree(two_fits[0], tmp_path / "store"))


def test_sites_are_ranked_as_they_are(isuit: Callable[..., Answer], two_fits: tuple[Path, str, str]) -> None:
    path, first, _ = two_fits
    for condition in ((), ("--metric", "20")):
        ranked = isuit("rank", first, *condition, "--store", path, "--json").json
        assert [site["site"] for site in ranked["sites"]] == ["rough", "middle", "calm"]
        levels = [site["difficulty"] for site in ranked["sites"]]
        assert levels == sorted(levels, reverse=True)
        assert all(site["lower"] < site["difficulty"] < site["upper"] for site in ranked["sites"])
        assert all(site["harder_than_next"] > 0.95 for site in ranked["sites"][:2])
        assert ranked["sites"][2]["harder_than_next"] is None
    assert {site["metric"] for site in ranked["sites"]} == {20.0}
    lines = isuit("rank", first, "--store", path).out.splitlines()
    assert [line.split()[1] for line in lines] == ["rough", "middle", "calm"]
    assert lines[0].endswith("%")


def test_a_ranking_is_of_what_the_fit_has(isuit: Callable[..., Answer], two_fits: tuple[Path, str, str]) -> None:
    path, first, _ = two_fits
    outside = isuit("rank", first, "--metric", "99", "--store", path)
    assert (outside.code, "outside the observed range" in outside.err) == (2, True)
    plain = library.fit(sited_cohort(1).drop_columns(["site"]))
    with pytest.raises(library.IsuitError, match="no curves of sites"):
        plain.rank()


def test_a_single_curve_is_ranked_by_suitability() -> None:
    few = sited_cohort(3, riders=200, outcomes=2)
    single = library.fit(few)
    assert single.kind == "single-curve"
    ranked = single.rank(18)
    assert ranked.column("site").to_pylist()[0] == "rough"
    assert ranked.column("difficulty").null_count == 3
    shares = ranked.column("suitability").to_pylist()
    assert shares == sorted(shares)


@pytest.mark.long
def test_the_probability_of_the_order_is_not_overstated() -> None:
    """Of pairs of neighbours in rankings of cohorts with known sites, those told with p are right in at least p."""
    random = np.random.default_rng(5)
    told, right = [], []
    for seed in range(8):
        truth = random.normal(0, 0.25, 6)
        skill, rider = random.standard_normal(40), np.repeat(np.arange(40), 30)
        site, metric = random.integers(0, 6, rider.size), random.uniform(3, 35, rider.size)
        difficulty = ((metric - 18) / 8) ** 2 - 1 + truth[site]
        outcome = random.random(rider.size) < 1 / (1 + np.exp(-2 * (skill[rider] - difficulty)))
        found = library.fit(
            {
                "rider": rider.astype(str),
                "metric": metric,
                "outcome": outcome.astype(np.int8),
                "site": np.array([f"site-{place}" for place in site]),
            }
        )
        assert found.kind == "latent", seed
        ranked = found.rank(18.0).to_pylist()
        for above, below in pairwise(ranked):
            told.append(above["harder_than_next"])
            right.append(truth[int(above["site"][5:])] > truth[int(below["site"][5:])])
    # A binomial's three standard errors of what is told, one-sided: told too high by more than that fails.
    expected, spread = np.mean(told), np.sqrt(np.mean(np.array(told) * (1 - np.array(told))) / len(told))
    assert np.mean(right) > expected - 3 * spread


def test_two_fits_are_compared(isuit: Callable[..., Answer], two_fits: tuple[Path, str, str]) -> None:
    path, first, second = two_fits
    found = isuit("compare", first, second, "--store", path, "--json").json
    assert found["shared_riders"] == 60
    assert not found["same_cohort"]
    assert all(point["lower"] < point["difference"] < point["upper"] for point in found["points"])
    assert found["differing"] > 0
    assert {point["site"] for point in found["points"]} == {None, *HARDER}
    assert found["configuration"] == []
    names = {number["name"]: number for number in found["diagnostics"]}
    assert names["AIC"]["first"] == pytest.approx(
        -2 * names["log-likelihood"]["first"] + 2 * names["effective degrees of freedom"]["first"]
    )
    back = isuit("compare", second, first, "--store", path, "--json").json
    assert [point["difference"] for point in back["points"]] == [-point["difference"] for point in found["points"]]
    text = isuit("compare", first, second, "--store", path)
    assert "difficulty differs at" in text.out
    assert "AIC" in text.out


def test_two_fits_are_linked_by_the_riders_of_both() -> None:
    """The same people, and all of it harder by a whole standard deviation of skill."""
    one, two = (library.fit(sited_cohort(seed, harder=seed - 1.0).drop_columns(["site"])) for seed in (1, 2))
    linked = one.compare(two, linked=True)
    near = [point for point in linked.points if 10 < point.metric < 26]
    assert np.mean([point.difference for point in near]) == pytest.approx(1.0, abs=0.25)
    assert all(point.lower > 0 for point in near if point.lower is not None)
    strangers = sited_cohort(3).drop_columns(["site"])
    renamed = pa.array([f"other-{rider}" for rider in strangers.column("rider").to_pylist()])
    others = library.fit(strangers.set_column(0, "rider", renamed))
    with pytest.raises(library.IsuitError, match="0 riders with a usable skill"):
        one.compare(others, linked=True)


def test_a_comparison_says_what_was_asked_for_otherwise() -> None:
    table = sited_cohort(1)
    core, strict = library.fit(table), library.fit(table, gate="strict")
    changed = core.compare(strict)
    assert [(entry.name, entry.first, entry.second) for entry in changed.configuration] == [("gate", "core", "strict")]
    assert changed.same_cohort
    assert any("share outcomes" in note for note in changed.notes)
    with pytest.raises(library.IsuitError, match="one and the same"):
        core.compare(core)
    with pytest.raises(library.IsuitError, match="different activities or dimensions"):
        core.compare(library.fit(table, dimension="wave"))


def test_an_alias_names_a_fit_everywhere(
    isuit: Callable[..., Answer], store: Path, two_fits: tuple[Path, str, str]
) -> None:
    _, first, second = two_fits
    assert isuit("alias", "kite-2026", first, "--store", store).code == 0
    assert isuit("show", "kite-2026", "--store", store, "--json").json["fit"]["fit_id"] == first
    assert isuit("show", "kite-2026", "--store", store, "--json").json["aliases"] == ["kite-2026"]
    assert "kite-2026" in isuit("fits", "--store", store).out
    isuit("alias", "kite-2026", second, "--store", store)
    assert isuit("rank", "kite-2026", "--store", store, "--json").json["fit_id"] == second
    assert isuit("verify", "--store", store).code == 0
    removed = isuit("alias", "kite-2026", "--remove", "--store", store, "--json").json
    assert removed["aliases"] == []
    gone = isuit("show", "kite-2026", "--store", store)
    assert gone.code == 4, gone.err


@pytest.mark.parametrize("alias", ["deadbeef", "1st", "a b", "", "x" * 65, "isuit-f1:00"])
def test_what_could_be_an_id_is_no_alias(
    isuit: Callable[..., Answer], store: Path, two_fits: tuple[Path, str, str], alias: str
) -> None:
    answer = isuit("alias", alias, two_fits[1], "--store", store)
    assert (answer.code, "an alias is a letter" in answer.err) == (2, True)


def test_a_riders_id_is_no_alias(isuit: Callable[..., Answer], store: Path, two_fits: tuple[Path, str, str]) -> None:
    answer = isuit("alias", "RIDER-007", two_fits[1], "--store", store)
    assert (answer.code, "choose another alias" in answer.err, "007" in answer.err) == (2, True, False)


def test_verbose_tells_stages_and_nobody(isuit: Callable[..., Answer], store: Path) -> None:
    answer = isuit("--verbose", "verify", "--store", store)
    assert answer.code == 0
    assert "exit code 0" in answer.err
    assert "rider-" not in answer.err
    assert "exit code" not in isuit("verify", "--store", store).err, "it is not kept for the next command"
