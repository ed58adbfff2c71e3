"""The integers in an upstream's JSON, each with a largest size.

Larger ones would not fit into a column of the database, or into the types of clients.

Source: execution-apis src/schemas/{block,transaction,withdrawal}.yaml
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}")

BLOCK_BITS: Mapping[str, int] = MappingProxyType(
    {
        **{"number": 63, "gasLimit": 63, "gasUsed": 63, "timestamp": 64, "size": 63},
        **{"difficulty": 256, "totalDifficulty": 256, "baseFeePerGas": 256},
        **{"blobGasUsed": 64, "excessBlobGas": 64, "slotNumber": 64},
    }
)
"""Members of a block object → number of bits. geth's limit of gas has 63 bits as well."""

TRANSACTION_BITS: Mapping[str, int] = MappingProxyType(
    {
        **{"type": 7, "chainId": 256, "nonce": 64, "gas": 64, "value": 256},
        **{"gasPrice": 256, "maxFeePerGas": 256, "maxPriorityFeePerGas": 256},
        **{"maxFeePerBlobGas": 256, "v": 256, "yParity": 8, "r": 256, "s": 256},
    }
)
"""Members of a transaction object, and of its authorizations."""

WITHDRAWAL_BITS: Mapping[str, int] = MappingProxyType(
    {"index": 64, "validatorIndex": 64, "amount": 64}
)


def quantity(value: Any, bits: int = 256) -> int:
    """Decode a hexadecimal number. Leading zeros, which some nodes write, are accepted.

    Raises: ValueError if it is malformed, or has more bits.
    """
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
        raise ValueError("no quantity")
    number = int(value, 16)
    if number >> bits:
        raise ValueError(f"{number} exceeds {bits} bits")
    return number


def require_quantities(document: Mapping[str, Any], bits: Mapping[str, int]) -> None:
    """Raise ValueError if a member that is present is not a quantity of its size.

    bits: number of bits by member.
    """
    for name in document.keys() & bits.keys():
        if document[name] is None:
            continue
        try:
            quantity(document[name], bits[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
