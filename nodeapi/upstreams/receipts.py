"""The receipts of a block from one upstream, verified by the header's receipts root.

Source: execution-apis src/schemas/receipt.yaml; go-ethereum v1.17.10
internal/ethapi/api.go `MarshalReceipt`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eth_typing import Address, Hash32

from evm.hexadecimal import to_hex
from evm.receipts import Log, Receipt, logs_bloom
from evm.trie_roots import ordered_root
from nodeapi.upstreams.block_rlp import address, data, hash32
from nodeapi.upstreams.client import MAX_BLOCK_BYTES, UpstreamClient
from nodeapi.upstreams.errors import (
    MethodUnavailable,
    UnusableAnswer,
    UpstreamError,
)
from nodeapi.upstreams.quantities import quantity
from nodeapi.upstreams.state import call_optional

MAX_TOPICS = 4

_INVALID_PARAMS = -32602
_NOT_FOUND = -32000


async def block_receipts(
    client: UpstreamClient,
    block_hash: bytes,
    receipts_root: bytes,
    transactions: Sequence[bytes],
) -> list[Receipt]:
    """Return the receipts of a block in the order of its transactions.

    transactions: their hashes, by which they are requested if the upstream does not offer
        all receipts of a block at once.

    Raises: UpstreamError; UpstreamUnavailable, UnusableAnswer if the receipts do not have
        the root.
    """
    if not transactions:
        return decode_receipts([], receipts_root)
    try:
        found = await call_optional(
            client,
            "eth_getBlockReceipts",
            to_hex(block_hash),
            max_bytes=MAX_BLOCK_BYTES,
        )
    except UpstreamError as error:
        if not isinstance(error, MethodUnavailable) and error.code != _INVALID_PARAMS:
            raise
        found = await client.batch(
            [("eth_getTransactionReceipt", (to_hex(each),)) for each in transactions],
            MAX_BLOCK_BYTES,
        )
        for each in found:
            if isinstance(each, UpstreamError):
                raise each from None
    if found is None:
        raise UpstreamError(_NOT_FOUND, "there are no receipts of the block")
    return decode_receipts(found, receipts_root)


def decode_receipts(documents: Any, receipts_root: bytes) -> list[Receipt]:
    """Return the receipts of a result of eth_getBlockReceipts.

    Only members that the root commits to are read, and the type of each receipt.

    Raises: UnusableAnswer if a member is malformed or the receipts have another root.
    """
    receipts: list[Receipt] = []
    try:
        if not isinstance(documents, list):
            raise ValueError("no list")
        for document in documents:
            before = receipts[-1].cumulative_gas_used if receipts else 0
            receipts.append(_receipt(document, before))
    except ValueError as error:
        place = f"receipt {len(receipts)}"
        raise UnusableAnswer(f"{place} is malformed: {error}") from None
    root = ordered_root([receipt.encode() for receipt in receipts])
    if root != receipts_root:
        raise UnusableAnswer("the receipts do not have the header's root")
    return receipts


def _receipt(document: Any, gas_used_before: int) -> Receipt:
    if not isinstance(document, dict):
        raise ValueError("no object")
    logs = document.get("logs")
    if not isinstance(logs, list):
        raise ValueError("no logs")
    found = [_log(log) for log in logs]
    status, root = document.get("status"), document.get("root")
    gas_used = quantity(document.get("cumulativeGasUsed"), 63)
    if gas_used < gas_used_before:
        raise ValueError("the cumulative gas decreases")
    return Receipt(
        # Old nodes omit the type of legacy transactions.
        type=quantity(document.get("type", "0x0"), 7),
        status=None if status is None else quantity(status, 1),
        # Before Byzantium. Other nodes may send an empty root.
        state_root=Hash32(hash32(root)) if status is None else None,
        cumulative_gas_used=gas_used,
        gas_used=gas_used - gas_used_before,
        bloom=logs_bloom(found),
        logs=found,
    )


def _log(document: Any) -> Log:
    if not isinstance(document, dict):
        raise ValueError("no log object")
    topics = document.get("topics")
    if not isinstance(topics, list) or len(topics) > MAX_TOPICS:
        raise ValueError(f"no list of up to {MAX_TOPICS} topics")
    return Log(
        Address(address(document.get("address"))),
        tuple(map(hash32, topics)),
        data(document.get("data")),
    )
