"""`testing_`: methods for tests of clients, which `NODEAPI_TESTING_METHODS` switches on.

Source: go-ethereum v1.17.10, eth/catalyst/api_testing.go, beacon/engine/types.go;
https://ethereum.github.io/execution-apis/ testing_buildBlockV1
"""

from __future__ import annotations

from typing import Any

from evm.hexadecimal import to_hex
from jsonrpc.params import Param
from jsonrpc.text import kind
from nodeapi.encoding import address, any_data, hash32, index
from nodeapi.errors.blocks import NotCurrentHead
from nodeapi.go.decoding import mismatch
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.node_proofs import run_with_nodes
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.values import DATA, HASH32

BUILDING_SECONDS = 60.0
"""Time limit for building a block."""

_REQUIRED = ("timestamp", "prevRandao", "suggestedFeeRecipient")


def _attributes(value: Any) -> dict[str, Any]:
    """Decode payload attributes to arguments of the task `build_block`."""
    go_type = "PayloadAttributes"
    if type(value) is not dict:
        raise ValueError(mismatch(kind(value), f"engine.{go_type}"))
    for name in _REQUIRED:
        if value.get(name) is None:
            raise ValueError(f"missing required field '{name}' for {go_type}")
    beacon_root = value.get("parentBeaconBlockRoot")
    withdrawals = value.get("withdrawals")
    if withdrawals is not None and type(withdrawals) is not list:
        raise ValueError(mismatch(kind(withdrawals), "[]*types.Withdrawal"))
    return {
        "timestamp": index(value["timestamp"]),
        "fee_recipient": to_hex(address(value["suggestedFeeRecipient"])),
        "mix_hash": to_hex(hash32(value["prevRandao"])),
        "withdrawals": None
        if withdrawals is None
        else [_withdrawal(each) for each in withdrawals],
        "beacon_root": None if beacon_root is None else to_hex(hash32(beacon_root)),
        "slot_number": _index_or_none(value.get("slotNumber")),
        "gas_limit": _index_or_none(value.get("targetGasLimit")),
    }


def _index_or_none(value: Any) -> int | None:
    return None if value is None else index(value)


def _withdrawal(value: Any) -> list[Any]:
    if type(value) is not dict:
        raise ValueError(mismatch(kind(value), "types.Withdrawal"))
    numbers = [
        index(value.get(name, "0x0")) for name in ("index", "validatorIndex", "amount")
    ]
    receiver = to_hex(address(value.get("address", "0x" + "00" * 20)))
    return [*numbers[:2], receiver, numbers[2]]


def _transactions(value: Any) -> list[str] | None:
    """Decode raw transactions. null stands for those of the pool."""
    if value is None:
        return None
    if type(value) is not list:
        raise ValueError(mismatch(kind(value), "[]hexutil.Bytes"))
    return [to_hex(any_data(each)) for each in value]


def _extra_data(value: Any) -> str:
    return "0x" if value is None else to_hex(any_data(value))


@registry.method(
    "testing_buildBlockV1",
    params=[
        Param("parentHash", hash32, HASH32, summary="The hash of the head."),
        Param(
            "payloadAttributes",
            _attributes,
            {"type": "object", "required": list(_REQUIRED)},
            summary="The attributes that a consensus client gives a new block.",
        ),
        Param(
            "transactions",
            _transactions,
            {"oneOf": [{"type": "array", "items": DATA}, {"type": "null"}]},
            required=False,
            summary="Raw transactions; those of the local pool by default.",
        ),
        Param(
            "extraData",
            _extra_data,
            {"oneOf": [DATA, {"type": "null"}]},
            required=False,
            default="0x",
        ),
    ],
    result=named("payload", {"type": "object"}),
    summary="Builds a block on the head, and returns it without importing it. It is for "
    "tests, and only served if the provider turns it on.",
    credits=100,
    is_slow=True,
)
async def build_block(
    context: Context,
    parent_hash: bytes,
    attributes: dict[str, Any],
    transactions: list[str] | None,
    extra_data: str,
) -> Answer:
    """Return the payload of a new block, with the blobs of its transactions."""
    if parent_hash != context.network.head_hash:
        raise NotCurrentHead
    arguments = {
        **attributes,
        "transactions": transactions,
        "extra_data": extra_data,
    }
    return await run_with_nodes(
        context,
        "build_block",
        parent_hash,
        arguments,
        is_cached=False,
        timeout=BUILDING_SECONDS,
    )
