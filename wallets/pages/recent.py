"""Whoever decides what a dapp may do has shown his password not too long ago."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth import logout
from django.contrib.auth.signals import user_logged_in
from django.contrib.auth.views import redirect_to_login
from django.dispatch import receiver
from django.http import HttpRequest
from django.http.response import HttpResponseBase

MAX_LOGIN_AGE = 12 * 60 * 60
"""Seconds after a log-in for which the browser is taken to be still the user's."""

_MOMENT = "logged_in_at"
"""Where a browser's session keeps when its log-in was, in Unix seconds."""

_View = Callable[..., HttpResponseBase]


@receiver(user_logged_in)
def remember(request: HttpRequest, **_: Any) -> None:
    """Note when a browser has logged in: its user knows only of the last of all."""
    request.session[_MOMENT] = time.time()


def after_recent_login(view: _View) -> _View:
    """Have the user log in again first when he did so long ago."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if time.time() - request.session.get(_MOMENT, 0.0) > MAX_LOGIN_AGE:
            logout(request)
            return redirect_to_login(request.get_full_path())
        return view(request, *args, **kwargs)

    return checked
