"""What a release's files are called, and which of their columns hold numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isuit.errors import InputError

if TYPE_CHECKING:
    from isuit.published.releases import Format

EXTENSIONS: dict[Format, str] = {
    "jsonl": "jsonl",
    "csv": "csv",
    "geoparquet": "parquet",
    "geojson": "geojson",
    "html": "html",
}
METADATA_KEY = b"isuit-atlas"  # in the footer of a GeoParquet
FLOATS = (
    *("latitude", "longitude", "metric", "metric_lower", "metric_upper", "difficulty", "difficulty_se"),
    "expert_difficulty",
)
INTEGERS = ("h3_resolution",)


def metadata_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.metadata.json")


def format_of(path: Path) -> Format:
    by_extension: dict[str, Format] = {f".{extension}": kind for kind, extension in EXTENSIONS.items()}
    by_extension |= {".ndjson": "jsonl", ".json": "geojson", ".geoparquet": "geoparquet"}
    kind = by_extension.get(path.suffix.lower())
    if kind is None:
        raise InputError(
            f"a release is a file that ends in {', '.join(f'.{name}' for name in EXTENSIONS.values())}; rename it so."
        )
    return kind
