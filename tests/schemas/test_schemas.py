"""The published schemas and the documented tables are those of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from isuit.schemas.__main__ import SCHEMAS, schema_text

from isuit.service import checks, history, stores
from isuit.store.query import rows

FOLDER = Path(__file__).parents[2] / "schemas"


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_schema_is_that_of_its_model(name: str) -> None:
    text = (FOLDER / f"{name}.schema.json").read_text()
    assert text == schema_text(name, SCHEMAS[name]), "run `python -m isuit.schemas`"
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
