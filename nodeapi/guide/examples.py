"""Arguments that find something on a network, for the OpenRPC document and its console."""

from __future__ import annotations

from typing import Any

from networks.models import Network, Tracer
from nodeapi.explore.rows import summaries
from nodeapi.explore.summaries import Summary
from nodeapi.models import Block, StorageVersion

SEARCHED_BLOCKS = 1000
"""How far below the head a block with transactions is looked for."""

_TRACERS = (Tracer.CALL, Tracer.PRESTATE, Tracer.FLAT_CALL, Tracer.FOUR_BYTE)
"""Whose answers are short, the most usual first."""


def examples(network: Network) -> dict[str, Any]:
    """Return arguments by the names of parameters; few of them where no block is.

    They are of the newest block with transactions, which are few rows by index: whoever
    asks for the document has them read.
    """
    found: dict[str, Any] = {"data": "0x", **_options(network)}
    block = _block(network)
    if block is not None:
        found["blockHash"] = _hex(block.hash)
        found["block"] = hex(block.number)
        found["fullTransactions"] = False
        found |= _transaction(network, summaries(block, 1))
    return found


def _options(network: Network) -> dict[str, Any]:
    offered = [tracer for tracer in _TRACERS if tracer in network.tracers]
    return {"options": {"tracer": offered[0].value}} if offered else {}


def _block(network: Network) -> Block | None:
    """Return a network's newest block with transactions, without them its head."""
    if network.head_number is None:
        return None
    canonical = Block.objects.filter(
        network=network,
        is_canonical=True,
        number__gt=network.head_number - SEARCHED_BLOCKS,
    ).only("hash", "number")
    newest = canonical.order_by("-number")
    return newest.filter(transaction_count__gt=0).first() or newest.first()


def _transaction(network: Network, found: list[Summary]) -> dict[str, Any]:
    """Return arguments of some transactions: of one that calls a contract, if it can be."""
    if not found:
        return {}
    called = [bytes.fromhex(one.to[2:]) for one in found if one.to]
    stored = (
        StorageVersion.objects.filter(network=network, address__in=called)
        .order_by("address", "slot", "block_number")
        .first()
    )
    chosen, address, position = found[0], found[0].to or found[0].sender, "0x0"
    if stored is not None:
        address, position = _hex(stored.address), _hex(stored.slot)
        chosen = next(one for one in found if one.to == address)
    return {
        "transactionHash": chosen.hash,
        "transactionIndex": hex(chosen.index),
        "address": address,
        "storagePosition": position,
        "positions": {address: [f"0x{int(position, 16):064x}"]},
    }


def _hex(value: bytes | memoryview[int]) -> str:
    """Return what a column holds as clients write it."""
    return "0x" + bytes(value).hex()
