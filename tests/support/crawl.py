"""Finds every page: follows the links of pages, with the session of a visitor."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx
from django.urls import (
    NoReverseMatch,
    Resolver404,
    URLPattern,
    URLResolver,
    get_resolver,
    resolve,
    reverse,
)

DIFFERENT = frozenset({"wallet:signature"})
"""Views that have a different page for each kind of object. All are visited."""

_ELEMENTS = re.compile(r"<([a-z]\w*)\b([^<>]*)>")

_ATTRIBUTES = re.compile(r"""([a-z][\w-]*)(?:="([^"]*)")?""")

_NAMES_OF_FIELDS = re.compile(r"\b(?:app|column|dynamic|field|model|object)-\S+")
"""Classes by which Django's admin names what a page shows."""

_LINKS = re.compile(r"""<(?:a|link|script|img|form)\b[^>]*?\b(?:href|src)="([^"]*)\"""")


@dataclass(frozen=True)
class Found:
    """A requested address. name: name of its view, empty for a file."""

    address: str
    name: str
    answer: httpx.Response

    @property
    def is_page(self) -> bool:
        content = self.answer.headers.get("content-type", "")
        return bool(content.startswith("text/html"))

    @cached_property
    def kinds(self) -> set[str]:
        """Names, classes, types and names of attributes of the page's elements."""
        return {_kind_of(*found) for found in _ELEMENTS.findall(self.answer.text)}


def crawl(
    client: httpx.Client, starts: Iterable[str], within: str = "/"
) -> list[Found]:
    """Return the pages that can be reached from some addresses, one of each kind.

    A chain has thousands of transactions, whose pages have the same view.
    within: with what the addresses begin that are followed, those of files apart.
    A redirect is followed like a link, and counts as its target.
    """
    waiting = deque(starts)
    seen = set(waiting)
    kinds: set[object] = set()
    found: list[Found] = []
    while waiting:
        address = waiting.popleft()
        kind = _kind(address)
        if kind in kinds and view_name(address) not in DIFFERENT:
            continue
        kinds.add(kind)
        answer = client.get(address)
        if answer.is_redirect:
            links = [answer.headers["location"]]
        else:
            found.append(one := Found(address, view_name(address), answer))
            links = _LINKS.findall(answer.text) if one.is_page else []
        for link in _own(links, f"{client.base_url}".rstrip("/"), address):
            if link not in seen and link.startswith((within, "/static/")):
                seen.add(link)
                waiting.append(link)
    return found


def view_name(address: str) -> str:
    """Return the name of the view that answers at an address, "" if none does."""
    try:
        return resolve(urlsplit(address).path).view_name
    except Resolver404:
        return ""


def fixed_addresses(*left_out: str) -> set[str]:
    """Return the addresses of views that take no arguments.

    left_out: namespaces of views to omit.
    """
    found = set()
    for name in _names(get_resolver(), (), frozenset(left_out)):
        with suppress(NoReverseMatch):
            found.add(reverse(name))
    return found


def _names(
    resolver: URLResolver, around: tuple[str, ...], left_out: frozenset[str]
) -> Iterator[str]:
    for one in resolver.url_patterns:
        if isinstance(one, URLPattern):
            if one.name:
                yield ":".join((*around, one.name))
        elif one.namespace not in left_out:
            inner = (*around, one.namespace) if one.namespace else around
            yield from _names(one, inner, left_out)


def _kind(address: str) -> object:
    """Return a key that is equal for URLs that show the same kind of object."""
    parts = urlsplit(address)
    chosen = [key for key, _ in parse_qsl(parts.query)]
    # Filters of a list can be combined in thousands of ways.
    return view_name(address) or parts.path, chosen[0] if len(chosen) == 1 else bool(
        chosen
    )


def _kind_of(name: str, attributes: str) -> str:
    """Return what decides how an element looks and what it is for a screen reader."""
    found = dict(_ATTRIBUTES.findall(attributes))
    classes = sorted(set(_NAMES_OF_FIELDS.sub("", found.get("class", "")).split()))
    return f"{name} {classes} {found.get('type')} {found.get('role')} {sorted(found)}"


def _own(links: Iterable[str], base: str, page: str) -> Iterator[str]:
    """Yield the links within the site, without fragments."""
    for link in links:
        target = urljoin(base + page, unescape(link)).partition("#")[0]
        if target.startswith(base):
            yield target.removeprefix(base) or "/"
