"""The parameters by which lists are narrowed."""

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
"""Parameters that every list has."""

MAX_NUMBER = 2**63 - 1

_YEARS = range(1970, 9999)
"""Those with which Python can count on and back without leaving its calendar."""


class Filter(NamedTuple):
    """A parameter.

    look_up: what is compared, in Django's words.
    read: makes a value of the text, or raises ValueError saying what is wrong.
    kind: its type in the OpenAPI document.
    """

    look_up: str
    read: Callable[[str], Any]
    kind: type
    description: str
    choices: tuple[str, ...] = ()


def words(look_up: str, description: str) -> Filter:
    """Return a filter by a text, compared as a whole."""
    return Filter(look_up, _text, str, description)


def address(look_up: str, description: str) -> Filter:
    """Return a filter by an e-mail address, in the form in which there is one of it."""

    def read(text: str) -> str:
        return User.objects.normalize_email(_text(text))

    return Filter(look_up, read, str, description)


def whole(look_up: str, description: str) -> Filter:
    """Return a filter by a number such as an id."""
    return Filter(look_up, read_number, int, description)


def yes_or_no(look_up: str, description: str) -> Filter:
    """Return a filter by `true` or `false`."""
    return Filter(look_up, _boolean, bool, description)


def moment(look_up: str, description: str) -> Filter:
    """Return a filter by a date and time of ISO 8601."""
    return Filter(look_up, read_moment, datetime, description)


def one_of(look_up: str, choices: list[str], description: str) -> Filter:
    """Return a filter by one of some words."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"One of {', '.join(choices)}.")
        return text

    return Filter(look_up, read, str, description, tuple(choices))


def read_filters(request: Request, filters: Mapping[str, Filter]) -> dict[str, Any]:
    """Return what a queryset is to be filtered by.

    Raises: ValidationError for what makes no sense, and for unknown parameters.
    """
    values, faults = {}, {}
    for name, text in request.query_params.dict().items():
        if name in filters:
            try:
                values[filters[name].look_up] = filters[name].read(text)
            except ValueError as error:
                faults[name] = [str(error)]
        elif name not in OF_PAGES:
            faults[name] = ["There is no such parameter."]
    if faults:
        raise ValidationError(faults)
    return values


def described(filters: Mapping[str, Filter]) -> list[OpenApiParameter]:
    """Return the parameters as the OpenAPI document has them."""
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
    """Return a moment of ISO 8601 with its offset from UTC. Raises: ValueError."""
    try:
        # A plus sign that was not percent-encoded has become a space.
        found = parse_datetime(text.replace(" ", "+"))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or found.year not in _YEARS:
        raise ValueError("A date and time such as 2026-11-21T00:00:00Z.")
    return found


def read_number(text: str) -> int:
    """Return a number such as an id. Raises: ValueError."""
    digits = text.lstrip("0") or "0"
    is_number = text.isascii() and text.isdecimal()
    if not is_number or len(digits) > 19 or int(digits) > MAX_NUMBER:
        raise ValueError("A number, such as an id.")
    return int(digits)


def _text(text: str) -> str:
    if "\x00" in text:
        raise ValueError("NUL is in no text.")
    return text


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("true or false.")
    return text == "true"
