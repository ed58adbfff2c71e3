"""personal_sign: messages of arbitrary bytes, mostly text.

Source: https://eips.ethereum.org/EIPS/eip-191 version 0x45
"""

from __future__ import annotations

import re
from binascii import unhexlify
from typing import Any

MAX_BYTES = 32 * 1024
"""Size limit of a message; people do not read longer ones before signing."""

_DIGITS = re.compile(r"[0-9a-fA-F]+")


def read_message(value: Any) -> bytes:
    """Return the bytes to be signed: decoded hexadecimal digits, else the text's UTF-8.

    Digits without 0x are also decoded, because older dapps send them and MetaMask
    decodes them.
    Raises: ValueError if the value is not a string.
    Source: MetaMask's signature-controller, normalizePersonalMessageParams
    """
    if not isinstance(value, str):
        raise ValueError("expected the message as hexadecimal data or as text")
    message = _bytes_of(value)
    if len(message) > MAX_BYTES:
        raise ValueError(f"the message is longer than {MAX_BYTES} bytes")
    return message


def readable(message: bytes) -> str | None:
    """Return a message as text, or None if its bytes are not readable text."""
    try:
        text = message.decode()
    except UnicodeDecodeError:
        return None
    # Bytes with a zero byte are a number, a hash or a structure.
    return text if text and "\0" not in text else None


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
