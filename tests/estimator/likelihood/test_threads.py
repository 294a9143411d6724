"""Linear algebra runs on one thread inside a fit, and as it did before outside."""

from __future__ import annotations

import importlib

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from isuit.domain import FloatArray, Observations
from isuit.estimator import fit
from isuit.estimator.model.basis import Spline, spline_for

fitting = importlib.import_module("isuit.estimator.fit")  # the package's attribute of that name is the function


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_a_fit_has_one_thread_and_gives_the_setting_back(
    reference: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    with threadpool_limits(2, user_api="blas"):
        before, inside = blas_threads(), set()

        def counted(metric: FloatArray) -> Spline:
            inside.update(blas_threads())
            return spline_for(metric)

        monkeypatch.setattr(fitting, "spline_for", counted)
        fit(reference, progress=lambda _, __: inside.update(blas_threads()))
        assert inside == {1}
        assert blas_threads() == before
