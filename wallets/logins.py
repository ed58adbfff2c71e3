"""The logged-in users of connections that stay open longer than a request.

Django's middleware checks a login at the start of a request only. It may also change
the session's key, which a socket can't pass on to the browser.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from keys.models import User


def users_by_session(keys: Collection[str]) -> dict[str, int]:
    """Return user ids by session key, for valid logins only.

    A key is missing if its session has expired, the user was deactivated, or the
    password was changed after the login.
    """
    live = Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    sessions = {row.session_key: row.get_decoded() for row in live}
    named = {key: _user_id(session) for key, session in sessions.items()}
    users = User.objects.filter(is_active=True).in_bulk(set(named.values()) - {0})
    return {
        key: user_id
        for key, user_id in named.items()
        if user_id in users and _is_of(sessions[key], users[user_id])
    }


def _user_id(session: Mapping[str, Any]) -> int:
    """Return the user id in a session's data, 0 without a login."""
    is_ours = session.get(BACKEND_SESSION_KEY) in settings.AUTHENTICATION_BACKENDS
    return int(session.get(SESSION_KEY, 0)) if is_ours else 0


def _is_of(session: Mapping[str, Any], user: User) -> bool:
    """Return whether a login was made with the user's present password."""
    shown = session.get(HASH_SESSION_KEY, "")
    good = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(shown, one) for one in good)
