"""The storage keys of a request for a proof.

Source: go-ethereum internal/ethapi/api.go, GetProof and decodeStorageKey
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jsonrpc.errors import InvalidParams
from jsonrpc.text import kind
from nodeapi.encoding import storage_key, text

MAX_KEYS = 1024
"""Most storage keys of one request; geth's limit."""

_WORD_DIGITS = 64


def storage_keys(value: Any) -> list[str]:
    """Decode an array of strings. null is an empty array, and a null in it is ""."""
    if value is None:
        return []
    if type(value) is not list:
        raise ValueError(
            f"json: cannot unmarshal {kind(value)} into Go value of type []string"
        )
    return [text(member) for member in value]


def key_names(keys: Sequence[str]) -> tuple[str, ...]:
    """Return the form in which a response names each key.

    A key with 63 or 64 digits is named as 32 bytes, any other as a quantity.

    Raises: InvalidParams if there are too many keys, or for the first malformed key.
    """
    if len(keys) > MAX_KEYS:
        raise InvalidParams(
            f"too many storage keys requested (max {MAX_KEYS}, got {len(keys)})"
        )
    return tuple([_key_name(key) for key in keys])


def _key_name(key: str) -> str:
    try:
        slot = storage_key(key)
    except ValueError as error:
        raise InvalidParams(str(error)) from error
    digits = len(key) - 2 if key[:2] in ("0x", "0X") else len(key)
    return f"0x{slot:064x}" if digits > _WORD_DIGITS - 2 else hex(slot)
