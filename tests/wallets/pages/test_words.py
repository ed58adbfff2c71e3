"""Descriptions of permissions by their methods."""

from __future__ import annotations

import pytest

from wallets.pages.words import group_titles, group_words
from wallets.permissions import CHAIN_METHODS, Group, group_of
from wallets.scopes import ScopeObject


@pytest.mark.parametrize(
    ("methods", "meaning"),
    [
        (["eth_chainId"], "Public data: properties of the chain."),
        (["eth_getBlockByHash"], "Public data: blocks and transactions."),
        (["eth_call", "eth_getLogs"], "Public data: contract calls; logs."),
        (["txpool_status"], "Public data: pending transactions."),
    ],
)
def test_reads_are_those_of_the_methods(methods: list[str], meaning: str):
    assert group_words(Group.READ, methods).meaning == meaning


def test_all_reads_together():
    every = [name for name in CHAIN_METHODS if group_of(name) == Group.READ]
    assert group_words(Group.READ, every).meaning.count(";") == 6


@pytest.mark.parametrize(
    ("methods", "title"),
    [
        (["personal_sign"], "Ask you to sign messages"),
        (["eth_signTypedData_v4"], "Ask you to sign typed data"),
        (
            ["personal_sign", "eth_signTypedData_v4"],
            "Ask you to sign messages and typed data",
        ),
    ],
)
def test_signatures_are_those_of_the_methods(methods: list[str], title: str):
    assert group_words(Group.SIGN, methods).title == title


def test_sending_says_whether_the_user_is_asked():
    asking = group_words(Group.SEND, ["eth_sendTransaction"])
    assert asking.title == "Ask you to send transactions"
    assert "already signed" not in asking.meaning
    both = group_words(Group.SEND, ["eth_sendTransaction", "eth_sendRawTransaction"])
    assert "already signed" in both.meaning
    raw = group_words(Group.SEND, ["eth_sendRawTransaction"])
    assert raw.title == "Submit signed transactions"
    assert "You are not asked" in raw.meaning


def test_request_for_networks_is_not_a_read():
    words = group_words(Group.READ, ["wallet_addEthereumChain"])
    assert (words.title, words.short) == ("Ask you for more networks", "ask")


def test_titles_of_a_session():
    scopes = [
        ScopeObject(("eth_sendTransaction", "debug_traceBlockByHash")),
        ScopeObject(("eth_call",), ("eth_subscription",)),
    ]
    assert group_titles(scopes) == [
        "Read chain data",
        "Ask you to send transactions",
        "Live notifications",
        "Trace transactions",
    ]
