"""Proofs of accounts and slots, and execution witnesses."""

from __future__ import annotations

from nodeapi.schemas.building import array_of, component, object_with
from nodeapi.schemas.values import ADDRESS, DATA, HASH32, QUANTITY

PROOF = component(
    "Proof",
    object_with(
        {
            "address": ADDRESS,
            "accountProof": array_of(DATA),
            "balance": QUANTITY,
            "codeHash": HASH32,
            "nonce": QUANTITY,
            "storageHash": HASH32,
            "storageProof": array_of(
                object_with(
                    {
                        "key": {"oneOf": [QUANTITY, HASH32]},
                        "value": QUANTITY,
                        "proof": array_of(DATA),
                    }
                )
            ),
        }
    ),
)

WITNESS = component(
    "Witness",
    object_with(
        {
            "headers": array_of({"type": "object"}),
            "codes": array_of(DATA),
            "state": array_of(DATA),
            "keys": {"type": "null"},
        }
    ),
)
