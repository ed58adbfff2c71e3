"""Safe display of untrusted text: hidden characters are replaced by their numbers.

Invisible characters, and those that change the direction of writing, can make a text look
like another one. Long runs of combining marks cover the text around them and widen a
page, because lines do not break within them. Both are replaced: `⟨U+202E⟩`.
Source: https://www.unicode.org/reports/tr36/, https://www.unicode.org/reports/tr9/,
https://www.unicode.org/reports/tr39/#Optional_Detection
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import groupby

MAX_MARKS = 8
"""Combining marks on one base character. Burmese and Tibetan syllables have up to 6."""

_LAYOUT = frozenset("\n\t")
"""Control characters that look like what they are."""

_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Unicode's categories of characters that have no shape of their own."""

_EMPTY = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
).union(map(chr, range(0xE0100, 0xE01F0)))
"""Letters and marks that are drawn as nothing, whatever their category.
Source: Unicode, DerivedCoreProperties.txt, Default_Ignorable_Code_Point; and U+2800"""

_VARIANTS = frozenset(map(chr, range(0xFE00, 0xFE10)))
"""Variation selectors, which choose between two shapes of the sign before them. Emoji have
them; behind a letter or a space they change nothing and are hidden characters."""

_JOINERS = frozenset("\u200c\u200d")
"""ZWNJ and ZWJ."""

_VIRAMA = 9
"""The combining class of the marks that join the letters of Indic scripts."""


def visible(text: str) -> str:
    """Return a text with hidden characters and excess marks replaced by `⟨U+202E⟩`.

    Repetitions of a character are combined: `⟨U+202E ×3⟩`. Line breaks and tabs are kept.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _number(character, len(list(run))) if is_hidden else character * len(list(run))
        for (character, is_hidden), run in groupby(_look_at(text.replace("\r\n", "\n")))
    )


def hides_something(text: str) -> bool:
    """Return whether a text has hidden characters or too many combining marks."""
    return any(is_hidden for _, is_hidden in _look_at(text.replace("\r\n", "\n")))


def without_hidden(text: str) -> str:
    """Return a text without hidden characters and excess marks."""
    return "".join(
        character for character, is_hidden in _look_at(text) if not is_hidden
    )


def find_hidden_in_name(name: str) -> str | None:
    """Return the first character that is not allowed in a name, or None.

    Line breaks are not allowed. ZWNJ and ZWJ are allowed where they change the visible
    text: after an Indic virama, between letters of Arabic and related scripts, and ZWJ
    between two emoji. Flags made of tag characters are not allowed.
    Source: RFC 5892 A.1 and A.2, without joining types, which Python does not know
    """
    for place, (character, is_hidden) in enumerate(_look_at(name)):
        if character in _JOINERS and _joins(name, place):
            continue
        if is_hidden or character in _LAYOUT:
            return character
    return None


def _look_at(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each character, and whether it is invisible at its position."""
    before, marks = "", 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category[0] == "M" else 0
        if character in _LAYOUT:
            yield character, False
        elif character in _VARIANTS:
            yield character, not _takes_variant(before)
        else:
            is_hidden = category in _HIDDEN or character in _EMPTY
            yield character, is_hidden or marks > MAX_MARKS
        before = character


def _number(character: str, count: int) -> str:
    times = f" ×{count}" if count > 1 else ""
    return f"⟨U+{ord(character):04X}{times}⟩"


def _takes_variant(before: str) -> bool:
    """Return whether a character may have two shapes: a sign or a digit, as in emoji."""
    return before != "" and unicodedata.category(before)[0] in "SPN"


def _joins(text: str, place: int) -> bool:
    """Return whether a ZWNJ or ZWJ at this position changes the rendering."""
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    if not before or not after:
        return False
    if unicodedata.combining(before) == _VIRAMA:
        return True
    if unicodedata.bidirectional(before) == unicodedata.bidirectional(after) == "AL":
        return True
    is_emoji = unicodedata.category(before)[0] == "S" or before in _VARIANTS
    return text[place] == "\u200d" and is_emoji and unicodedata.category(after) == "So"
