"""Facts for the documentation pages: limits, API operations, releases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from django.conf import settings

from keys.api.documentation import document


class Bound(NamedTuple):
    """A limit of all keys, with the name of its setting."""

    what: str
    value: str
    setting: str


def bounds() -> list[Bound]:
    """Return the limits of all requests."""
    return [*_of_requests(), *_of_traces()]


def _of_requests() -> Iterator[Bound]:
    yield Bound(
        "Size of a request body",
        _bytes(settings.NODEAPI_MAX_BODY_BYTES),
        "MAX_BODY_BYTES",
    )
    yield Bound(
        "Calls in a batch", f"{settings.NODEAPI_MAX_BATCH_CALLS:,}", "MAX_BATCH_CALLS"
    )
    size = _bytes(settings.NODEAPI_MAX_BATCH_RESPONSE_BYTES)
    what = "Size of a batch's results, beyond which its other calls are rejected"
    yield Bound(what, size, "MAX_BATCH_RESPONSE_BYTES")
    yield Bound(
        "Logs that a search in several blocks can return",
        f"{settings.NODEAPI_MAX_LOGS:,}",
        "MAX_LOGS",
    )
    time = f"{settings.NODEAPI_REQUEST_TIMEOUT:g} s"
    yield Bound("Timeout of a request", time, "REQUEST_TIMEOUT")
    what = "Requests with invalid keys per minute, from one IP address"
    often = _or_no_limit(settings.NODEAPI_FAILED_KEYS_PER_MINUTE)
    yield Bound(what, often, "FAILED_KEYS_PER_MINUTE")
    yield Bound("Gas of one call", _or_no_limit(settings.NODEAPI_CALL_GAS), "CALL_GAS")
    yield Bound(
        "Execution time of one call",
        f"{settings.NODEAPI_CALL_TIMEOUT:g} s",
        "CALL_TIMEOUT",
    )
    waiting = f"{settings.NODEAPI_CALL_CONCURRENCY:,}"
    what = "Queued calls of one key"
    yield Bound(what, waiting, "CALL_CONCURRENCY")


def _of_traces() -> Iterator[Bound]:
    what = "Timeout of a trace, up to the first byte"
    yield Bound(
        what, f"{settings.NODEAPI_SLOW_REQUEST_TIMEOUT:g} s", "SLOW_REQUEST_TIMEOUT"
    )
    what = "Execution time per traced transaction, unless timeout is passed"
    yield Bound(what, f"{settings.NODEAPI_TRACE_TIMEOUT:g} s", "TRACE_TIMEOUT")
    what = "Execution time of a whole trace"
    yield Bound(what, f"{settings.NODEAPI_TRACE_SECONDS:g} s", "TRACE_SECONDS")
    what = "Concurrent traces of one key"
    yield Bound(what, f"{settings.NODEAPI_TRACE_CONCURRENCY}", "TRACE_CONCURRENCY")
    size = _bytes(settings.NODEAPI_TRACE_RESULT_BYTES)
    yield Bound("Size of a trace", size, "TRACE_RESULT_BYTES")
    size = _bytes(settings.NODEAPI_RECORD_LIMIT_BYTES)
    what = "Call data of a transaction, beyond which it has no traces"
    yield Bound(what, size, "RECORD_LIMIT_BYTES")


def _or_no_limit(number: int) -> str:
    """Return a limit in which 0 means that there is none."""
    return f"{number:,}" if number else "no limit"


def _bytes(size: int) -> str:
    """Return a size with its unit, such as "5 MiB"."""
    for unit, width in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= width and size % width == 0:
            return f"{size // width} {unit}"
    return f"{size:,} bytes"


class Operation(NamedTuple):
    """An operation of the management API."""

    method: str
    path: str
    scope: str
    summary: str
    fields: list[str]
    """The fields of its body, or its query parameters."""


def operations() -> list[Operation]:
    """Return every operation of the management API, ordered by path."""
    return list(_operations())


def _operations() -> Iterator[Operation]:
    described = document()
    schemas = described["components"]["schemas"]
    for path, item in described["paths"].items():
        for method, operation in item.items():
            fields = [
                one["name"]
                for one in operation.get("parameters", [])
                if one["in"] == "query"
            ]
            content = operation.get("requestBody", {}).get("content", {})
            reference = content.get("application/json", {}).get("schema", {})
            name = reference.get("$ref", "").rpartition("/")[2]
            fields += schemas.get(name, {}).get("properties", {})
            yield Operation(
                method.upper(), path, operation["x-scope"], operation["summary"], fields
            )


class Changes(NamedTuple):
    """The changes of one kind in a version."""

    kind: str
    """"Added", "Changed", "Fixed", …"""
    entries: list[list[str]]
    """Each entry is split at its backticks: every second piece is code."""


class Release(NamedTuple):
    """A version with its changes."""

    name: str
    """Its number and date, or "Unreleased"."""
    changes: list[Changes]


@cache
def releases() -> list[Release]:
    """Return the versions in CHANGELOG.md, the newest first."""
    text = (settings.BASE_DIR / "CHANGELOG.md").read_text()
    found = []
    for release in text.split("\n## ")[1:]:
        title, *kinds = release.split("\n### ")
        name = title.strip().replace("[", "").replace("]", "").replace(" - ", ", ")
        found.append(Release(name, [_changes(kind) for kind in kinds]))
    return found


def _changes(section: str) -> Changes:
    """Parse a section of CHANGELOG.md: its kind, and a list, perhaps in groups."""
    kind, _, rest = section.partition("\n")
    entries = re.findall(r"^- (.*(?:\n  .*)*)", rest, re.MULTILINE)
    return Changes(kind, [_plain(" ".join(entry.split())) for entry in entries])


def _plain(entry: str) -> list[str]:
    """Return the pieces of an entry, without links, and with names in quotation marks."""
    linkless = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", entry)
    pieces = linkless.split("`")
    pieces[::2] = [re.sub(r"\*(\w[^*]*)\*", r"“\1”", words) for words in pieces[::2]]
    return pieces
