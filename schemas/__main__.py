"""Write the published JSON Schemas beside this file: `make schemas`."""

from __future__ import annotations

from pathlib import Path

from isuit.published.schemas import SCHEMAS, schema_text


def write(directory: Path) -> None:
    for name in SCHEMAS:
        (directory / f"{name}.schema.json").write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).parent)
