"""Values that contracts report, and their validation."""

from __future__ import annotations

from typing import Any

import pytest

from abi.erc20 import Token
from tests.support.named_token import TOKEN, domain_of
from tests.support.wallet import Rig
from tests.wallets.effects.conftest import CHAIN_ID
from tests.wallets.signing.known.samples import sample
from wallets.effects.contracts import named_token, read_facts
from wallets.signing.known.recognition import Known, recognize
from wallets.signing.typed_data import read_typed_data
from wallets.upstream import ChainNode


def permit(**domain: Any) -> Known:
    own = {**domain_of(CHAIN_ID), **domain}
    known = recognize(read_typed_data(sample("Permit(address owner", own)))
    assert known is not None
    return known


def test_contract_confirms_its_domain_and_says_its_name(rig: Rig, node: ChainNode):
    facts = rig.run(read_facts(node, permit()))
    assert facts.is_confirmed
    assert facts.tokens == {TOKEN: Token("ABC", 2)}


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Another token"},
        {"version": "2"},
        {"chainId": 1},
        {"verifyingContract": "0x" + "99" * 20},
    ],
)
def test_domain_that_the_contract_does_not_have_is_refuted(
    rig: Rig, node: ChainNode, change: dict[str, Any]
):
    assert not rig.run(read_facts(node, permit(**change))).is_confirmed


def result(data: str, status: str = "0x1") -> dict[str, str]:
    return {"status": status, "returnData": data}


def text(value: str, offset: int = 32) -> str:
    raw = value.encode()
    words = offset.to_bytes(32) + len(raw).to_bytes(32) + raw.ljust(32, b"\0")
    return "0x" + words.hex()


@pytest.mark.parametrize(
    ("data", "symbol"),
    [
        (text("ABC"), "ABC"),
        (text("BTC.b"), "BTC.b"),
        ("0x" + b"MKR".ljust(32, b"\0").hex(), "MKR"),
        (text("USD\u0421"), ""),  # a Cyrillic letter
        (text("A\u202eB"), ""),
        (text("AB” (token 0x"), ""),
        (text("ABC " * 8), ""),
        (text(""), ""),
        ("0x", ""),
        ("0x" + "ff" * 96, ""),
    ],
)
def test_symbols_that_could_mislead_are_not_shown(data: str, symbol: str):
    assert named_token(result(data), result("0x")).symbol == symbol


@pytest.mark.parametrize(
    ("data", "decimals"),
    [
        ("0x" + "00" * 31 + "12", 18),
        ("0x" + "00" * 31 + "25", None),
        ("0x" + "ff" * 32, None),
        ("0x12", None),
        ("0x", None),
    ],
)
def test_decimals_beyond_any_tokens_are_unknown(data: str, decimals: int | None):
    assert named_token(result("0x"), result(data)).decimals == decimals


def test_contract_that_fails_says_nothing():
    failed = result(text("ABC"), status="0x0")
    assert named_token(failed, failed) == Token()
