"""`POST /wallet/token`: exchanges a code for a connection token, or renews a token.

The form has `code` and, from a page, `code_verifier`; or it has `token`. The response
is `{"token": …}`. A request with an Origin header comes from a page of that origin, one
without from a program. Errors are those of OAuth's token endpoint. Cookies are not
read, so there is no request forgery.
Source: RFC 6749 sections 5 and 6, RFC 7636
"""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from wallets.changes import Cause
from wallets.identity import parse_origin
from wallets.models import Actor
from wallets.services.pairing import (
    DappBlocked,
    IssuedToken,
    PairingRefused,
    redeem_page_code,
    redeem_program_code,
)
from wallets.services.tokens import renew_token

MAX_FORM_BYTES = 4096
"""Limit of the request body; code and verifier together have less than 300 bytes."""


@csrf_exempt
@require_POST
@cache_control(no_store=True)
def exchange(request: HttpRequest) -> HttpResponse:
    """Return the token for a code, which it consumes, or a new token for an old one."""
    response = _answer(request)
    origin = _origin(request)
    response["Vary"] = "Origin"
    if origin is not None:
        response["Access-Control-Allow-Origin"] = origin
    return response


def _answer(request: HttpRequest) -> HttpResponse:
    if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_FORM_BYTES:
        return _refuse("invalid_request", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    try:
        if token := request.POST.get("token"):
            secret = renew_token(secret=token, origin=request.headers.get("Origin"))
        elif request.POST.get("code"):
            secret = _redeem(request).secret
        else:
            return _refuse("invalid_request")
    except PairingRefused:
        return _refuse("invalid_grant")
    except DappBlocked:
        return _refuse("access_denied", HTTPStatus.FORBIDDEN)
    return JsonResponse({"token": secret})


def _redeem(request: HttpRequest) -> IssuedToken:
    code = request.POST["code"]
    cause = Cause(Actor.DAPP, request.META.get("REMOTE_ADDR") or None)
    if "Origin" not in request.headers:
        return redeem_program_code(code=code, cause=cause)
    verifier = request.POST.get("code_verifier", "")
    origin = _origin(request)
    return redeem_page_code(code=code, verifier=verifier, origin=origin, cause=cause)


def _origin(request: HttpRequest) -> str | None:
    """Return the origin of a page, None without an Origin header or for an invalid one."""
    try:
        return parse_origin(request.headers.get("Origin", ""))
    except ValueError:
        return None


def _refuse(error: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> HttpResponse:
    return JsonResponse({"error": error}, status=status)
