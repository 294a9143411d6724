"""A fit as it leaves the store."""

from __future__ import annotations

from pathlib import Path

from isuit.published import CurvePoint, FitDetail
from isuit.service import history


def test_points_that_are_not_validated_are_as_if_they_were(full_store: Path) -> None:
    for record in history.fits(full_store):
        detail = history.show(full_store, record.fit_id)
        rows = history.curves(full_store, record.fit_id).to_pylist()
        assert rows
        assert detail.curves == [CurvePoint.model_validate(row, strict=True) for row in rows]
        assert FitDetail.model_validate_json(detail.model_dump_json()) == detail
