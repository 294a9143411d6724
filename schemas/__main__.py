"""Write the published JSON Schemas beside this file: `python -m isuit.schemas`."""

from __future__ import annotations

import json
from pathlib import Path

from isuit import published
from isuit.erasure import receipt
from isuit.published import Published
from isuit.release import format as release_format
from isuit.service import pseudonymising, riders

# Every published schema by file name.
SCHEMAS: dict[str, type[Published]] = {
    **published.SCHEMAS,
    **receipt.SCHEMAS,
    **release_format.SCHEMAS,
    **riders.SCHEMAS,
    **pseudonymising.SCHEMAS,
}


def schema_text(name: str, model: type[Published]) -> str:
    """A schema as published: JSON Schema 2020-12, as a reader of the JSON meets it."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"isuit/{name}"}
    return json.dumps(schema | model.model_json_schema(mode="serialization"), indent=2, ensure_ascii=False) + "\n"


def write(directory: Path) -> None:
    for name, model in SCHEMAS.items():
        (directory / f"{name}.schema.json").write_text(schema_text(name, model))


if __name__ == "__main__":
    write(Path(__file__).parent)
