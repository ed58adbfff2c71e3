"""Opening a network for import: made from its genesis when it is new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from networks.models import Network
from networks.services import create_network
from nodeapi.chain.database import import_lock
from nodeapi.chain.genesis import store_genesis, verified_genesis
from nodeapi.evm.chain_config import ChainConfig
from nodeapi.models import Block

if TYPE_CHECKING:
    import psycopg


class NetworkMismatch(ValueError):
    """Raised when a network can't be opened as it was asked for."""


def open_network(
    connection: psycopg.Connection[Any],
    slug: str,
    *,
    name: str | None = None,
    genesis: dict[str, Any] | None = None,
) -> int:
    """Return a network's id; a new one is made, with its block 0.

    Raises: NetworkMismatch for a new network without genesis, and for an old one with
    another genesis; ImportRunning for other forks than those that a running import
    executes; InvalidChainConfig, GenesisError, ValidationError.
    """
    network = Network.objects.filter(slug=slug).first()
    if genesis is None:
        if network is None or network.head_hash is None:
            raise NetworkMismatch(f"network {slug} has no blocks: --genesis is needed")
        return network.pk
    config = ChainConfig.from_genesis(genesis)
    verified, trie = verified_genesis(genesis, config)
    genesis_hash = verified.block.header.hash
    without_alloc = {key: value for key, value in genesis.items() if key != "alloc"}
    if network is None:
        network = create_network(
            slug=slug,
            name=name or slug,
            chain_id=config.chain_id,
            genesis=without_alloc,
            genesis_hash=genesis_hash,
        )
    elif bytes(network.genesis_hash) != genesis_hash:
        raise NetworkMismatch(
            f"network {slug} has the genesis 0x{bytes(network.genesis_hash).hex()}, "
            f"this one is 0x{genesis_hash.hex()}"
        )
    if network.head_hash is None:
        store_genesis(connection, network.pk, verified, trie)
    if network.genesis != without_alloc:
        _change_config(connection, network, config, without_alloc)
    return network.pk


def stored_config(network_id: int) -> ChainConfig:
    """Return a network's rules; nobody changes them while its import lock is held."""
    return ChainConfig.from_genesis(Network.objects.get(pk=network_id).genesis)


def _change_config(
    connection: psycopg.Connection[Any],
    network: Network,
    config: ChainConfig,
    genesis: dict[str, Any],
) -> None:
    """Take a genesis that schedules other forks, if none of them is past.

    Raises: NetworkMismatch, ImportRunning.
    """
    with import_lock(connection, network.pk):
        network.refresh_from_db()  # the last import may have ended just now
        old = ChainConfig.from_genesis(network.genesis)
        head = Block.objects.get(network=network, hash=network.head_hash)
        past = head.number, head.timestamp
        if old.until(*past) != config.until(*past):
            raise NetworkMismatch(
                f"network {network.slug} has executed its blocks under another config"
            )
        network.genesis = genesis
        network.save(update_fields=["genesis"])
