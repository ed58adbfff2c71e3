"""Opening a network for import. A new network is created from its genesis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import psycopg
from django.db import Error as DjangoDatabaseError

from evm.chain_config import ChainConfig
from networks.models import Network
from networks.services import Checkpoint, create_network, delete_network
from nodeapi.chain.database import ImportRunning, import_lock
from nodeapi.chain.genesis import store_genesis, verified_genesis
from nodeapi.models import Block


class NetworkMismatch(ValueError):
    """Raised when a network can't be opened with the given genesis."""


class SameChain(NetworkMismatch):
    """Raised when another network has the same chain id and genesis."""


def open_network(
    connection: psycopg.Connection[Any],
    slug: str,
    *,
    name: str | None = None,
    genesis: dict[str, Any] | None = None,
    checkpoint: Checkpoint | None = None,
) -> int:
    """Return a network's id; see `network_to_import`."""
    with network_to_import(
        connection, slug, name=name, genesis=genesis, checkpoint=checkpoint
    ) as network_id:
        return network_id


@contextmanager
def network_to_import(
    connection: psycopg.Connection[Any],
    slug: str,
    *,
    name: str | None = None,
    genesis: dict[str, Any] | None = None,
    may_repeat: bool = True,
    checkpoint: Checkpoint | None = None,
) -> Iterator[int]:
    """Yield a network's id. A new network is created with its block 0.

    may_repeat: whether a new network may have the chain id and genesis of another one.
    checkpoint: at which a new network starts, None for block 0.

    If the `with` block fails, a new network without further blocks is removed again. If
    the process is killed, the network remains and the next import continues it.

    Raises: NetworkMismatch for a new network without genesis, for an existing one with
        another genesis, and for one that is being deleted; SameChain; ImportRunning if
        the genesis changes the forks while an import is running; InvalidChainConfig,
        GenesisError, ValidationError.
    """
    network = Network.objects.filter(slug=slug).first()
    if network is not None and hasattr(network, "deletion"):
        raise NetworkMismatch(f"network {slug} is being deleted")
    if genesis is None:
        if network is None or network.head_hash is None:
            raise NetworkMismatch(
                f"network {slug} has no blocks: --genesis or --public is required"
            )
        yield network.pk
        return
    config = ChainConfig.from_genesis(genesis)
    verified, trie = verified_genesis(genesis, config)
    is_new = network is None
    without_alloc = {key: value for key, value in genesis.items() if key != "alloc"}
    if network is None:
        same = network_of_chain(config.chain_id, verified.block.header.hash)
        if same is not None and not may_repeat:
            raise SameChain(
                f"the network {same.slug} has the same chain id and genesis"
            )
        network = create_network(
            slug=slug,
            name=name or slug,
            chain_id=config.chain_id,
            genesis=without_alloc,
            genesis_hash=verified.block.header.hash,
            checkpoint=checkpoint,
        )
    _require_genesis(network, verified.block.header.hash)
    with _removed_on_failure(connection, network) if is_new else nullcontext():
        if network.head_hash is None:
            store_genesis(
                connection,
                network.pk,
                verified,
                trie,
                with_state=network.checkpoint_number is None,
            )
        if network.genesis != without_alloc:
            _change_config(connection, network, config, without_alloc)
        yield network.pk


def network_of_chain(chain_id: int, genesis_hash: bytes) -> Network | None:
    """Return a network of this chain, or None."""
    return Network.objects.filter(chain_id=chain_id, genesis_hash=genesis_hash).first()


def _require_genesis(network: Network, genesis_hash: bytes) -> None:
    """Raise NetworkMismatch if a network has another genesis."""
    if bytes(network.genesis_hash) != genesis_hash:
        raise NetworkMismatch(
            f"network {network.slug} has the genesis "
            f"0x{bytes(network.genesis_hash).hex()}, but the given one is "
            f"0x{genesis_hash.hex()}"
        )


@contextmanager
def _removed_on_failure(
    connection: psycopg.Connection[Any], network: Network
) -> Iterator[None]:
    """Delete a network if the `with` block fails.

    It is kept if it has a block besides block 0, if another process is importing into
    it, or if the database has failed.
    """
    try:
        yield
    except BaseException:
        with (
            suppress(ImportRunning, psycopg.Error, DjangoDatabaseError),
            import_lock(connection, network.pk),
        ):
            if not Block.objects.filter(network=network, number__gt=0).exists():
                delete_network(network)
        raise


def stored_config(network_id: int) -> ChainConfig:
    """Return a network's chain id and fork schedule.

    They do not change during an import.
    """
    return ChainConfig.from_genesis(Network.objects.get(pk=network_id).genesis)


def _change_config(
    connection: psycopg.Connection[Any],
    network: Network,
    config: ChainConfig,
    genesis: dict[str, Any],
) -> None:
    """Replace the genesis by one with other forks, if no stored block is affected.

    Raises: NetworkMismatch, ImportRunning.
    """
    with import_lock(connection, network.pk):
        network.refresh_from_db()  # the last import may have ended just now
        old = ChainConfig.from_genesis(network.genesis)
        head = Block.objects.get(network=network, hash=network.head_hash)
        past = head.number, head.timestamp
        if old.until(*past) != config.until(*past):
            raise NetworkMismatch(
                f"network {network.slug} has executed its blocks with another genesis "
                "config; only forks after its head can be changed"
            )
        network.genesis = genesis
        network.save(update_fields=["genesis"])
