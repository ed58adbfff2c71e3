"""Texts that strangers have written, shown so that nothing in them is hidden.

Characters that can't be seen, or that turn the direction of writing, make a text look
like another one. They are shown by their numbers.
Source: https://www.unicode.org/reports/tr36/, https://www.unicode.org/reports/tr9/
"""

from __future__ import annotations

import unicodedata

_LAYOUT = frozenset("\n\t")
"""Control characters that look like what they are."""

_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Unicode's categories of characters that have no shape of their own."""

_EMPTY = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
).union(map(chr, range(0xE0100, 0xE01F0)))
"""Letters and marks that are drawn as nothing, whatever their category. U+FE00 to U+FE0F,
which choose between two shapes of a sign before them, are in many emoji and can stay.
Source: Unicode, DerivedCoreProperties.txt, Default_Ignorable_Code_Point; and U+2800"""


def visible(text: str) -> str:
    """Return a text with each hidden character as `⟨U+202E⟩`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shape, text.replace("\r\n", "\n")))


def hides_something(text: str) -> bool:
    """Return whether a text has characters that can't be seen."""
    return any(map(_is_hidden, text.replace("\r\n", "\n")))


def _shape(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩" if _is_hidden(character) else character


def _is_hidden(character: str) -> bool:
    if character in _LAYOUT:
        return False
    return unicodedata.category(character) in _HIDDEN or character in _EMPTY
