"""Idempotent requests, which clients can repeat if they did not receive the response.

Source: https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.utils import timezone
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from keys.api.problems import KeyReused
from keys.models import RepeatedRequest

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"

KEPT = timedelta(hours=24)
"""How long a response is stored for repeated requests."""

_SHAPE = re.compile(r"[\x21-\x7e]{1,255}")
_SWEPT = 100
"""Most expired responses that one request deletes. It exceeds 1, so the table shrinks.
"""

_Handler = Callable[..., Response]


def repeatable(handler: _Handler) -> _Handler:
    """Execute POST requests with the same `Idempotency-Key` only once.

    A repeated request that arrives while the first one is in progress waits for it.
    Error responses are not stored. Secrets are not stored: they are null in the
    repeated response.
    """

    @wraps(handler)
    def post(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = request.headers.get(HEADER)
        if key is None:
            return handler(view, request, *args, **kwargs)
        if not _SHAPE.fullmatch(key):
            raise ValidationError(
                {HEADER: "Must be 1 to 255 visible ASCII characters."}
            )
        fingerprint = _fingerprint(request)
        with transaction.atomic():
            _sweep()
            first, is_new = RepeatedRequest.objects.get_or_create(
                token=request.auth, key=key, defaults={"fingerprint": fingerprint}
            )
            if not is_new:
                return _again(first, fingerprint)
            response = handler(view, request, *args, **kwargs)
            first.status = response.status_code
            first.body = _without_secret(response.data)
            first.save()
        return response

    post.is_repeatable = True  # type: ignore[attr-defined]  # for the OpenAPI document
    return post


def _fingerprint(request: Request) -> str:
    """Return a hash of method, path and body, which is equal for equal requests."""
    whole = f"{request.method} {request.get_full_path()}\n".encode()
    return sha256(whole + request.body).hexdigest()


def _again(first: RepeatedRequest, fingerprint: str) -> Response:
    if first.fingerprint != fingerprint:
        raise KeyReused
    return Response(first.body, first.status, headers={REPLAYED: "true"})


def _without_secret(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "secret": None} if "secret" in body else dict(body)


def _sweep() -> None:
    """Delete some expired responses, except those that another request is deleting."""
    old = RepeatedRequest.objects.filter(at__lt=timezone.now() - KEPT)
    some = old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:_SWEPT]
    RepeatedRequest.objects.filter(pk__in=list(some)).delete()
