"""The facts of the home page, which processes keep for some seconds."""

from __future__ import annotations

from guide import home, showcase


def forget_facts() -> None:
    """Make this process compute the facts of the home page again."""
    for computed in (showcase.heads, showcase.plans, showcase.trace, home.parts):
        computed.clear()
