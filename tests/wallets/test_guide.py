"""The documentation's page on the wallet matches the code."""

from __future__ import annotations

import html

import pytest
from django.test import Client

from nodeapi.frames import close_codes
from tests.support.wallet import served_chains
from wallets import errors
from wallets.errors import WalletError
from wallets.guide import CLOSE_CODES, bounds, wallet_errors
from wallets.methods.chain import KINDS
from wallets.methods.outer import session_methods
from wallets.sockets import limits

pytestmark = pytest.mark.django_db


def page(**headers: str) -> str:
    answer = Client(headers=headers).get("/docs/wallet")
    assert answer.status_code == 200
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    return html.unescape(answer.content.decode())


def test_methods_events_and_scopes_are_the_codes_and_the_databases() -> None:
    served_chains()
    text = page()
    for method in session_methods:
        assert f'id="{method.name}"' in text
        assert method.summary in text
    assert all(f"<code>{kind}</code>" in text for kind in KINDS)
    assert "<code>eip155:137</code>" in text
    assert "<code>eth_getStorageAt</code>" in text


def test_errors_are_listed_on_the_page_of_errors() -> None:
    kinds = {
        one
        for one in vars(errors).values()
        if isinstance(one, type) and issubclass(one, WalletError)
    }
    found = wallet_errors()
    assert len(found.errors) == len(kinds) - 1  # all except for the common ones
    assert f"/docs/errors#{found.name}" in page()


def test_every_close_code_is_explained() -> None:
    codes = {
        value
        for value in vars(close_codes).values()
        if isinstance(value, int) and 1000 <= value < 5000
    }
    assert {code for code, _ in CLOSE_CODES} == codes
    assert all(f"<dt><code>{code}</code></dt>" in page() for code in codes)


OPERATORS_ALONE = {
    "MAX_HANDSHAKES",
    "MAX_INBOXES",
    "MAX_INBOX_HANDSHAKES",
    "MAX_REJECTED_CALLS",
}


def test_every_limit_that_dapps_meet_is_there(settings) -> None:
    values = {bound.value for bound in bounds()}
    for name, value in vars(limits).items():
        if name.isupper() and name not in OPERATORS_ALONE:
            is_size = name.endswith("BYTES")
            shown = f"{value // 2**20} MiB" if is_size else f"{value:g}"
            assert shown in values, name
    settings.WALLETS_MAX_PENDING = 77
    assert ">77<" in page()


def test_addresses_are_those_that_were_asked() -> None:
    text = page(host="wallet.example")
    assert 'src="http://wallet.example/static/wallet/connect.js"' in text
    assert "ws://wallet.example/ws/dapp" in text
    assert "http://wallet.example/wallet/token" in text
