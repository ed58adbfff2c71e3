"""Block access lists as JSON, with the names that geth's lists have.

Source: go-ethereum v1.17.10, core/types/bal/bal_encoding.go, `AccountAccess`
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from evm.block_access_list import ListedAccount, decode_access_list


def access_list_document(raw: bytes) -> bytes:
    """Return a list as JSON. raw: its RLP."""
    return orjson.dumps(list(map(_account, decode_access_list(raw))))


def _account(one: ListedAccount) -> dict[str, Any]:
    return {
        "address": f"0x{one.address.hex()}",
        "storageChanges": [
            {"slot": hex(slot), "slotChanges": _changes("postValue", changes)}
            for slot, changes in one.storage.items()
        ],
        "storageReads": list(map(hex, one.reads)),
        "balanceChanges": _changes("postBalance", one.balances),
        "nonceChanges": _changes("postNonce", one.nonces),
        "codeChanges": [
            {"blockAccessIndex": hex(index), "newCode": f"0x{code.hex()}"}
            for index, code in one.codes
        ],
    }


def _changes(name: str, changes: Iterable[tuple[int, int]]) -> list[dict[str, str]]:
    """Return pairs of index and number. name: of the number."""
    return [
        {"blockAccessIndex": hex(index), name: hex(value)} for index, value in changes
    ]
