"""One look: the colours, fonts, words and number formats of every page and picture.

The pages take them as custom properties of their style sheet (`style_sheet`) and as data of their scripts
(`for_script`), matplotlib's pictures as settings (`matplotlib_style`). Nothing else names a colour. `number`,
`signed` and `share` are written a second time in `pages/kit.js` alone, and a browser test holds the two together.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Theme:
    """The colours of a page by what they are for."""

    ink: str  # text
    soft: str  # text that is read second
    line: str  # rules and grids
    paper: str  # behind everything
    card: str  # behind a group
    accent: str  # what can be moved or pressed, and the one curve where there is one
    warm: str  # what wants attention
    sea: str
    land: str
    border: str
    shade: str  # where there are no data


LIGHT = Theme(
    ink="#17212b", soft="#52606d", line="#d5dbe1", paper="#f4f6f8", card="#ffffff", accent="#6f4391", warm="#a8480f",
    sea="#e3eef5", land="#f8f6f0", border="#b9b4a6", shade="#e6e9ec",
)  # fmt: skip
DARK = Theme(
    ink="#e9eef3", soft="#a9b6c2", line="#35424f", paper="#0f151b", card="#18212a", accent="#c7a6e6", warm="#f0a070",
    sea="#13202b", land="#26303a", border="#55626e", shade="#242e38",
)  # fmt: skip

# Up to six things compared with one another: Okabe and Ito's colours, which the colour-blind tell apart too, each with
# a dash of its own, for print and for who sees no colour.
COMPARED = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("", "7 3", "2 3", "10 3 2 3", "4 2", "12 4")
LEVELS = {"beginner": "#56b4e9", "intermediate": "#009e73", "expert": "#d55e00"}

# From kind to hard, and from likely to unlikely: bright is kind. Viridis, which is even to the eye, backwards.
SCALE = ("#fde725", "#90d743", "#35b779", "#21918c", "#31688e", "#443983", "#440154")

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
MONOSPACE = "ui-monospace, 'SF Mono', Menlo, 'DejaVu Sans Mono', monospace"

WORDS = {
    "difficulty": "difficulty (skill sd)",
    "suitability": "P(success)",
    "population": "the population",
    "shared": "all sites together",
    "single": "all outcomes",
    "band": "95 % band",
    "skill": "Skill of the person who asks",
    "incomparable": "not comparable",
    "saturated": "nearly everyone succeeds, or nearly no one",
    "nothing": "no number here",
}
BEYOND = 0.45  # standard error in skill sd from which an estimate is drawn as uncertain
MINUS = "\N{MINUS SIGN}"


# Units that the name of a dimension ends with, as people write them.
_UNITS = {
    "kn": "kn",
    "kt": "kn",
    "ms": "m/s",
    "kmh": "km/h",
    "c": "°C",
    "m": "m",
    "km": "km",
    "mm": "mm",
    "s": "s",
    "deg": "°",
}


def quantity(dimension: str) -> tuple[str, str]:
    """What a dimension's name says to a reader: `wind_kn` is wind, in kn; no unit where the name has none."""
    name, _, unit = dimension.rpartition("_")
    found = _UNITS.get(unit.casefold()) if name else None
    return (name if found else dimension).replace("_", " "), found or ""


def axis(dimension: str) -> str:
    """A dimension as the title of an axis: wind (kn)."""
    name, unit = quantity(dimension)
    return f"{name} ({unit})" if unit else name


def number(value: float, digits: int = 4) -> str:
    """A value to some significant digits, without an exponent: 22, 0.1235, 12,346."""
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{abs(value):,.{min(places, 12)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return (MINUS if value < 0 and text != "0" else "") + text


def signed(value: float, places: int = 2) -> str:
    """A difficulty or a skill, whose sign says on which side of the population's middle it is: +0.53."""
    text = f"{abs(value):.{places}f}"
    return text if float(text) == 0 else ("+" if value > 0 else MINUS) + text


def share(value: float, places: int = 0) -> str:
    """A probability: 71 %. Never 0 % or 100 % where it is neither."""
    least = 10.0**-places
    percent = 100 * value
    if 0 < percent < least:
        return f"< {least:.{places}f} %"
    if 100 - least < percent < 100:
        return f"> {100 - least:.{places}f} %"
    return f"{percent:.{places}f} %"


def p_value(value: float) -> str:
    """Never "p = 0"."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}" if value < 0.0995 else f"p = {value:.2f}"


def style_sheet() -> str:
    """The custom properties that `page.css` uses: light, dark where the reader's system is, light again on paper."""

    def properties(theme: Theme) -> str:
        return "".join(f"--{name}:{colour};" for name, colour in asdict(theme).items())

    fixed = "".join(f"--compared-{i}:{colour};" for i, colour in enumerate(COMPARED))
    fonts = f"--font:{FONT};--monospace:{MONOSPACE};"
    return (
        f":root{{color-scheme:light dark;{fixed}{fonts}{properties(LIGHT)}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{properties(DARK)}}}}}\n"
        f"@media print{{:root{{color-scheme:light;{properties(LIGHT)}}}}}\n"
    )


def for_script() -> dict[str, Any]:
    """What the pages' scripts draw with."""
    return {
        "compared": list(COMPARED), "dashes": list(DASHES), "scale": list(SCALE), "words": WORDS, "beyond": BEYOND,
    }  # fmt: skip


def matplotlib_style() -> dict[Any, Any]:
    """Settings of a picture. A fixed salt, so that the same fit gives the same bytes."""
    return {
        "svg.hashsalt": "isuit",
        "font.size": 10,
        "text.color": LIGHT.ink,
        "axes.edgecolor": LIGHT.soft,
        "axes.labelcolor": LIGHT.ink,
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": LIGHT.line,
        "grid.linewidth": 0.6,
        "xtick.color": LIGHT.soft,
        "ytick.color": LIGHT.soft,
        "legend.frameon": False,
        "legend.fontsize": 9,
        "figure.facecolor": LIGHT.card,
    }
