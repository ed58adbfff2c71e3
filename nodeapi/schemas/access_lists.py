"""Block access lists."""

from __future__ import annotations

from jsonrpc.params import Schema
from nodeapi.schemas.building import array_of, component, object_with, or_null
from nodeapi.schemas.values import ADDRESS, BOOLEAN, DATA, HASH32, QUANTITY


def _changes(name: str, value: Schema = QUANTITY) -> Schema:
    """Return the schema of changes. name: of the member with the new value."""
    return array_of(object_with({"blockAccessIndex": QUANTITY, name: value}))


_LIST = component(
    "BlockAccessList",
    array_of(
        object_with(
            {
                "address": ADDRESS,
                "storageChanges": array_of(
                    object_with(
                        {"slot": QUANTITY, "slotChanges": _changes("postValue")}
                    )
                ),
                "storageReads": array_of(QUANTITY),
                "balanceChanges": _changes("postBalance"),
                "nonceChanges": _changes("postNonce"),
                "codeChanges": _changes("newCode", DATA),
            }
        )
    ),
)

LIST_OR_NULL = or_null(_LIST)
DESCRIBED_OR_NULL = or_null(
    object_with({"computed": BOOLEAN, "list": _LIST, "hash": HASH32})
)
