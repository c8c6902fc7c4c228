"""Texts of the user's that a message quotes."""

from __future__ import annotations

# What ends a line, or does things to a terminal: the control characters of ASCII and Latin-1, and Unicode's own two.
_BREAKS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029), " ")


def one_line(text: str) -> str:
    """`text` with a blank for each character that would end the line or steer a terminal."""
    return text.translate(_BREAKS)
