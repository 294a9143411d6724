"""One look: numbers that do not mislead, colours that the colour-blind tell apart, text that can be read."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from isuit import look

# Machado, Oliveira and Fernandes 2009, severity 1: what is left of linear RGB.
SIGHT = {
    "all": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    scaled = XYZ @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    x, y, z = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHT)
def test_compared_colours_differ(sight: str) -> None:
    seen = [lab(np.array(SIGHT[sight]) @ linear(colour)) for colour in look.COMPARED]
    assert min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2)) > 15  # 2.3 is just seen


@pytest.mark.parametrize("theme", [look.LIGHT, look.DARK], ids=["light", "dark"])
def test_text_can_be_read(theme: look.Theme) -> None:
    def bright(colour: str) -> float:
        return float(XYZ[1] @ linear(colour)) + 0.05

    for text in (theme.ink, theme.soft, theme.accent, theme.warm):
        for behind in (theme.card, theme.paper, theme.shade):
            low, high = sorted([bright(text), bright(behind)])
            assert high / low >= 4.5  # WCAG 2, AA


def test_the_scale_is_even_to_the_eye() -> None:
    lightness = [lab(linear(colour))[0] for colour in look.SCALE]
    assert all(a > b for a, b in pairwise(lightness))


def test_numbers() -> None:
    assert [look.number(v) for v in (0, 22.0, -0.00012345, 12345.678)] == ["0", "22", "−0.0001234", "12,346"]
    assert [look.signed(v) for v in (0.531, -0.531, -0.001)] == ["+0.53", "−0.53", "0.00"]
    assert [look.share(v) for v in (0, 0.004, 0.716, 0.999, 1)] == ["0 %", "< 1 %", "72 %", "> 99 %", "100 %"]
    assert [look.p_value(v) for v in (0.0, 0.00099, 0.012, 0.5)] == ["p < 0.001", "p < 0.001", "p = 0.012", "p = 0.50"]


def test_dimensions_in_words() -> None:
    assert look.axis("wind_kn") == "wind (kn)"
    assert look.axis("water_temp_c") == "water temp (°C)"
    assert look.axis("metric") == "metric"
