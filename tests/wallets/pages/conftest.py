from __future__ import annotations

import pytest
from django.test import Client

from tests.support.wallet import A1, A2, BY_USER, new_user, served_chains
from wallets.models import ConsentRequest, Dapp, DappKind
from wallets.scopes import ScopeObject
from wallets.services.accounts import add_account
from wallets.services.consent import request_session
from wallets.services.pairing import pair_dapp


class Person:
    """A user with two accounts in front of a browser, who knows the page P."""

    def __init__(self) -> None:
        self.user = new_user()
        self.client = Client(enforce_csrf_checks=False)
        self.client.force_login(self.user)
        self.account1 = add_account(
            user=self.user, address=A1, label="Savings", cause=BY_USER
        )
        self.account2 = add_account(user=self.user, address=A2, cause=BY_USER)
        self.dapp = self.pair("https://p.example")

    def pair(self, origin: str) -> Dapp:
        return pair_dapp(user=self.user, kind=DappKind.WEB, ident=origin, cause=BY_USER)

    def asked(self, *scopes: str, dapp: Dapp | None = None) -> ConsentRequest:
        """Return a request of a dapp for all that can be done in some scopes."""
        return request_session(
            dapp_id=(dapp or self.dapp).pk,
            wanted=dict.fromkeys(scopes or ("eip155:1",), ScopeObject()),
            expires_at=None,
            cause=BY_USER,
        )


@pytest.fixture
def chains(db: None) -> None:
    """Serve three chains."""
    served_chains()


@pytest.fixture
def person(chains: None) -> Person:
    return Person()


@pytest.fixture
def stranger(chains: None) -> Person:
    return Person()
