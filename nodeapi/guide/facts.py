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
    traces = conf.trace_limits()
    return [
        Bound("Body of a request", _bytes(conf.max_body_bytes()), "MAX_BODY_BYTES"),
        Bound("Calls of a batch", f"{conf.max_batch_calls()}", "MAX_BATCH_CALLS"),
        Bound(
            "Results of a batch",
            _bytes(conf.max_batch_response_bytes()),
            "MAX_BATCH_RESPONSE_BYTES",
        ),
        Bound("Time of a request", f"{conf.request_timeout():g} s", "REQUEST_TIMEOUT"),
        Bound(
            "Time of a trace, until its first byte",
            f"{conf.slow_request_timeout():g} s",
            "SLOW_REQUEST_TIMEOUT",
        ),
        Bound(
            "Tracing a transaction again, without a timeout of your own",
            f"{conf.trace_timeout():g} s",
            "TRACE_TIMEOUT",
        ),
        Bound(
            "Executing a whole trace again", f"{traces.seconds:g} s", "TRACE_SECONDS"
        ),
        Bound(
            "Traces of one key that are executed at once",
            f"{traces.per_owner}",
            "TRACE_CONCURRENCY",
        ),
        Bound(
            "Requests a minute with keys that nobody has, from one address",
            f"{conf.failed_keys_per_minute() or 'any number'}",
            "FAILED_KEYS_PER_MINUTE",
        ),
        Bound("Answer of a trace", _bytes(traces.result_bytes), "TRACE_RESULT_BYTES"),
        Bound(
            "Recorded data of one transaction",
            _bytes(conf.record_limit_bytes()),
            "RECORD_LIMIT_BYTES",
        ),
    ]


def _bytes(size: int) -> str:
    """Return a size as people read it."""
    for unit, width in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= width and size % width == 0:
            return f"{size // width} {unit}"
    return f"{size} bytes"


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
    changes: list[str]


@cache
def releases() -> list[Release]:
    """Return what CHANGELOG.md says."""
    text = (settings.BASE_DIR / "CHANGELOG.md").read_text()
    found = []
    for part in text.split("\n## ")[1:]:
        name, _, rest = part.partition("\n")
        changes = [" ".join(one.split()) for one in re.split(r"^- ", rest, flags=re.M)]
        found.append(Release(name, [one for one in changes if one]))
    return found
