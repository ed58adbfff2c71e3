"""Arguments and results of calls, between JSON and Python, with geth's error texts.

A decoder takes a JSON value and returns an argument, or raises ValueError with the text
that geth has after `invalid argument i: `.
Source: go-ethereum common/types.go, common/hexutil, rpc/types.go, internal/ethapi/api.go
"""

from __future__ import annotations

import string
from binascii import unhexlify
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonrpc.text import kind

MISSING_PREFIX = "hex string without 0x prefix"
ODD_LENGTH = "hex string of odd length"
BAD_DIGIT = "invalid hex string"
EMPTY = "empty hex string"
EMPTY_NUMBER = 'hex string "0x"'
LEADING_ZERO = "hex number with leading zero digits"
TOO_BIG = "hex number > 64 bits"

TAGS = frozenset({"latest", "earliest", "pending", "safe", "finalized"})

_PREFIXES = ("0x", "0X")
_HEX_DIGITS = frozenset(string.hexdigits)
MAX_INDEX = 2**31 - 1
"""Largest transaction index. No block has more transactions, and the column is 4 bytes.
"""

_MAX_BLOCK_NUMBER = 2**63 - 1
_MAX_KEY_DIGITS = 64


@dataclass(frozen=True, slots=True)
class BlockReference:
    """A block parameter: exactly one of tag, number and hash is given.

    tag: latest, earliest, pending, safe or finalized.
    hash: 32 bytes. With require_canonical, side blocks are rejected.

    Source: https://eips.ethereum.org/EIPS/eip-1898
    """

    tag: str | None = None
    number: int | None = None
    hash: bytes | None = None
    require_canonical: bool = False


_BY_TAG = {tag: BlockReference(tag=tag) for tag in TAGS}

LATEST = _BY_TAG["latest"]


def quantity(value: int) -> bytes:
    """Return a number as a JSON string: `"0x0"`, `"0x1b4"`."""
    return b'"%#x"' % value


def quantity_or_null(value: int | None) -> bytes:
    """Return a number as a JSON string, or `null`."""
    return b"null" if value is None else quantity(value)


def data(value: bytes) -> bytes:
    """Return bytes as a JSON string: `"0x"`, `"0x00ff"`."""
    return b'"0x' + value.hex().encode() + b'"'


def hash32(value: Any) -> bytes:
    """Decode a hash of 32 bytes from hexadecimal digits with 0x."""
    return _fixed_data(value, 32, "common.Hash")


def address(value: Any) -> bytes:
    """Decode an address of 20 bytes. Its mixed-case checksum is not verified."""
    return _fixed_data(value, 20, "common.Address")


def fixed_data(size: int, go_type: str) -> Callable[[Any], bytes]:
    """Return the decoder of data with a number of bytes. go_type: for error texts."""

    def decode(value: Any) -> bytes:
        return _fixed_data(value, size, go_type)

    return decode


def any_data(value: Any) -> bytes:
    """Decode hexadecimal data of any length, such as `0x` or `0x00ff`."""
    go_type = "hexutil.Bytes"
    text = _require_text(value, go_type)
    digits = _require_even(text, go_type)
    try:
        return unhexlify(digits)
    except ValueError:
        raise ValueError(go_mismatch(BAD_DIGIT, go_type)) from None


def boolean(value: Any) -> bool:
    """Decode a boolean. null is False."""
    if value is None:
        return False
    if type(value) is not bool:
        raise ValueError(go_mismatch(kind(value), "bool"))
    return value


def rpc_id(value: Any) -> str:
    """Decode the id of a filter or a subscription."""
    if not isinstance(value, str):
        raise ValueError(go_mismatch(kind(value), "rpc.ID"))
    return value


def text(value: Any) -> str:
    """Decode a string. null is ""."""
    if value is None:
        return ""
    if type(value) is not str:
        raise ValueError(go_mismatch(kind(value), "string"))
    return value


def index(value: Any) -> int:
    """Decode an unsigned 64-bit number from hexadecimal digits. "" is 0."""
    go_type = "hexutil.Uint"
    digits = _require_text(value, go_type)
    if not digits:
        return 0
    fault = _number_fault(digits)
    digits = digits[2:]
    if fault is None and len(_utf8(digits)) > 16:
        fault = TOO_BIG
    if fault is None and not _HEX_DIGITS.issuperset(digits):
        fault = BAD_DIGIT
    if fault is not None:
        raise ValueError(go_mismatch(fault, go_type))
    return int(digits, 16)


def block_number(value: Any) -> int | str:
    """Decode a block parameter that is a number or a tag."""
    # geth checks the raw JSON, so that any other type lacks the prefix.
    if type(value) is not str:
        raise ValueError(MISSING_PREFIX)
    if value in TAGS:
        return value
    return _uint63(value, "block number larger than int64")


def block_number_or_hash(value: Any) -> BlockReference:
    """Decode a block parameter: a number, a tag, a hash or an EIP-1898 object."""
    if type(value) is str:
        return _BY_TAG.get(value) or _named_block(value)
    if type(value) is dict:
        return _block_object(value)
    raise ValueError(go_mismatch(kind(value), "string"))


