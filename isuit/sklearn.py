"""isuit as an estimator of scikit-learn, to be set beside other models (`pip install isuit[sklearn]`).

    model = LatentDifficulty(metric="wind", rider="rider", site="spot")
    cross_val_score(model, frame[["wind", "rider", "spot"]], frame["outcome"], scoring="neg_brier_score")

It predicts outcomes of people, so that models can be compared: a known rider by the posterior of their skill, anybody
else by the population. Nothing is recorded. A decision takes a declared skill instead (`isuit.fit(...).score`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from isuit import estimator
from isuit.domain import NO_SITE, FitConfig, Observations
from isuit.errors import IsuitError

Labels = NDArray[Any]


class LatentDifficulty(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """P(outcome | rider, metric, site), as `isuit.fit` estimates it.

    `metric`, `rider` and `site` name columns of X, or number them; without riders every row is somebody else's and the
    model is the single curve. `gate` and `exposure` are those of `isuit fit`. After `fit`: `classes_`, `estimate_` (all
    that was found), `kind_`, `discrimination_`.

    >>> model = LatentDifficulty(metric="metric", rider="rider").fit(cohort, outcome)
    >>> model.kind_
    'latent'
    """

    def __init__(
        self,
        metric: Hashable = 0,
        rider: Hashable | None = None,
        site: Hashable | None = None,
        gate: str = "core",
        exposure: str = "independent",
    ) -> None:
        self.metric, self.rider, self.site, self.gate, self.exposure = metric, rider, site, gate, exposure

    def fit(self, X: Any, y: Any) -> Self:
        """Fit outcomes y of two classes; the greater one is a success."""
        metric, rider, site = self._columns(X, reset=True)
        if y is None:
            raise ValueError("LatentDifficulty requires y to be passed, but the target y is None")
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        if type_of_target(labels) != "binary":
            raise ValueError("Only binary classification is supported. The type of the target is not binary.")
        if labels.size != metric.size:
            raise ValueError(f"X has {metric.size} rows and y has {labels.size}: inconsistent numbers of samples.")
        self.classes_, outcome = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("LatentDifficulty needs 2 classes in y; the data have only one class.")
        riders, rider_code = np.unique(rider, return_inverse=True)
        sites, site_code = (None, None) if site is None else np.unique(site, return_inverse=True)
        # As a cohort's rows are ordered, so that the same rows give the same bits in any order.
        order = np.lexsort((outcome, metric, *(() if site_code is None else (site_code,)), rider_code))
        data = Observations(
            riders=tuple(riders.tolist()),
            rider=rider_code[order].astype(np.int32),
            metric=metric[order],
            outcome=outcome[order].astype(np.int8),
            sites=() if sites is None else tuple(sites.tolist()),
            site=None if site_code is None else site_code[order].astype(np.int32),
        )
        try:
            config = FitConfig(gate=self.gate, exposure=self.exposure)  # type: ignore[arg-type]  # checked there
            self.estimate_ = estimator.fit(data, config)
        except IsuitError as error:
            raise ValueError(str(error)) from None
        self.kind_, self.discrimination_ = self.estimate_.kind, self.estimate_.discrimination
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of both classes; a rider or a site that `fit` did not see counts as one of the population."""
        check_is_fitted(self)
        metric, rider, site = self._columns(X, reset=False)
        parameters = self.estimate_.parameters
        assert not isinstance(parameters, estimator.SurfaceParameters)  # `_columns` reads one metric
        place = {name: code for code, name in enumerate(parameters.sites) if name in parameters.bands}
        names: list[Any] = [None] * metric.size if site is None else site.tolist()
        where = np.array([place.get(name, NO_SITE) for name in names], dtype=np.int64)
        mean, sd = self._skill(rider)
        chance = np.zeros(metric.size)
        for node, weight in zip(estimator.NODES, estimator.WEIGHTS, strict=True):
            chance += weight * estimator.score_rows(parameters, metric, where, mean + sd * node).suitability
        return np.column_stack([1 - chance, chance])

    def predict(self, X: Any) -> Labels:
        """The likelier class."""
        chance = self.predict_proba(X)[:, 1]
        return np.asarray(self.classes_[(chance > 0.5).astype(int)])

    def _skill(self, rider: Labels) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and sd of each row's skill: the posterior of a known rider, else the population's."""
        known = self.estimate_.skills
        found = {} if known is None else dict(zip(known.riders, zip(known.mean, known.sd, strict=True), strict=True))
        pairs = np.array([found.get(name, (0.0, 1.0)) for name in rider.tolist()], dtype=np.float64)
        mean, sd = pairs.reshape(-1, 2).T
        return mean, sd

    def _columns(self, X: Any, reset: bool) -> tuple[NDArray[np.float64], Labels, Labels | None]:
        """Metric, rider and site of X; where no column is the rider's, every row has a rider of its own."""
        if self.rider is None and self.site is None:
            table = validate_data(self, X, reset=reset, dtype="numeric")
        else:
            table = validate_data(self, X, reset=reset, dtype=None)
        names = list(getattr(self, "feature_names_in_", range(table.shape[1])))
        metric = np.asarray(check_array(table[:, [self._place(self.metric, names)]], dtype=np.float64))[:, 0]
        rows = len(metric)
        if self.rider is None:
            rider = np.array([f"row {number:012d}" for number in range(rows)] if reset else [""] * rows, dtype=object)
        else:
            rider = _texts(table[:, self._place(self.rider, names)])
        return metric, rider, None if self.site is None else _texts(table[:, self._place(self.site, names)])

    def _place(self, column: Hashable, names: list[Any]) -> int:
        if column in names:
            return names.index(column)
        if isinstance(column, int) and 0 <= column < len(names):
            return column
        raise ValueError(f"X has no column {column!r}; it has {len(names)}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # It is one curve along one metric: on clouds of points in several dimensions it need not do well.
        tags.classifier_tags.poor_score = True
        if self.rider is not None or self.site is not None:
            tags.input_tags.string = True
        return tags


def _texts(column: Labels) -> Labels:
    return np.array([str(value) for value in column.tolist()], dtype=object)
