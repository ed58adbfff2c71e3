"""Requires a login. A form that is sent without one leads back to its page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.http import url_has_allowed_host_and_scheme

_View = Callable[..., HttpResponseBase]


def logged_in(view: _View) -> _View:
    """Redirect anonymous users to the login, which leads back; see `to_login`."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return to_login(request)
        return view(request, *args, **kwargs)

    return checked


def to_login(request: HttpRequest) -> HttpResponseBase:
    """Redirect to the login, and then to the page that was requested.

    After a form it is the page of the form, because the address of a form may accept no
    other request. The login page says that the form has to be sent again.
    """
    if request.method in ("GET", "HEAD"):
        return redirect_to_login(request.get_full_path())
    messages.error(
        request,
        "You were logged out, so nothing was changed. Log in, and send the form again.",
    )
    return redirect_to_login(_page_of_form(request))


def _page_of_form(request: HttpRequest) -> str:
    """Return the path of the page that contains the form, or the request's own path."""
    page = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(page, {request.get_host()}):
        return request.get_full_path()
    parts = urlsplit(page)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path
