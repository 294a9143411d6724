"""The digest over a release's rows, and what a dimension's name tells about its metric.

A row is one line of JSON with its keys in the order of `isuit.published.ReleaseRow`; the digest of a release is the
SHA-256 of these lines, each ending in LF, so that `head -n -1 atlas.jsonl | sha256sum` computes it. Other formats carry
the same rows: read back into the model they give the same lines and the same digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import rfc8785


def lines_digest(lines: Iterable[str]) -> str:
    state = hashlib.sha256()
    for line in lines:
        state.update(line.encode() + b"\n")
    return state.hexdigest()


def metadata_digest(metadata: Mapping[str, Any]) -> str:
    """What the log's event of a release holds of its metadata: SHA-256 of their canonical JSON without the proof."""
    return hashlib.sha256(rfc8785.dumps({name: metadata[name] for name in metadata if name != "proof"})).hexdigest()


def with_proof(metadata: str, proof: Mapping[str, Any] | None) -> str:
    """The metadata as a file carries them: what is recorded, and the proof that it is."""
    if proof is None:
        return metadata
    about = json.loads(metadata) | {"proof": proof}
    return json.dumps(about, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


# Dimensions by the names that cohorts and expert profiles give them: CF standard name of each.
_STANDARD_NAMES = {
    "wind": "wind_speed",
    "wind_speed": "wind_speed",
    "gust": "wind_speed_of_gust",
    "wind_gust": "wind_speed_of_gust",
    "temperature": "air_temperature",
    "air_temperature": "air_temperature",
    "temp": "air_temperature",
    "apparent_temp": "apparent_air_temperature",
    "water_temp": "sea_surface_temperature",
    "water_temperature": "sea_surface_temperature",
    "wave": "sea_surface_wave_significant_height",
    "wave_height": "sea_surface_wave_significant_height",
    "wave_period": "sea_surface_wave_mean_period",
    "visibility": "visibility_in_air",
    "precipitation": "lwe_precipitation_rate",
    "swe": "lwe_thickness_of_surface_snow_amount",
    "snow_depth": "surface_snow_thickness",
    "humidity": "relative_humidity",
    "uv": "ultraviolet_index",
    "uv_index": "ultraviolet_index",
}
# Units that a dimension's name ends with, in UDUNITS.
_UNITS = {
    "kn": "knot",
    "kt": "knot",
    "ms": "m s-1",
    "kmh": "km h-1",
    "c": "degC",
    "m": "m",
    "km": "km",
    "mm": "mm",
    "mm_h": "mm h-1",
    "s": "s",
    "deg": "degree",
}


def described(dimension: str) -> tuple[str | None, str | None]:
    """CF standard name and units of a dimension, as far as its name tells them."""
    name = dimension.casefold().replace("-", "_").replace(" ", "_")
    for suffix, units in sorted(_UNITS.items(), key=lambda item: -len(item[0])):
        if name.endswith(f"_{suffix}"):
            return _STANDARD_NAMES.get(name.removesuffix(f"_{suffix}")), units
    return _STANDARD_NAMES.get(name), None
