"""The pages of the documentation, in reading order."""

from __future__ import annotations

from typing import NamedTuple


class Page(NamedTuple):
    """A page: its URL name in `docs`, and its title."""

    name: str
    title: str


PAGES = [
    Page("index", "Quickstart"),
    Page("authentication", "Authentication"),
    Page("networks", "Networks and methods"),
    Page("console", "Console"),
    Page("limits", "Limits and credits"),
    Page("errors", "Errors"),
    Page("rotation", "Roll a key"),
    Page("wallet", "Wallet API"),
    Page("management", "Management API"),
    Page("changelog", "Changelog"),
]


class Place(NamedTuple):
    """A page with its neighbours, for navigation."""

    page: Page
    before: Page | None
    after: Page | None


def place_of(name: str) -> Place:
    """Return a page with its neighbours. Raises: ValueError for an unknown name."""
    number = [page.name for page in PAGES].index(name)
    before = PAGES[number - 1] if number else None
    after = PAGES[number + 1] if number + 1 < len(PAGES) else None
    return Place(PAGES[number], before, after)
