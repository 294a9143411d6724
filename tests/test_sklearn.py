"""isuit beside other models in scikit-learn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import isuit
from isuit.sklearn import LatentDifficulty


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_nothing_to_say() -> None:
    found = check_estimator(LatentDifficulty(), on_fail=None)
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
    assert sum(check["status"] == "passed" for check in found) > 40


@pytest.fixture(scope="module")
def frame(cohort_table: Callable[..., pa.Table]) -> pd.DataFrame:
    return cohort_table(5, riders=60, outcomes=30, sites=("north", "south"), timed=False).to_pandas()


def test_it_is_the_same_fit(frame: pd.DataFrame) -> None:
    model = LatentDifficulty(metric="metric", rider="rider", site="site").fit(frame, frame["outcome"])
    fit = isuit.fit(frame)
    assert model.kind_ == fit.kind == "latent"
    assert model.discrimination_ == pytest.approx(fit.discrimination, abs=1e-9)


def test_riders_and_sites_are_columns(frame: pd.DataFrame) -> None:
    """A known rider is predicted by their skill, somebody unknown by the population; row order changes nothing."""
    columns = ["metric", "rider", "site"]
    model = LatentDifficulty(metric="metric", rider="rider", site="site")
    assert clone(model).get_params() == model.get_params()
    model.fit(frame[columns], frame["outcome"])
    skills = isuit.fit(frame).skills.to_pandas().sort_values("skill_mean")
    asked = pd.DataFrame({"metric": 12.0, "rider": [skills.rider.iloc[0], "nobody", skills.rider.iloc[-1]]})
    asked["site"] = ["north", "nowhere", "north"]
    low, middle, high = model.predict_proba(asked)[:, 1]
    assert low < middle - 0.1 < high - 0.2
    shuffled = frame.sample(frac=1, random_state=1)
    again = clone(model).fit(shuffled[columns], shuffled["outcome"])
    np.testing.assert_array_equal(model.predict_proba(asked), again.predict_proba(asked))


def test_it_can_be_set_beside_a_model_without_riders(frame: pd.DataFrame) -> None:
    X, y = frame[["metric", "rider"]], frame["outcome"]
    # Not by class: a rider whose successes alone are kept back would seem unskilled.
    cv = KFold(3, shuffle=True, random_state=1)
    latent = cross_val_score(LatentDifficulty("metric", "rider"), X, y, scoring="neg_brier_score", cv=cv)
    squared = np.column_stack([frame.metric, frame.metric**2])
    logistic = cross_val_score(LogisticRegression(max_iter=1000), squared, y, scoring="neg_brier_score", cv=cv)
    assert latent.mean() > logistic.mean()
    by_rider = cross_val_score(
        LatentDifficulty("metric", "rider"), X, y, scoring="neg_brier_score", cv=GroupKFold(3), groups=frame.rider
    )
    assert by_rider.mean() == pytest.approx(logistic.mean(), abs=0.01), "riders nobody knows: the population"