def slots_by_address(value: Any) -> dict[bytes, list[int]]:
    """Decode an object with lists of slots by address."""
    if type(value) is not dict:
        wanted = "map[common.Address][]common.Hash"
        raise ValueError(go_mismatch(kind(value), wanted))
    slots = {}
    for account, keys in value.items():
        if keys is not None and type(keys) is not list:
            raise ValueError(go_mismatch(kind(keys), "[]common.Hash"))
        slots[address(account)] = [int.from_bytes(hash32(key)) for key in keys or ()]
    return slots


def storage_key(key: str) -> int:
    """Return the slot number of a storage position.

    The prefix may be missing and the number of digits may be odd. No digits are slot 0.

    Raises: ValueError, whose text is not that of an invalid argument.
    """
    digits = key[2:] if key[:2] in _PREFIXES else key
    if len(_utf8(digits)) > _MAX_KEY_DIGITS:
        raise ValueError(f"storage key too long (want at most 32 bytes): {quoted(key)}")
    try:
        return int.from_bytes(unhexlify("0" * (len(digits) % 2) + digits))
    except ValueError:
        raise ValueError(f"invalid hex in storage key: {quoted(key)}") from None


@lru_cache(maxsize=4096)
def _named_block(name: str) -> BlockReference:
    if len(_utf8(name)) != 66:
        return BlockReference(number=_uint63(name, "blocknumber too high"))
    if not name.startswith(_PREFIXES):
        raise ValueError(MISSING_PREFIX)
    try:
        return BlockReference(hash=unhexlify(name[2:]))
    except ValueError:
        raise ValueError(BAD_DIGIT) from None


def _block_object(members: dict[str, Any]) -> BlockReference:
    """Return the block of an EIP-1898 object.

    For a malformed member, the error is the one for a string, as in geth.
    """
    number, block_hash = members.get("blockNumber"), members.get("blockHash")
    try:
        require_canonical = boolean(members.get("requireCanonical"))
        found_number = None if number is None else block_number(number)
        found_hash = None if block_hash is None else hash32(block_hash)
    except ValueError:
        raise ValueError(go_mismatch("object", "string")) from None
    if found_number is not None and found_hash is not None:
        raise ValueError(
            "cannot specify both BlockHash and BlockNumber, choose one or the other"
        )
    if found_hash is not None:
        return BlockReference(hash=found_hash, require_canonical=require_canonical)
    if found_number is None:
        raise ValueError("must specify either BlockHash or BlockNumber")
    if isinstance(found_number, str):
        return _BY_TAG[found_number]
    return BlockReference(number=found_number)


def _fixed_data(value: Any, size: int, go_type: str) -> bytes:
    """Return bytes of a fixed number."""
    if type(value) is str and len(value) == 2 + 2 * size and value[:2] in _PREFIXES:
        try:
            return unhexlify(value[2:])
        except ValueError:
            pass  # the fault is reported below
    digits = _require_even(_require_text(value, go_type), go_type)
    length = len(_utf8(digits))
    if length != 2 * size:
        raise ValueError(
            f"hex string has length {length}, want {2 * size} for {go_type}"
        )
    raise ValueError(go_mismatch(BAD_DIGIT, go_type))


def _require_text(value: Any, go_type: str) -> str:
    if type(value) is not str:
        raise ValueError(go_mismatch("non-string", go_type))
    return value


def _require_even(value: str, go_type: str) -> str:
    """Return the digits of data, whose number has to be even.

    The empty string has none.
    """
    if value and not value.startswith(_PREFIXES):
        raise ValueError(go_mismatch(MISSING_PREFIX, go_type))
    digits = value[2:]
    if len(_utf8(digits)) % 2:
        raise ValueError(go_mismatch(ODD_LENGTH, go_type))
    return digits


def _number_fault(value: str) -> str | None:
    """Return the format error of a non-empty number, or None."""
    if not value.startswith(_PREFIXES):
        return MISSING_PREFIX
    if len(value) == 2:
        return EMPTY_NUMBER
    if value[2] == "0" and len(value) > 3:
        return LEADING_ZERO
    return None


def _uint63(value: str, too_high: str) -> int:
    """Return a block number. too_high: error text for a number beyond 63 bits."""
    fault = _number_fault(value) if value else EMPTY
    if fault is not None:
        raise ValueError(fault)
    digits = value[2:]
    # Digits are read one by one: the 17th is too many, even if a later one is bad.
    if not _HEX_DIGITS.issuperset(digits[:17]):
        raise ValueError(BAD_DIGIT)
    if len(digits) > 16:
        raise ValueError(TOO_BIG)
    number = int(digits, 16)
    if number > _MAX_BLOCK_NUMBER:
        raise ValueError(too_high)
    return number


def go_mismatch(value: str, go_type: str) -> str:
    """Return the error text of Go's JSON decoder for a value of another type."""
    return f"json: cannot unmarshal {value} into Go value of type {go_type}"


def _utf8(value: str) -> bytes:
    """Return a text as UTF-8. Go counts lengths in these bytes."""
    return value.encode("utf-8", "surrogatepass")


_ESCAPES = {
    each: f"\\{letter}"
    for each, letter in zip('"\\\a\b\f\n\r\t\v', '"\\abfnrtv', strict=True)
}


def quoted(value: str) -> str:
    """Return a text in quotes, with non-printable characters escaped as in Go.

    Source: Go, strconv.Quote
    """
    return '"' + "".join(map(_quoted_character, value)) + '"'


def _quoted_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if 0xD800 <= code < 0xE000:
        code = 0xFFFD  # Go has no lone surrogates
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
