"""Addresses with checksums."""

from __future__ import annotations

import pytest

from abi.addresses import (
    WrongChecksum,
    checksummed,
    parse_address,
    with_checksum,
)

EXAMPLES = [
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0xde709f2102306220921060314715629080e2fb77",
]
"""The examples of EIP-55."""


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_have_their_checksum(text: str) -> None:
    address = bytes.fromhex(text[2:])
    assert checksummed(address) == text
    for spelling in (text, text[2:], text.lower(), "0X" + text[2:].upper()):
        assert parse_address(spelling) == address


@pytest.mark.parametrize("text", EXAMPLES)
def test_addresses_in_text_get_their_checksum(text: str) -> None:
    assert with_checksum(text.lower()) == text


@pytest.mark.parametrize("text", ["", "0x", "0xab", "ab" * 20, "0x" + "ab" * 32])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert with_checksum(text) == text


def test_a_wrong_checksum_is_a_typing_mistake() -> None:
    with pytest.raises(WrongChecksum):
        parse_address("0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")


@pytest.mark.parametrize("text", ["", "0x", "0x" + "1" * 39, "0x" + "g" * 40, "1" * 42])
def test_other_texts_are_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="not an address"):
        parse_address(text)
