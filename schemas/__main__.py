"""Write the published JSON Schemas beside this file: `python -m isuit.schemas`."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from isuit import published
from isuit.governance import release_format

# Every published schema by file name.
SCHEMAS: dict[str, type[BaseModel]] = {**published.SCHEMAS, **release_format.SCHEMAS}


def schema_text(name: str, model: type[BaseModel]) -> str:
    """A schema as published: JSON Schema 2020-12, as a reader of the JSON meets it."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"isuit/{name}"}
    return json.dumps(schema | model.model_json_schema(mode="serialization"), indent=2, ensure_ascii=False) + "\n"


def write(directory: Path) -> None:
    for name, model in SCHEMAS.items():
        (directory / f"{name}.schema.json").write_text(schema_text(name, model))


if __name__ == "__main__":
    write(Path(__file__).parent)
