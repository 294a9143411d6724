"""The published schemas and the documented tables are those of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from isuit.published import ErasureReceipt
from isuit.published.schemas import SCHEMAS, schema_text
from isuit.service import checks, history, stores
from isuit.store.query import rows

FOLDER = Path(__file__).parents[2] / "schemas"


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_schema_is_that_of_its_model(name: str) -> None:
    text = (FOLDER / f"{name}.schema.json").read_text()
    assert text == schema_text(name), "run `make schemas`"
    jsonschema.Draft202012Validator.check_schema(json.loads(text))


def test_no_schema_is_left_over() -> None:
    assert {path.name for path in FOLDER.glob("*.json")} == {f"{name}.schema.json" for name in SCHEMAS}


def test_every_table_and_column_is_documented(full_store: Path) -> None:
    with stores.open_store(full_store) as store:
        found = rows(
            store.connection,
            "SELECT schema_name || '.' || table_name, column_name, schema_name = 'personal' FROM duckdb_columns() "
            "WHERE NOT internal AND database_name = current_database()",
        )
    documented = set()
    table = ""
    for line in (FOLDER / "tables.md").read_text().splitlines():
        if heading := re.match(r"### (\S+)", line):
            table = heading.group(1)
        elif (
            (cells := [cell.strip() for cell in line.split("|")])
            and len(cells) == 5
            and cells[1]
            not in (
                "column",
                "---",
            )
        ):
            documented.add((table, cells[1], cells[3] == "**yes**"))
    assert documented == {tuple(row) for row in found}


def test_a_newer_version_s_receipt_is_read_without_what_it_added() -> None:
    """An erasure that a newer version began is finished by this one, which then reads its receipt."""
    count = {"before": 3, "after": 1, "removed": 2}
    receipt = {
        "format": "isuit-erasure-receipt/1", "receipt_id": "0" * 32, "store_id": "s",
        "erased_at": "2026-01-01T00:00:00Z", "completed_at": "2026-01-01T00:00:01Z",
        "tool_version": "9", "duckdb_version": "2", "riders": 1,
        "tables": {"personal.outcomes": count}, "cohorts": [], "fits": [], "same_names": [], "suppressed": 1,
        "bundles_with_rows": 0, "bindings": [], "kept": [{"what": "a", "why": "b"}],
        "verification": {"method": [], "compared": {}}, "log_head_before": "0" * 64, "log_head": "1" * 64,
    }  # fmt: skip
    newer = json.loads(json.dumps(receipt))
    for part in (newer, newer["tables"]["personal.outcomes"], newer["kept"][0], newer["verification"]):
        part["added_later"] = "rider-0007"
    read = ErasureReceipt.model_validate_json(json.dumps(newer)).as_json()
    assert read == receipt
    jsonschema.validate(read, json.loads(schema_text("erasure-receipt")))
    with pytest.raises(jsonschema.ValidationError, match="added_later"):
        jsonschema.validate(newer, json.loads(schema_text("erasure-receipt")))


def test_what_the_store_says_fits_its_schema(full_store: Path) -> None:
    fits = history.fits(full_store)
    said = {
        "status": history.status(full_store),
        "fit-record": fits[0],
        "show": history.show(full_store, fits[0].fit_id),
        "verify": checks.verify(full_store),
    }
    for name, model in said.items():
        schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
        jsonschema.validate(model.model_dump(mode="json"), schema)
