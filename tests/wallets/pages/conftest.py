from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser, BrowserContext

from server.supervisor import Server
from tests.support.browser import emptied, end_holds, kept_context, log_in
from tests.support.service import run_service
from tests.support.signing import add_key
from tests.support.sites import running_site
from tests.support.wallet import A1, BY_USER, new_user, served_chains, two_accounts
from tests.wallets.pages.stage import DappPages, Stage
from wallets import internal_key
from wallets.models import Account, ConsentRequest, Dapp, DappKind, Event
from wallets.scopes import ScopeObject
from wallets.services.consent import request_session
from wallets.services.pairing import pair_dapp
from wallets.services.sessions import write_session
from wallets.services.signatures import request_signature


class Person:
    """A user with two accounts and a browser, who has paired the page P."""

    def __init__(self) -> None:
        self.user = new_user()
        self.client = Client(enforce_csrf_checks=False)
        self.client.force_login(self.user)
        self.account1, self.account2 = two_accounts(self.user, "Savings")
        self.dapp = self.pair("https://p.example")

    def pair(self, origin: str) -> Dapp:
        return pair_dapp(user=self.user, kind=DappKind.WEB, ident=origin, cause=BY_USER)

    def with_key(self) -> Account:
        """Return an account with a key, with which P may request signatures."""
        found = Account.objects.filter(user=self.user, keystore__isnull=False).first()
        if found is not None:
            return found
        account = add_key(self.user)
        write_session(
            self.dapp.session,
            {
                "eip155:1": ScopeObject(
                    ("personal_sign", "eth_signTypedData_v4", "eth_sendTransaction"),
                    accounts=(f"eip155:1:{account.address}", f"eip155:1:{A1}"),
                )
            },
            event=Event.GRANTED,
            cause=BY_USER,
        )
        return account

    def asked_to_sign(
        self, method: str = "personal_sign", **subject: Any
    ) -> ConsentRequest:
        """Return a request of P for a signature, by default of a message."""
        body = {"scope": "eip155:1", "address": self.with_key().address, **subject}
        return request_signature(
            dapp_id=self.dapp.pk,
            method=method,
            body=body if subject else body | {"message": "0x48656c6c6f"},
            cause=BY_USER,
        )

    def asked(self, *scopes: str, dapp: Dapp | None = None) -> ConsentRequest:
        """Return a request of a dapp for all methods of some scopes."""
        return request_session(
            dapp_id=(dapp or self.dapp).pk,
            wanted=dict.fromkeys(scopes or ("eip155:1",), ScopeObject()),
            expires_at=None,
            cause=BY_USER,
        )


@pytest.fixture(scope="module")
def service(module_db: None) -> Iterator[Server]:
    """Serve three chains to tests that create their own users."""
    served_chains()
    internal_key.ensure()
    with run_service() as running:
        yield running


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


@pytest.fixture
def inhabited(service: Server) -> Person:
    """Return a user of the service."""
    return Person()


@pytest.fixture
def context(
    browser: Browser, service: Server, inhabited: Person
) -> Iterator[BrowserContext]:
    """Return a browser in which the user has logged in."""
    context = browser.new_context(base_url=service.base_url)
    end_holds(context)
    log_in(context, service.base_url, inhabited.client.cookies["sessionid"].value)
    yield context
    context.close()


@pytest.fixture(scope="module")
def stages(browser: Browser, service: Server) -> Iterator[tuple[BrowserContext, str]]:
    """Return a browser, and the origin of a dapp, for the tests of a module."""
    pages = type("Pages", (DappPages,), {"wallet": service.base_url})
    with running_site(pages) as port, kept_context(browser) as context:
        yield context, f"http://localhost:{port}"


@pytest.fixture
def stage(stages: tuple[BrowserContext, str], service: Server) -> Iterator[Stage]:
    context, origin = stages
    person = Person()
    log_in(context, service.base_url, person.client.cookies["sessionid"].value)
    with emptied(context, faults=[]):
        stage = Stage(context, person, service.base_url, origin)
        yield stage
        for page in stage.pages[1:]:
            page.close()
        stage.page.evaluate("localStorage.clear()")
        context.unroute_all()
