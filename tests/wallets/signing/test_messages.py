from __future__ import annotations

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from legible.text import hides_something, visible
from wallets.signing.messages import (
    MAX_BYTES,
    read_message,
    readable,
    sign_message,
)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0x", b""),
        ("0x00ff", b"\0\xff"),
        ("0X4142", b"AB"),
        ("4142", b"AB"),
        ("face", b"\xfa\xce"),
        ("face to face", b"face to face"),
        ("hello", b"hello"),
        ("grüß dich", "grüß dich".encode()),
        ("", b""),
    ],
)
def test_message_is_data_or_text(value, message):
    assert read_message(value) == message


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        [],
        "0x1",
        "1",
        "abc",
        "0xzz",
        "0x12 34",
        "\ud800",
        "x" * (MAX_BYTES + 1),
    ],
)
def test_what_is_no_message_is_refused(value):
    with pytest.raises(ValueError, match="message"):
        read_message(value)


def test_signature_is_that_of_the_documented_example():
    """The example of eth-account's and web3.py's documentation."""
    key = bytes.fromhex(
        "b25c7db31feed9122727bf0939dc769a96564b2de4c4726d035b36ecf1e5b364"
    )
    signature = sign_message(read_message("I♥SF"), key)
    assert signature.hex() == (
        "e6ca9bba58c88611fad66a6ce8f996908195593807c4b38bd528d2cff09d4eb3"
        "3e5bfbbf4d3e39b1a2fd816a7680c19ebebaf3a141b239934ad43cb33fcec8ce1c"
    )
    message = encode_defunct(text="I♥SF")
    found = Account.recover_message(message, signature=signature)
    assert found == Account.from_key(key).address


def test_only_texts_are_read_as_text():
    assert readable("Grüße\n".encode()) == "Grüße\n"
    for other in (b"", b"\xff\xfe", b"abc\0"):
        assert readable(other) is None


def test_hidden_characters_are_shown():
    assert visible("plain\ttext\r\nnext") == "plain\ttext\nnext"
    assert visible("to \u202eevil\u202c\u200b!\x1b\ud800") == (
        "to ⟨U+202E⟩evil⟨U+202C⟩⟨U+200B⟩!⟨U+001B⟩⟨U+D800⟩"
    )
    assert hides_something("a\u2066b")
    assert not hides_something("日本 – ça va? ❤\ufe0f\n")
    for empty in ("\u3164", "\uffa0", "\u2800", "\u034f", "\U000e0141"):
        assert hides_something(f"pay{empty}pal"), hex(ord(empty))
