"""Numbers that clients of Erigon's and Parity's methods send in several forms.

Source: erigon rpc/types.go, BlockNumber.UnmarshalJSON
"""

from __future__ import annotations

import re
from typing import Any

from jsonrpc.text import kind
from nodeapi.encoding import (
    TAGS,
    TOO_BIG,
    BlockReference,
    block_number,
    block_number_or_hash,
)
from nodeapi.go.decoding import mismatch

_DECIMAL = re.compile("[0-9]{1,19}")
_MAX = 2**63 - 1


def number(value: Any) -> int:
    """Decode a number: a JSON number, or decimal or hexadecimal digits in a string."""
    if type(value) is int:
        if not 0 <= value <= _MAX:
            raise ValueError(mismatch(f"number {value}", "uint64"))
        return value
    if type(value) is not str or value in TAGS:
        raise ValueError(mismatch(kind(value), "uint64"))
    if not _DECIMAL.fullmatch(value):
        found = block_number(value)
        assert isinstance(found, int), "tags are excluded above"
        return found
    if int(value) > _MAX:
        raise ValueError(TOO_BIG)
    return int(value)


def number_or_tag(value: Any) -> int | str:
    """Decode a number as `number` does, or a tag of a block."""
    if type(value) is str and value in TAGS:
        return value
    return number(value)


def block_reference(value: Any) -> BlockReference:
    """Decode a block parameter, whose number may have the forms of `number`."""
    if type(value) is int or (type(value) is str and _DECIMAL.fullmatch(value)):
        return BlockReference(number=number(value))
    return block_number_or_hash(value)
