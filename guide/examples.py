"""Example arguments that exist on a network, for the OpenRPC document and the console."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from evm.hexadecimal import to_hex
from explorer.rows import summaries
from explorer.summaries import Summary
from networks.models import Network, Tracer
from nodeapi.models import Block, StorageVersion
from nodeapi.schemas.sample_arguments import ARGUMENTS, IDENTITY

SEARCHED_BLOCKS = 1000
"""Blocks below the head in which a transaction is searched."""

SEARCHED_ACCOUNTS = 10
"""Callees of that block whose storage is searched for a slot."""

CACHED_HEADS = 128
"""Heads whose arguments are cached."""

_TRACERS = (Tracer.CALL, Tracer.PRESTATE, Tracer.FLAT_CALL, Tracer.FOUR_BYTE)
"""Tracers with short results, the most usual first."""


_EVERYWHERE = (
    "data",
    "traceTypes",
    "blockCount",
    "newestBlock",
    "rewardPercentiles",
    "indices",
    "nonce",
    "blockNumber",
    "pageNumber",
    "pageSize",
    "transactionPosition",
    "startKey",
    "maxResults",
    "startNumber",
)
"""Parameters whose arguments exist on every network."""


def examples(network: Network) -> Mapping[str, Any]:
    """Return example arguments by parameter name. Some require a network with blocks.

    They are taken from the newest block with transactions. The document is public, so
    they are cached for each head.
    """
    options = {name: ARGUMENTS[name] for name in _EVERYWHERE} | _options(network)
    if network.head_number is None or network.head_hash is None:
        return options
    head = bytes(network.head_hash)
    return options | _below(network.pk, network.head_number, head)


@lru_cache(CACHED_HEADS)
def _below(network_id: int, head_number: int, head_hash: bytes) -> dict[str, Any]:
    """Return example arguments from the newest block with transactions."""
    found: dict[str, Any] = {}
    block = _block(network_id, head_number)
    if block is not None:
        found["blockHash"] = found["startHash"] = to_hex(block.hash)
        found["block"] = hex(block.number)
        found["filter"] = {"fromBlock": found["block"], "toBlock": found["block"]}
        found["fullTransactions"] = False
        number = hex(block.number)
        found["traceFilter"] = {"fromBlock": number, "toBlock": number}
        found |= _transaction(network_id, summaries(block, 1))
    return found


def _options(network: Network) -> dict[str, Any]:
    offered = [tracer for tracer in _TRACERS if tracer in network.tracers]
    return {"options": {"tracer": offered[0].value}} if offered else {}


def _block(network_id: int, head_number: int) -> Block | None:
    """Return a network's newest block with transactions, else its head."""
    canonical = Block.objects.filter(
        network=network_id,
        is_canonical=True,
        number__gt=head_number - SEARCHED_BLOCKS,
    ).only("hash", "number")
    newest = canonical.order_by("-number")
    return newest.filter(transaction_count__gt=0).first() or newest.first()


def _transaction(network_id: int, found: list[Summary]) -> dict[str, Any]:
    """Return example arguments from a transaction, preferably a contract call."""
    if not found:
        return {}
    chosen, address, position = (
        found[0],
        (found[0].to or found[0].sender).lower(),
        "0x0",
    )
    calls: dict[str, Summary] = {}
    for one in found:
        if one.to:
            calls.setdefault(one.to.lower(), one)
    for account, summary in islice(calls.items(), SEARCHED_ACCOUNTS):
        slot = _lowest_slot(network_id, account)
        if slot is not None:
            chosen, address, position = summary, account, slot
            break
    example = {
        "from": chosen.sender.lower(),
        "to": IDENTITY,
        "gas": "0x186a0",
        "data": "0x2a",
    }
    return {
        "transactionHash": chosen.hash,
        "transactionIndex": hex(chosen.index),
        "transactionOrCall": chosen.hash,
        "address": address,
        "call": example,
        "payload": {"blockStateCalls": [{"calls": [example]}]},
        "calls": [[example, ["trace"]]],
        "storagePosition": position,
        "storageKeys": [position],
        "positions": {address: [f"0x{int(position, 16):064x}"]},
    }


def _lowest_slot(network_id: int, account: str) -> str | None:
    """Return the lowest stored slot of an account, None without storage.

    Each query has one account: for several accounts PostgreSQL before 17 reads all
    their slots.
    """
    versions = StorageVersion.objects.filter(
        network=network_id, address=bytes.fromhex(account[2:])
    )
    stored = versions.order_by("slot", "block_number").first()
    return None if stored is None else to_hex(stored.slot)
