"""The pages of the documentation, in the order in which they are read."""

from __future__ import annotations

from typing import NamedTuple


class Page(NamedTuple):
    """A page: its name among the addresses of `docs`, and its title."""

    name: str
    title: str


PAGES = [
    Page("index", "Quickstart"),
    Page("authentication", "Authentication"),
    Page("networks", "Networks, methods, tracers"),
    Page("console", "Try-it console"),
    Page("limits", "Limits and credits"),
    Page("errors", "Errors"),
    Page("rotation", "Rotate a key"),
    Page("wallet", "The wallet"),
    Page("management", "Management API"),
    Page("changelog", "Changelog"),
]


class Place(NamedTuple):
    """Where a reader is: the page, and those before and after it."""

    page: Page
    before: Page | None
    after: Page | None


def place_of(name: str) -> Place:
    """Return the place of a page that there is."""
    number = [page.name for page in PAGES].index(name)
    before = PAGES[number - 1] if number else None
    after = PAGES[number + 1] if number + 1 < len(PAGES) else None
    return Place(PAGES[number], before, after)
