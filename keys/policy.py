"""HTTP headers that restrict what browsers do with our pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "style-src 'self'",
        "img-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
"""Permits our style sheet, icon and forms. Forbids scripts and framing.

Source: https://www.w3.org/TR/CSP3/"""

SCRIPTED_POLICY = f"{CONTENT_SECURITY_POLICY}; script-src 'self'"
"""Also permits script files of this site, which may not make requests."""

CALLING_POLICY = f"{SCRIPTED_POLICY}; connect-src 'self'"
"""Also permits the scripts to make requests to this site."""

_View = Callable[..., HttpResponseBase]


def without_scripts(view: _View) -> _View:
    """Forbid scripts on a view's pages."""
    return _with_policy(view, CONTENT_SECURITY_POLICY)


def with_own_scripts(view: _View) -> _View:
    """Permit script files of this site on a view's pages."""
    return _with_policy(view, SCRIPTED_POLICY)


def with_own_calls(view: _View) -> _View:
    """Permit script files of this site on a view's pages, and their requests to it."""
    return _with_policy(view, CALLING_POLICY)


def _with_policy(view: _View, policy: str) -> _View:
    @wraps(view)
    def restricted(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response["Content-Security-Policy"] = policy
        return response

    return restricted
