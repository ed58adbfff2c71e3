"""What browsers may do with our pages."""

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
"""Our style sheet, icon and forms; no script, from wherever, and no frame around it.
Source: https://www.w3.org/TR/CSP3/"""

SCRIPTED_POLICY = f"{CONTENT_SECURITY_POLICY}; script-src 'self'"
"""The same, and script files of this site, which may ask nobody anything."""

CALLING_POLICY = f"{SCRIPTED_POLICY}; connect-src 'self'"
"""The same, and they may ask this site."""

_View = Callable[..., HttpResponseBase]


def without_scripts(view: _View) -> _View:
    """Have browsers treat a view's pages as text: whatever is in it runs nothing."""
    return _with_policy(view, CONTENT_SECURITY_POLICY)


def with_own_scripts(view: _View) -> _View:
    """Let a view's pages run the script files of this site."""
    return _with_policy(view, SCRIPTED_POLICY)


def with_own_calls(view: _View) -> _View:
    """Let a view's pages run the script files of this site, and those ask this site."""
    return _with_policy(view, CALLING_POLICY)


def _with_policy(view: _View, policy: str) -> _View:
    @wraps(view)
    def restricted(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response["Content-Security-Policy"] = policy
        return response

    return restricted
