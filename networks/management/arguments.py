"""Parsing of command-line arguments that several commands share."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from networks.models import Network, all_tracers
from networks.validators import parse_headers


def read_headers(lines: Iterable[str]) -> dict[str, str]:
    """Parse HTTP headers, such as `Authorization: Bearer …`.

    Raises: CommandError for a line without a colon, and for a repeated name. Neither
        message contains a value.
    """
    try:
        return parse_headers(lines)
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error


def read_networks(slugs: Iterable[str]) -> list[Network]:
    """Return the networks with these slugs, without duplicates.

    Raises: CommandError naming the first slug that does not exist.
    """
    found = {n.slug: n for n in Network.objects.filter(slug__in=slugs)}
    for slug in slugs:
        if slug not in found:
            raise CommandError(f"there is no network {slug!r}")
    return list(found.values())


def read_tracers(text: str) -> list[str]:
    """Parse the names of tracers, separated by commas, or the word `all` or `none`.

    Raises: CommandError naming the first tracer that does not exist.
    """
    if text == "all":
        return all_tracers()
    names = [] if text == "none" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in all_tracers():
            known = ", ".join(all_tracers())
            raise CommandError(f"there is no tracer {name!r}; the tracers are {known}")
    return names
