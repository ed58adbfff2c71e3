"""What the documentation says that stands elsewhere: settings, addresses, releases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from django.conf import settings

from keys.api.schema import document
from nodeapi import conf


class Bound(NamedTuple):
    """Something that is limited for everybody, and the setting that says how."""

    what: str
    value: str
    setting: str


def bounds() -> list[Bound]:
    """Return what holds here for every request."""
    return [*_of_requests(), *_of_traces()]


def _of_requests() -> Iterator[Bound]:
    yield Bound("Body of a request", _bytes(conf.max_body_bytes()), "MAX_BODY_BYTES")
    yield Bound("Calls of a batch", f"{conf.max_batch_calls()}", "MAX_BATCH_CALLS")
    size = _bytes(conf.max_batch_response_bytes())
    yield Bound("Results of a batch", size, "MAX_BATCH_RESPONSE_BYTES")
    time = f"{conf.request_timeout():g} s"
    yield Bound("Time of a request", time, "REQUEST_TIMEOUT")
    what = "Requests a minute with keys that nobody has, from one address"
    often = f"{conf.failed_keys_per_minute() or 'any number'}"
    yield Bound(what, often, "FAILED_KEYS_PER_MINUTE")


def _of_traces() -> Iterator[Bound]:
    limits = conf.trace_limits()
    what = "Time of a trace, until its first byte"
    yield Bound(what, f"{conf.slow_request_timeout():g} s", "SLOW_REQUEST_TIMEOUT")
    what = "Tracing a transaction again, without a timeout of your own"
    yield Bound(what, f"{conf.trace_timeout():g} s", "TRACE_TIMEOUT")
    what = "Executing a whole trace again"
    yield Bound(what, f"{limits.seconds:g} s", "TRACE_SECONDS")
    what = "Traces of one key that are executed at once"
    yield Bound(what, f"{limits.per_owner}", "TRACE_CONCURRENCY")
    yield Bound("Answer of a trace", _bytes(limits.result_bytes), "TRACE_RESULT_BYTES")
    size = _bytes(conf.record_limit_bytes())
    yield Bound("Recorded data of one transaction", size, "RECORD_LIMIT_BYTES")


def _bytes(size: int) -> str:
    """Return a size as people read it."""
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
    """Of its body, or the parameters of its address."""


def operations() -> list[Operation]:
    """Return every operation, by path."""
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


class Release(NamedTuple):
    """A version, and what changed with it."""

    name: str
    changes: list[list[str]]
    """Each in pieces, of which every other one is code."""


@cache
def releases() -> list[Release]:
    """Return what CHANGELOG.md says."""
    text = (settings.BASE_DIR / "CHANGELOG.md").read_text()
    found = []
    for part in text.split("\n## ")[1:]:
        name, _, rest = part.partition("\n")
        changes = [" ".join(one.split()) for one in re.split(r"^- ", rest, flags=re.M)]
        found.append(Release(name, [one.split("`") for one in changes if one]))
    return found
