"""Requires a recent login for decisions about dapps and keys."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth import logout
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from keys.accounts.logged_in import to_login

MAX_LOGIN_AGE = 12 * 60 * 60
"""Maximum age in seconds of a login. Afterwards, decisions require a new login."""

_MOMENT = "logged_in_at"
"""The session's key for the time of the login, in Unix seconds."""

_View = Callable[..., HttpResponseBase]


def store_login_time(request: HttpRequest, **_: Any) -> None:
    """Store the time of a login in the browser's session."""
    request.session[_MOMENT] = time.time()


def after_recent_login(view: _View) -> _View:
    """Redirect to the login page if the login is older than MAX_LOGIN_AGE."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if time.time() - request.session.get(_MOMENT, 0.0) > MAX_LOGIN_AGE:
            logout(request)
            return to_login(request)
        return view(request, *args, **kwargs)

    return checked
