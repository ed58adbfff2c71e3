"""A user who is deactivated is disconnected, whoever writes that and however."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection

from tests.support.service import test_database_url
from tests.support.wallet import BY_USER, new_user
from wallets.changes import DAPP_CHANNEL, USER_CHANNEL
from wallets.models import DappKind
from wallets.services.pairing import pair_dapp

pytestmark = pytest.mark.django_db(transaction=True)


def test_database_itself_tells_of_it() -> None:
    """It is written past all of the project's code, as by an operator in psql."""
    user, other = new_user(), new_user()
    dapps = [
        pair_dapp(user=one, kind=DappKind.WEB, ident=origin, cause=BY_USER)
        for one, origin in [
            (user, "https://p.example"),
            (user, "https://q.example"),
            (other, "https://p.example"),
        ]
    ]

    def told(change: str) -> set[tuple[str, str]]:
        """Return what is announced of a change of both users."""
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE keys_user SET {change} WHERE id = %s", [user.pk])
        return {(n.channel, n.payload) for n in listener.notifies(timeout=1)}

    with psycopg.connect(test_database_url(), autocommit=True) as listener:
        for channel in (DAPP_CHANNEL, USER_CHANNEL):
            listener.execute(f"LISTEN {channel}")
        everything = {
            *((DAPP_CHANNEL, str(dapp.pk)) for dapp in dapps[:2]),
            (USER_CHANNEL, str(user.pk)),
        }
        assert told("is_active = false") == everything
        assert told("is_active = false") == set()  # it was already
        assert told("email = 'other@example.org'") == set()
        assert told("is_active = true") == everything
