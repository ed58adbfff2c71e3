"""`eth_`: the network's fork schedule, and the oldest blocks that are available.

Source: https://eips.ethereum.org/EIPS/eip-7910; execution-apis src/eth/client.yaml
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evm.headers import Header
from jsonrpc.text import dump
from nodeapi.encoding import data, quantity
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.schemas.building import named
from nodeapi.schemas.network import CAPABILITIES, CONFIG
from nodeapi.schemas.values import NO_ACCOUNTS
from postgres.errors import Unavailable

if TYPE_CHECKING:
    from evm.chain_config import ChainConfig

_KEPT_WITH = {
    "state": "eth_getBalance",
    "tx": "eth_getTransactionByHash",
    "logs": "eth_getLogs",
    "receipts": "eth_getTransactionReceipt",
    "blocks": "eth_getBlockByNumber",
    "stateproofs": "eth_getProof",
}
"""Members of eth_capabilities, each with the method that serves this data."""


@registry.method(
    "eth_accounts",
    result=named("accounts", NO_ACCOUNTS),
    summary="Returns the accounts that the node can sign for: always none.",
)
def get_accounts(context: Context) -> bytes:
    """Return an empty list."""
    return b"[]"


@registry.method(
    "eth_config",
    result=named("config", CONFIG),
    summary="Returns the active, the next and the last scheduled fork.",
)
async def get_config(context: Context) -> bytes:
    """Return the forks by time of the network's schedule; see EIP-7910."""
    store, network_id = context.store, context.network.id
    config = await store.chain_config(network_id)
    genesis_config = await store.genesis_config(network_id)
    genesis, head = await _header(context, 0), await _header(context, "latest")
    return await asyncio.to_thread(
        _config, config, dict(genesis_config), genesis, head.timestamp
    )


@registry.method(
    "eth_capabilities",
    result=named("capabilities", CAPABILITIES),
    summary="Returns the oldest blocks for which state, transactions, logs, receipts, "
    "blocks and proofs are available.",
)
async def get_capabilities(context: Context) -> bytes:
    """Return the head, and the oldest block of each kind of data.

    A proof of an account of which very many slots have changed may fail nevertheless.
    """
    head = await _header(context, "latest")
    kept = await context.store.kept_data(context.network.id)
    oldest = {
        "state": kept.oldest_state,
        "tx": kept.oldest_block,
        "logs": kept.oldest_block,
        "receipts": kept.oldest_block,
        "blocks": kept.oldest_block,
        "stateproofs": kept.oldest_proof,
    }
    windows = {"stateproofs": kept.proof_blocks}
    members = [
        b'"head":{"number":%b,"hash":%b}' % (quantity(head.number), data(head.hash))
    ]
    for name, method in _KEPT_WITH.items():
        found = b'"disabled":true'
        if registry.find(method) is not None:
            found = _kept_from(oldest[name], windows.get(name))
        members.append(b'"%b":{%b}' % (name.encode(), found))
    return b"{" + b",".join(members) + b"}"


def _kept_from(oldest: int, window: int | None) -> bytes:
    """Return the members of data that is available from a block on.

    window: number of blocks below the head for which it is kept, None without a limit.
    """
    members = b'"disabled":false,"oldestBlock":%b' % quantity(oldest)
    if window is not None:
        members += b',"deleteStrategy":{"type":"window","retentionBlocks":%b}' % (
            quantity(window)
        )
    return members


async def _header(context: Context, number_or_tag: int | str) -> Header:
    """Return the header of a block that a network with blocks has."""
    store, network_id = context.store, context.network.id
    block_hash = await store.canonical_hash(network_id, number_or_tag)
    header = None if block_hash is None else await store.header(network_id, block_hash)
    if header is None:
        raise Unavailable("the network has no blocks yet")
    return header


def _config(
    config: ChainConfig,
    genesis_config: dict[str, object],
    genesis: Header,
    head_timestamp: int,
) -> bytes:
    # Importing it loads what reading the config has loaded before.
    from nodeapi.forks.config import Genesis, fork_config

    origin = Genesis(genesis_config, genesis.hash, genesis.timestamp)
    return dump(fork_config(config, origin, head_timestamp))
