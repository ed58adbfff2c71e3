"""Errors of the management API, as problem details.

Source: https://www.rfc-editor.org/rfc/rfc9457
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.core.exceptions import NON_FIELD_ERRORS
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import exception_handler, set_rollback

MEDIA_TYPE = "application/problem+json"


class Problem(NamedTuple):
    """A type of error: anchor in the documentation, HTTP status, title, cause and remedy."""

    slug: str
    status: int
    title: str
    when: str
    remedy: str


PROBLEMS = [
    Problem(
        "malformed",
        400,
        "Malformed request",
        "The body is not valid JSON.",
        "Send JSON in UTF-8.",
    ),
    Problem(
        "invalid",
        400,
        "Invalid request",
        "A field or parameter is invalid. The member errors names it, with the reason.",
        "Correct it.",
    ),
    Problem(
        "unauthenticated",
        401,
        "No valid token",
        "The token is missing, invalid, revoked or expired.",
        "Send the header Authorization with Bearer and a valid token.",
    ),
    Problem(
        "forbidden",
        403,
        "Not permitted",
        "The token lacks the scope, or its owner lacks the permission.",
        "Use a token with the scope of the operation, whose owner has the permission.",
    ),
    Problem(
        "not_found",
        404,
        "Not found",
        "The object does not exist.",
        "Check the path. The lists have the ids of all objects.",
    ),
    Problem(
        "method_not_allowed",
        405,
        "Method not allowed",
        "The path does not support the HTTP method.",
        "Use one of the methods in the header Allow.",
    ),
    Problem(
        "not_acceptable",
        406,
        "Not acceptable",
        "The requested format is not available.",
        "Send the header Accept with application/json, or leave it out.",
    ),
    Problem(
        "too_slow",
        408,
        "Request timeout",
        "The body did not arrive in time.",
        "Send the request again.",
    ),
    Problem(
        "conflict",
        409,
        "Conflict",
        "The request is valid, but the state of the object does not allow it.",
        "Read the object, and decide by its present state.",
    ),
    Problem(
        "too_large",
        413,
        "Body too large",
        "The body is longer than 1 MiB.",
        "Send less in one request.",
    ),
    Problem(
        "unsupported_media_type",
        415,
        "Unsupported media type",
        "The body is not JSON, or it is compressed.",
        "Send it with Content-Type: application/json, and without Content-Encoding.",
    ),
    Problem(
        "key_reused",
        422,
        "Idempotency key reused",
        "The Idempotency-Key was used for another request.",
        "Use a new one.",
    ),
    Problem(
        "throttled",
        429,
        "Too many requests",
        "The limit of requests is exceeded.",
        "Retry after the seconds in Retry-After.",
    ),
    Problem(
        "too_costly",
        503,
        "Took too long",
        "The query was ended.",
        "Request a shorter time span, or less detail.",
    ),
]
"""All types of errors."""

_BY_STATUS = {problem.status: problem for problem in reversed(PROBLEMS)}
_INVALID = next(problem for problem in PROBLEMS if problem.slug == "invalid")


class Conflict(exceptions.APIException):
    """Raised when the state of an object does not permit the change."""

    status_code = 409
    default_detail = "The state of the object does not allow this."


class KeyReused(exceptions.APIException):
    """Raised when an idempotency key was already used with a different request."""

    status_code = 422
    default_detail = "This Idempotency-Key was used for another request. Use a new one."


class TooCostly(exceptions.APIException):
    """Raised when a database query exceeds its time limit."""

    status_code = 503
    default_detail = (
        "The query took too long. Request a shorter time span, or less detail."
    )


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """Convert an exception to problem details.

    Return None for an unexpected exception, which becomes a 500.
    """
    if isinstance(error, DjangoValidationError):
        error = _of_services(error)
    response = exception_handler(error, context)
    if response is None:
        return None
    detail = getattr(error, "detail", None)
    if isinstance(error, exceptions.ValidationError):
        response.data = body(_INVALID, _INVALID.when, errors=_flat(error.detail))
    else:
        problem = _BY_STATUS.get(response.status_code, PROBLEMS[0])
        response.data = body(problem, _words(error, detail, problem))
    response.content_type = MEDIA_TYPE
    set_rollback()
    return response


def refusal(status: int, detail: str = "") -> bytes:
    """Return the problem details of a request whose body was not read, as JSON.

    detail: describes the error; "" for the description of all errors with this status.
    """
    problem = _BY_STATUS[status]
    return json.dumps(body(problem, detail or problem.when)).encode()


def body(problem: Problem, detail: str, **members: Any) -> dict[str, Any]:
    """Return problem details as a JSON object.

    detail: describes the error of this request. members: additional members.
    """
    return {
        "type": f"/docs/management#{problem.slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": detail,
        **members,
    }


def _words(error: Exception, detail: object, problem: Problem) -> str:
    known = isinstance(error, Http404 | DjangoPermissionDenied)
    return problem.when if known or detail is None else str(detail)


def _of_services(error: DjangoValidationError) -> exceptions.APIException:
    """Convert a service's error to an invalid field or to a conflict with the state."""
    if hasattr(error, "error_dict"):
        fields = error.message_dict
        if set(fields) != {NON_FIELD_ERRORS}:
            return exceptions.ValidationError(fields)
    return Conflict(" ".join(error.messages))


def _flat(detail: Any, path: str = "") -> dict[str, list[str]]:
    """Return error messages by field. `networks.1` is the second item of `networks`."""
    if isinstance(detail, Mapping):
        items = [(str(name), value) for name, value in detail.items()]
    elif all(isinstance(entry, str) for entry in detail):
        return {path or "body": [str(entry) for entry in detail]}
    else:
        items = [(str(number), value) for number, value in enumerate(detail)]
    found: dict[str, list[str]] = {}
    for name, value in items:
        if value:
            own = {NON_FIELD_ERRORS, api_settings.NON_FIELD_ERRORS_KEY}
            at = path if name in own else f"{path}.{name}".strip(".")
            found |= _flat(value, at)
    return found
