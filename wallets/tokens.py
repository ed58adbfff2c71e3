"""`POST /wallet/token`: a code becomes a connection token, a token a fresh one.

The form has `code` and, from a page, `code_verifier`; or it has the `token`. The answer is
`{"token": …}`. Of a page the browser names the origin; whoever names none is a program.
Errors are those of OAuth's token endpoint. No cookie is looked at, so there is nothing to
forge.
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
"""Code and verifier have less than 300."""


@csrf_exempt
@require_POST
@cache_control(no_store=True)
def exchange(request: HttpRequest) -> HttpResponse:
    """Answer with the token for a code, which is used up, or in place of a token."""
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
    """Return the origin that the browser names, None for none that could be paired."""
    try:
        return parse_origin(request.headers.get("Origin", ""))
    except ValueError:
        return None


def _refuse(error: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> HttpResponse:
    return JsonResponse({"error": error}, status=status)
