"""Pictures say how many sites they draw, draw the same twice, and are in the look of the pages."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import isuit
from isuit import look
from isuit.errors import InputError
from isuit.published import Trajectory, TrajectoryDay, TrajectoryPoint
from isuit.service.history import curve_table, fits, show
from isuit.service.intervals import ENDS
from isuit.service.pictures import figure_of, plot_fit, plot_trajectory


def curves(sites: int) -> pa.Table:
    rows = []
    for number in range(sites + 1):
        site = None if number == 0 else f"site {number:02d}"
        for metric in (5.0, 10.0, 15.0):
            difficulty = (metric - 10) ** 2 / 25 + number * 0.1
            told = {"difficulty": difficulty, "difficulty_se": 0.1, "suitability": 0.5} | dict.fromkeys(ENDS)
            rows.append({"site": site, "metric": metric} | told)
    return pa.Table.from_pylist(rows)


def test_of_many_sites_six_are_drawn_and_it_says_so(full_store: Path, tmp_path: Path) -> None:
    record = fits(full_store)[0]
    told = plot_fit(record, curves(40), tmp_path / "many.svg", 400)
    assert told == "6 of 40 sites, from the hardest to the easiest"
    figure = figure_of(record, curves(40), 400)
    (legend,) = figure.legends
    assert legend.get_title().get_text() == told
    names = [text.get_text() for text in legend.get_texts()]
    assert names[0] == look.WORDS["shared"]
    assert (names[1], names[-1]) == ("site 40", "site 01")
    lines = figure.axes[0].get_lines()[1:]
    assert [line.get_color() for line in lines] == list(look.COMPARED)


def test_all_of_few_sites_are_drawn(full_store: Path, tmp_path: Path) -> None:
    shown = show(full_store, fits(full_store)[0].fit_id)
    for name in ("a.svg", "b.svg"):
        assert plot_fit(shown.fit, curve_table(shown), tmp_path / name, shown.cohort.outcomes) is None
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def point(number: int, **changes: object) -> TrajectoryPoint:
    values = {
        "fit_id": f"isuit-f1:{number:064x}", "cohort_hash": f"isuit-c1:{number:064x}", "activity": "kite",
        "dimension": "wind_kn", "observed_from": datetime(2024, number, 1),
        "observed_until": datetime(2024, number, 28),
        "skill_mean": 0.2 * number, "skill_sd": 0.2, "usable": True, "linked_mean": 0.2 * number, "linked_sd": 0.2,
        "drift": False, "moved": False, "note": None, "path": None,
    }  # fmt: skip
    return TrajectoryPoint(**(values | changes))


def test_a_trajectory_is_drawn(tmp_path: Path) -> None:
    found = Trajectory(points=[point(1), point(2, drift=True), point(3, linked_mean=None, linked_sd=None)])
    out = tmp_path / "trajectory.svg"
    plot_trajectory(found, out)
    text = out.read_text()
    assert look.COMPARED[1] in text  # the one that drifted
    first = out.read_bytes()
    plot_trajectory(found, out)
    assert out.read_bytes() == first
    with pytest.raises(InputError, match=r"\.png or \.svg"):
        plot_trajectory(found, tmp_path / "trajectory.bmp")


def test_a_path_within_a_cohort_is_drawn(tmp_path: Path) -> None:
    days = [TrajectoryDay(day=date(2024, 1, day), skill_mean=0.1 * day, skill_sd=0.2) for day in (1, 9, 28)]
    out = tmp_path / "trajectory.svg"
    plot_trajectory(Trajectory(points=[point(1)]), out)
    without = out.read_text()
    plot_trajectory(Trajectory(points=[point(1, path=days)]), out)
    assert out.read_text().count("PolyCollection") == without.count("PolyCollection") + 1


FEW = {"rider": ["a", "b", "a", "c", "b"], "metric": [5.0, 8.0, 12.0, 20.0, 25.0], "outcome": [1, 1, 0, 0, 1]}


def test_five_outcomes_draw_no_line() -> None:
    """Smoothing makes a steep curve of any five outcomes: only how little is known of it is drawn, and said."""
    fit = isuit.fit(FEW)
    below = fit.plot().axes[1]
    assert [line.get_linestyle() for line in below.get_lines()] == ["None"]
    [band] = below.collections
    assert np.ptp(band.get_paths()[0].vertices[:, 1]) > 0.99
    assert "5 outcomes are too few" in "".join(text.get_text() for text in below.texts)
    assert "5 outcomes are too few" in fit._repr_html_()
    curves = fit.curves.to_pandas()
    for metric in (5.0, 15.0, 25.0):
        told, point = fit.score(metric), curves[curves.metric == metric].iloc[0]
        assert [point[end] for end in ENDS] == pytest.approx([told.lower, told.upper])


def test_a_single_curve_has_its_band() -> None:
    """Of 60 outcomes of riders who came once, which is enough for a line."""
    metric = np.linspace(5, 25, 60)
    fit = isuit.fit({"rider": np.arange(60), "metric": metric, "outcome": (metric < 14) ^ (np.arange(60) % 4 == 0)})
    assert fit.kind == "single-curve"
    below = fit.plot().axes[1]
    assert [line.get_linestyle() for line in below.get_lines()] == ["-"]
    assert len(below.collections) == 1
    assert not below.texts
