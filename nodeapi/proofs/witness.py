"""Execution witnesses as JSON.

Source: go-ethereum core/stateless/encoding.go, core/types/gen_header_json.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import orjson

from evm.headers import Header


def witness_document(
    headers: Iterable[Header], codes: Collection[bytes], nodes: Collection[bytes]
) -> bytes:
    """Return the result of debug_executionWitness.

    `codes` and `state` are sorted. geth, whose maps have no order, returns them in any.
    """
    return orjson.dumps(
        {
            "headers": [_header(header) for header in headers],
            "codes": ["0x" + code.hex() for code in sorted(codes)],
            "state": ["0x" + node.hex() for node in sorted(nodes)],
            "keys": None,
        }
    )


def _header(header: Header) -> dict[str, Any]:
    """Return a header as geth's types.Header. Fields of later forks are null."""
    return {
        "parentHash": _data(header.parent_hash),
        "sha3Uncles": _data(header.uncles_hash),
        "miner": _data(header.coinbase),
        "stateRoot": _data(header.state_root),
        "transactionsRoot": _data(header.transactions_root),
        "receiptsRoot": _data(header.receipts_root),
        "logsBloom": _data(header.logs_bloom),
        "difficulty": hex(header.difficulty),
        "number": hex(header.number),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "timestamp": hex(header.timestamp),
        "extraData": _data(header.extra_data),
        "mixHash": _data(header.mix_hash),
        "nonce": _data(header.nonce),
        "baseFeePerGas": _quantity(header.base_fee_per_gas),
        "withdrawalsRoot": _data(header.withdrawals_root),
        "blobGasUsed": _quantity(header.blob_gas_used),
        "excessBlobGas": _quantity(header.excess_blob_gas),
        "parentBeaconBlockRoot": _data(header.parent_beacon_root),
        "requestsHash": _data(header.requests_hash),
        "slotNumber": None,
        "hash": _data(header.hash),
    }


def _data(value: bytes | None) -> str | None:
    return None if value is None else "0x" + value.hex()


def _quantity(value: int | None) -> str | None:
    return None if value is None else hex(value)
