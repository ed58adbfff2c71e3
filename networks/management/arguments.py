"""Arguments that several commands take, read with precise refusals."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.management.base import CommandError

from networks.models import Network, all_tracers


def read_networks(slugs: Iterable[str]) -> list[Network]:
    """Return the networks with these slugs, each once.

    Raises: CommandError naming the first that does not exist.
    """
    found = {n.slug: n for n in Network.objects.filter(slug__in=slugs)}
    for slug in slugs:
        if slug not in found:
            raise CommandError(f"there is no network {slug!r}")
    return list(found.values())


def read_tracers(text: str) -> list[str]:
    """Return the tracers that a list with commas names; `all` and `none` are words.

    Raises: CommandError naming the first that does not exist.
    """
    if text == "all":
        return all_tracers()
    names = [] if text == "none" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in all_tracers():
            known = ", ".join(all_tracers())
            raise CommandError(f"there is no tracer {name!r}; there are {known}")
    return names
