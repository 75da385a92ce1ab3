"""The colours of text can be read on a dark and on a light terminal."""

from __future__ import annotations

import pytest
from rich.color import ColorType
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME

from amqpscope.report import painter

LEAST = 3.0
"""The contrast that a sign of interface needs (WCAG 2.2, 1.4.11)."""


def luminance(red: int, green: int, blue: int) -> float:
    """Relative luminance of an sRGB colour (WCAG 2.2)."""
    parts = [value / 255 for value in (red, green, blue)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", [name for name, style in painter._STYLES.items() if style])
def test_readable_on_black_and_on_white(name: str) -> None:
    """Any colour is one that terminals theme, but neither yellow nor white, or has contrast to both."""
    style = Style.parse(painter._STYLES[name])
    assert style.bgcolor is None
    if style.color is None:
        return
    if style.color.type is ColorType.STANDARD:
        assert style.color.name in ("red", "green", "blue", "magenta", "cyan")
        return
    light = luminance(*style.color.get_truecolor(DEFAULT_TERMINAL_THEME))
    assert (light + 0.05) / 0.05 >= LEAST
    assert 1.05 / (light + 0.05) >= LEAST
