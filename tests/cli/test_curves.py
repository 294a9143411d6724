"""What `isuit fit` and `isuit show` print of the curves of few and of many sites."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from conftest import Answer

MANY = tuple(f"spot-{number:02d}" for number in range(14))
RANKED = re.compile(r"^  (spot-\d\d) +(\S+) (?:± (\S+))? +at (\S+)$", re.MULTILINE)
POINT = re.compile(r"^(all|\S*spot-\d\d) +\S+ +(?:[+-]\d\.\d\d|-) .* \d\.\d{3}(?: \(.*\))?$", re.MULTILINE)


@pytest.fixture
def fitted(
    isuit: Callable[..., Answer], tmp_path: Path, cohort_table: Callable[..., pa.Table]
) -> Callable[..., tuple[str, str]]:
    """A fit of a cohort at these sites; at `alone` are other riders, who go nowhere else."""

    def make(
        sites: tuple[str, ...], alone: tuple[str, ...] = (), riders: int = 60, outcomes: int = 40
    ) -> tuple[str, str]:
        table = cohort_table(7, riders=riders, outcomes=outcomes, sites=sites)
        for number, site in enumerate(alone):
            table = pa.concat_tables(
                [table, cohort_table(9, riders=4, outcomes=30, sites=(site,), tag=f"other{number}")]
            )
        pq.write_table(table, tmp_path / "cohort.parquet")
        said = isuit("fit", "--cohort", "cohort.parquet")
        assert said.code == 0, said.err
        return isuit("fits", "--json").json["fits"][0]["fit_id"], said.out

    return make


def points_of(text: str) -> dict[str, int]:
    """How many points of each curve were printed."""
    found: dict[str, int] = defaultdict(int)
    for name in POINT.findall(text):
        found[name] += 1
    return dict(found)


def test_few_sites_are_printed_whole(isuit: Callable[..., Answer], fitted: Callable[..., tuple[str, str]]) -> None:
    fit_id, said = fitted(MANY[:6])
    shown = isuit("show", fit_id)
    assert set(points_of(shown.out)) == {"all", *MANY[:6]}
    assert len(set(points_of(shown.out).values())) == 1
    for text in (said, shown.out):
        assert "from the hardest" not in text
    assert isuit("show", fit_id, "--all") == shown


def test_many_sites_are_ranked(isuit: Callable[..., Answer], fitted: Callable[..., tuple[str, str]]) -> None:
    fit_id, said = fitted(MANY)
    shown = isuit("show", fit_id)
    assert set(points_of(shown.out)) == {"all"}
    curves = isuit("show", fit_id, "--json").json["curves"]
    assert {point["site"] for point in curves} == {None, *MANY}
    easiest = {
        site: min((point for point in curves if point["site"] == site), key=lambda point: point["difficulty"])
        for site in MANY
    }
    order = sorted(MANY, key=lambda site: -easiest[site]["difficulty"])
    for text in (said, shown.out):
        assert "14 sites, from the hardest to the easiest" in text
        assert "difficulty (skill sd) at its easiest condition" in text
        assert "... 4 sites between ..." in text
        assert f"isuit show {fit_id[:21]} --site NAME" in text
        ranked = RANKED.findall(text)
        assert [site for site, *_ in ranked] == order[:5] + order[-5:]
        for site, level, band, metric in ranked:
            point = easiest[site]
            assert float(level) == pytest.approx(point["difficulty"], abs=0.005001)
            assert float(band) == pytest.approx(1.959964 * point["difficulty_se"], abs=0.005001)
            assert float(metric) == pytest.approx(point["metric"], rel=1e-3)
    assert isuit("show", fit_id[:21]).out == shown.out  # the name that the sentence gives is one


def test_sites_are_chosen(isuit: Callable[..., Answer], fitted: Callable[..., tuple[str, str]]) -> None:
    fit_id, _ = fitted(MANY)
    chosen = isuit("show", fit_id, "--site", "spot-03", "--site", "spot-11")
    assert set(points_of(chosen.out)) == {"spot-03", "spot-11"}
    assert "from the hardest" not in chosen.out
    everything = isuit("show", fit_id, "--all")
    assert set(points_of(everything.out)) == {"all", *MANY}
    assert set(chosen.out.splitlines()) < set(everything.out.splitlines())
    unknown = isuit("show", fit_id, "--site", "spot-03", "--site", "nowhere")
    assert (unknown.code, unknown.out) == (2, "")
    assert "no site of that name; --all lists the 14" in unknown.err
    both = isuit("show", fit_id, "--site", "spot-03", "--all")
    assert (both.code, "not both" in both.err) == (2, True)
    assert isuit("show", fit_id, "--site", "spot-03", "--json") == isuit("show", fit_id, "--json")


def test_sites_without_a_difficulty_are_counted(
    isuit: Callable[..., Answer], fitted: Callable[..., tuple[str, str]]
) -> None:
    alone = tuple(f"lone-spot-{number:02d}" for number in range(12))
    fit_id, said = fitted(MANY[:9], alone)
    for text in (said, isuit("show", fit_id).out):
        assert "21 sites, from the hardest to the easiest" in text
        assert "12 sites have no difficulty" in text
        assert {site for site, *_ in RANKED.findall(text)} == set(MANY[:9])
        assert "between" not in text
    shown = isuit("show", fit_id).out
    assert "12 cannot be compared: lone-spot-00, " in shown
    assert "lone-spot-09 and 2 more" in " ".join(shown.split())
    assert "lone-spot-10" not in shown


def test_a_single_curve_ranks_by_suitability(
    isuit: Callable[..., Answer], fitted: Callable[..., tuple[str, str]]
) -> None:
    fit_id, said = fitted(MANY, riders=200, outcomes=2)
    assert "single-curve" in said
    curves = isuit("show", fit_id, "--json").json["curves"]
    best = {site: max(point["suitability"] for point in curves if point["site"] == site) for site in MANY}
    ranked = RANKED.findall(isuit("show", fit_id).out)
    assert "suitability at its best condition" in said
    levels = [float(level) for _, level, *_ in ranked]
    assert levels == sorted(levels)
    assert levels == pytest.approx([best[site] for site, *_ in ranked], abs=5.001e-4)


FIVE = "rider,metric,outcome\na,5,1\nb,8,1\na,12,0\nc,20,0\nb,25,1\n"


def test_five_outcomes_are_not_told_as_a_sure_curve(isuit: Callable[..., Answer], tmp_path: Path) -> None:
    """Neither by `fit` nor by `show`: no sketch, and every point with an interval from almost 0 to almost 1."""
    (tmp_path / "five.csv").write_text(FIVE)
    said = isuit("fit", "--cohort", "five.csv")
    fit_id = isuit("fits", "--json").json["fits"][0]["fit_id"]
    shown = isuit("show", fit_id)
    for text in (said.out, shown.out):
        assert "5 outcomes are too few to draw a curve from (30 are needed)" in text
        assert "\N{FULL BLOCK}" not in text
    intervals = re.findall(r"^all .* \((\S+) to (\S+)\)$", shown.out, re.MULTILINE)
    assert len(intervals) == 101
    assert max(float(upper) - float(lower) for lower, upper in intervals) > 0.99
    assert min(float(upper) - float(lower) for lower, upper in intervals) > 0.9


def test_a_sketch_of_a_single_curve_says_how_sure_it_is(
    isuit: Callable[..., Answer], fitted: Callable[..., tuple[str, str]]
) -> None:
    _, said = fitted((), riders=60, outcomes=1)
    assert "single-curve" in said
    assert re.search(r"^suitability \(probability; its 95 % interval is up to 0\.\d\d wide\)$", said, re.MULTILINE)
