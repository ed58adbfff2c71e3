"""Query parameters that filter lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from keys.models import User

OF_PAGES = frozenset({"cursor", "page_size", "format"})
"""Parameters that every list accepts."""

MAX_NUMBER = 2**63 - 1

_YEARS = range(1970, 9999)
"""Accepted years. Arithmetic with such dates stays within Python's calendar."""


class Filter(NamedTuple):
    """A query parameter that filters a list.

    look_up: the field lookup of the queryset.
    read: parses the text, or raises ValueError with a message for the caller.
    kind: its type in the OpenAPI document.
    """

    look_up: str
    read: Callable[[str], Any]
    kind: type
    description: str
    choices: tuple[str, ...] = ()


def words(look_up: str, description: str) -> Filter:
    """Return a filter for an exact text."""
    return Filter(look_up, _text, str, description)


def address(look_up: str, description: str) -> Filter:
    """Return a filter for an email address, normalized like stored addresses."""

    def read(text: str) -> str:
        return User.objects.normalize_email(_text(text))

    return Filter(look_up, read, str, description)


def whole(look_up: str, description: str) -> Filter:
    """Return a filter for a whole number, such as an id."""
    return Filter(look_up, read_number, int, description)


def yes_or_no(look_up: str, description: str) -> Filter:
    """Return a filter for `true` or `false`."""
    return Filter(look_up, _boolean, bool, description)


def moment(look_up: str, description: str) -> Filter:
    """Return a filter for an ISO 8601 date and time."""
    return Filter(look_up, read_moment, datetime, description)


def one_of(look_up: str, choices: list[str], description: str) -> Filter:
    """Return a filter for one of several values."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"Must be one of {', '.join(choices)}.")
        return text

    return Filter(look_up, read, str, description, tuple(choices))


def read_filters(request: Request, filters: Mapping[str, Filter]) -> dict[str, Any]:
    """Return the queryset's filter arguments from the query parameters.

    Raises: ValidationError for malformed values and for unknown parameters.
    """
    values, faults = {}, {}
    for name, text in request.query_params.dict().items():
        if name in filters:
            try:
                values[filters[name].look_up] = filters[name].read(text)
            except ValueError as error:
                faults[name] = [str(error)]
        elif name not in OF_PAGES:
            faults[name] = ["Unknown parameter."]
    if faults:
        raise ValidationError(faults)
    return values


def described(filters: Mapping[str, Filter]) -> list[OpenApiParameter]:
    """Return the filters as parameters of the OpenAPI document."""
    return [
        OpenApiParameter(
            name,
            one.kind,
            description=one.description,
            enum=one.choices or None,
        )
        for name, one in filters.items()
    ]


def read_moment(text: str) -> datetime:
    """Parse an ISO 8601 date and time with an offset from UTC.

    Raises: ValueError if the text is malformed or has no offset.
    """
    try:
        # A plus sign that was not percent-encoded has become a space.
        found = parse_datetime(text.replace(" ", "+"))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or found.year not in _YEARS:
        raise ValueError("Must be a date and time such as 2026-11-21T00:00:00Z.")
    return found


def read_number(text: str) -> int:
    """Parse a whole number, such as an id. Raises: ValueError if it is malformed."""
    digits = text.lstrip("0") or "0"
    is_number = text.isascii() and text.isdecimal()
    if not is_number or len(digits) > 19 or int(digits) > MAX_NUMBER:
        raise ValueError("Must be a number, such as an id.")
    return int(digits)


def _text(text: str) -> str:
    if "\x00" in text:
        raise ValueError("NUL characters are not allowed.")
    return text


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("Must be true or false.")
    return text == "true"
