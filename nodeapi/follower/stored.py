"""Reads of the follower's settings and of its own forkchoice from the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eth_typing import Hash32

from evm.chain_config import ChainConfig
from networks.directory import UpstreamView
from networks.models import Network
from nodeapi.follower.choice import Own, Point
from nodeapi.follower.watcher import Expected

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a network that its follower needs. They may change at any time."""

    upstreams: tuple[UpstreamView, ...] = ()
    """The enabled upstreams, in the configured order."""
    agree: int = 1
    keep_side_blocks: int | None = None


def read_settings(network_id: int) -> Settings:
    """Read the settings of a network. Raises: Network.DoesNotExist."""
    network = Network.objects.only("agree", "keep_side_blocks").get(pk=network_id)
    return Settings(
        tuple(
            UpstreamView(upstream.pk, upstream.url, upstream.headers)
            for upstream in network.upstreams.filter(is_enabled=True)
        ),
        max(network.agree, 1),
        network.keep_side_blocks,
    )


def read_expected(network_id: int) -> Expected:
    """Read a network's fork schedule and genesis hash. Raises: Network.DoesNotExist."""
    network = Network.objects.only("genesis", "genesis_hash").get(pk=network_id)
    return Expected(
        ChainConfig.from_genesis(network.genesis),
        Hash32(bytes(network.genesis_hash)),
    )


def is_sparse(network_id: int) -> bool:
    """Return whether a network has started at a checkpoint."""
    started = Network.objects.only("checkpoint_number").get(pk=network_id)
    return started.checkpoint_number is not None


def own_forkchoice(connection: psycopg.Connection[Any], network_id: int) -> Own:
    """Read the head, safe and finalized blocks of a network.

    Raises: LookupError if the network has no block.
    """
    row = connection.execute(
        "SELECT head_number, head_hash, safe.number, safe_hash, finalized.number,"
        " finalized_hash FROM networks_network AS network"
        " LEFT JOIN nodeapi_block AS safe"
        " ON safe.network_id = network.id AND safe.hash = safe_hash"
        " LEFT JOIN nodeapi_block AS finalized"
        " ON finalized.network_id = network.id AND finalized.hash = finalized_hash"
        " WHERE network.id = %b",
        (network_id,),
        binary=True,
    ).fetchone()
    if row is None or row[0] is None:
        raise LookupError(f"network {network_id} has no genesis block")
    head, safe, finalized = (
        None if number is None else Point(number, Hash32(block_hash))
        for number, block_hash in zip(row[::2], row[1::2], strict=True)
    )
    assert head is not None
    return Own(head, safe, finalized)
