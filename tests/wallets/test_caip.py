from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallets import caip
from wallets.caip import AccountId, Address, ChainId, Scope

A1 = "0x5cfe73b6021e818b776b421b1c4db2474086a7e1"


@pytest.mark.parametrize(
    "text",
    [
        "eip155:1",
        "eip155:01",
        "bip122:000000000019d6689c085ae165831e93",
        "a-1:_-Z",
        "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
        "wallet:eip155",
        "x" * 8 + ":1",
    ],
)
def test_chain_ids_are_read_and_written_alike(text):
    assert str(caip.parse_chain_id(text)) == text
    assert str(caip.parse_scope(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "eip155",
        "eip155:",
        ":1",
        "ei:1",
        "EIP155:1",
        "eip155:1\n",
        "\neip155:1",
        " eip155:1",
        "eip155:1 ",
        "eip155:" + "1" * 33,
        "x" * 9 + ":1",
        "eip155:1:2",
        "eip155:@",
        "eip155:é",
        "eip155:１",
        "eip155:�",
        "not a namespace",
    ],
)
def test_what_is_no_chain_id_is_refused(text):
    with pytest.raises(ValueError, match="not a CAIP-2 chain id"):
        caip.parse_chain_id(text)


def test_scope_may_be_a_namespace_alone():
    assert caip.parse_scope("eip155") == Scope("eip155", None)
    assert str(Scope("wallet", None)) == "wallet"


@pytest.mark.parametrize("text", ["", "ei", "EIP155", "eip155\n", "x" * 9, "a b"])
def test_what_is_no_scope_is_refused(text):
    with pytest.raises(ValueError, match="neither a namespace nor"):
        caip.parse_scope(text)


def test_account_is_read():
    expected = AccountId(ChainId("eip155", "1"), A1)
    assert caip.parse_account_id(f"eip155:1:{A1}") == expected
    assert str(expected) == f"eip155:1:{A1}"


@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        A1,
        f"{A1}@eip155:1",
        "eip155:1:",
        f"eip155:1:{A1}\n",
        f"eip155::{A1}",
        "eip155:1:" + "a" * 129,
        "eip155:1:a b",
        f"eip155:1:2:{A1}",
    ],
)
def test_what_is_no_account_is_refused(text):
    with pytest.raises(ValueError, match="not a CAIP"):
        caip.parse_account_id(text)


@pytest.mark.parametrize("chain", ["eip155:0", "eip155:1", "eip155:137"])
def test_evm_address_is_the_same_on_all_chains_in_any_case(chain):
    account = caip.parse_account_id(f"{chain}:0x{A1[2:].upper()}")
    assert caip.address_of(account) == Address("eip155", A1)


def test_wallet_scope_has_the_accounts_of_its_namespace():
    account = caip.parse_account_id(f"wallet:eip155:{A1}")
    assert caip.address_of(account) == Address("eip155", A1)
    assert caip.account_namespace(Scope("wallet", "eip155")) == "eip155"
    assert caip.account_namespace(Scope("wallet", None)) is None
    assert caip.account_namespace(Scope("solana", "x")) == "solana"


@pytest.mark.parametrize(
    "text",
    ["eip155:01:" + A1, "eip155:x:" + A1, "eip155:1:0x12", "eip155:1:0X" + A1[2:]],
)
def test_account_that_no_evm_chain_has_is_refused(text):
    with pytest.raises(ValueError, match="not an a"):
        caip.address_of(caip.parse_account_id(text))


def test_addresses_of_other_namespaces_keep_their_case():
    account = caip.parse_account_id("solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:AbC")
    assert caip.address_of(account) == Address("solana", "AbC")


@pytest.mark.parametrize("text", ["0", "1", "137", "1" + "0" * 31])
def test_evm_references_are_decimal(text):
    assert caip.is_evm_reference(text)


@pytest.mark.parametrize("text", ["", "01", "1e1", "0x1", "-1", "1\n", "１", "1" * 33])
def test_other_references_are_no_evm_chain(text):
    assert not caip.is_evm_reference(text)


@given(st.text(max_size=60))
def test_whatever_is_read_is_written_as_it_was(text):
    for parse in (caip.parse_chain_id, caip.parse_account_id, caip.parse_scope):
        try:
            assert str(parse(text)) == text
        except ValueError:
            continue


@given(
    st.from_regex(caip.NAMESPACE, fullmatch=True),
    st.from_regex(caip.REFERENCE, fullmatch=True),
    st.from_regex(caip.ADDRESS, fullmatch=True),
)
def test_every_account_of_the_grammar_is_read(namespace, reference, address):
    chain = ChainId(namespace, reference)
    account = AccountId(chain, address)
    assert caip.parse_account_id(str(account)) == account
