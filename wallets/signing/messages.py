"""personal_sign: a message of any bytes, mostly a text.

Source: https://eips.ethereum.org/EIPS/eip-191 version 0x45,
https://eips.ethereum.org/EIPS/eip-4361 for messages by which people log in
"""

from __future__ import annotations

import re
from binascii import unhexlify
from typing import Any

MAX_BYTES = 32 * 1024
"""Of a message; nobody reads a longer one before he signs it."""

_DIGITS = re.compile(r"[0-9a-fA-F]+")

_LOGIN = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://)?(\S+) wants you to sign in with your Ethereum account:"
)


def read_message(value: Any) -> bytes:
    """Return the bytes to be signed: of hexadecimal digits those, else a text's UTF-8.

    Digits without 0x are data too: older dapps send them so, and MetaMask reads them so.
    Raises: ValueError.
    Source: MetaMask's signature-controller, normalizePersonalMessageParams
    """
    if not isinstance(value, str):
        raise ValueError("expected the message as hexadecimal data or as text")
    message = _bytes_of(value)
    if len(message) > MAX_BYTES:
        raise ValueError(f"the message is longer than {MAX_BYTES} bytes")
    return message


def readable(message: bytes) -> str | None:
    """Return the text that a message is, None when it is none."""
    try:
        text = message.decode()
    except UnicodeDecodeError:
        return None
    # A text with a zero byte in it is a number, a hash or a structure.
    return text if text and "\0" not in text else None


def login_host(text: str) -> str | None:
    """Return the host that a message logs its signer in to, None when it does not."""
    found = _LOGIN.match(text)
    return None if found is None else found[1]


def sign_message(message: bytes, key: bytes) -> bytes:
    """Return the 65 bytes r, s, v of a message's signature.

    key: 32 bytes.
    """
    from eth_account import Account
    from eth_account.messages import encode_defunct

    signed = Account.sign_message(encode_defunct(primitive=message), key)
    return bytes(signed.signature)


def _bytes_of(value: str) -> bytes:
    has_prefix = value.startswith(("0x", "0X"))
    digits = value[2:] if has_prefix else value
    try:
        if has_prefix or _DIGITS.fullmatch(digits):
            return unhexlify(digits)
        return value.encode()
    except ValueError as error:
        fault = "neither whole bytes in hexadecimal nor text"
        raise ValueError(f"the message is {fault}") from error
