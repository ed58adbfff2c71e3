"""The state of a network for operators: head, follower and upstreams, as JSON."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.utils import timezone

from evm.hexadecimal import to_hex_or_none
from networks.models import Network, Upstream
from nodeapi.models import Block, FollowerStatus, UpstreamStatus

SILENT = timedelta(seconds=10)
"""A follower writes its status every second. After this time it counts as stopped."""

BLOCKS_BEHIND = 3
"""A network counts as catching up if it is at least this number of blocks behind its
upstreams."""


class Following(StrEnum):
    """The state of a network's follower."""

    NO_UPSTREAMS = "no upstreams"
    STOPPED = "stopped"
    ALARM = "alarm"
    CATCHING_UP = "catching up"
    FOLLOWING = "following"


def following(network: Network, now: datetime | None = None) -> Following:
    """Return the state of a network's follower."""
    if not network.upstreams.filter(is_enabled=True).exists():
        return Following.NO_UPSTREAMS
    status = FollowerStatus.objects.filter(network=network).first()
    if status is None or status.updated_at < (now or timezone.now()) - SILENT:
        return Following.STOPPED
    if status.alarm:
        return Following.ALARM
    behind = blocks_behind(network, status, now)
    if behind is None or behind >= BLOCKS_BEHIND:
        return Following.CATCHING_UP
    return Following.FOLLOWING


def blocks_behind(
    network: Network, status: FollowerStatus | None, now: datetime | None = None
) -> int | None:
    """Return the number of blocks from the head to the upstreams' highest head.

    None if it is unknown, because no upstream is usable or no follower reports.
    """
    if status is None or status.best_number is None:
        return None
    if status.updated_at < (now or timezone.now()) - SILENT:
        return None
    return max(status.best_number - (network.head_number or 0), 0)


def network_state(network: Network) -> dict[str, Any]:
    """Return the state of a network as JSON. URLs of upstreams are masked.

    Times are in RFC 3339 format, hashes in hexadecimal.
    """
    from evm.chain_config import ChainConfig  # loads the EVM

    status = FollowerStatus.objects.filter(network=network).first()
    upstreams = network.upstreams.select_related("status")
    config = ChainConfig.from_genesis(network.genesis)
    return {
        "network": network.slug,
        "name": network.name,
        "chain_id": network.chain_id,
        "state": network.state,
        "preparing": network.is_preparing,
        "following": following(network),
        "head": _block(network, network.head_hash),
        "safe": _block(network, network.safe_hash),
        "finalized": _block(network, network.finalized_hash),
        "checkpoint": _checkpoint(network),
        "agree": network.agree,
        "follower": None if status is None else _follower(network, status),
        "upstreams": [_upstream(upstream) for upstream in upstreams],
        "unsupported_forks": [
            {"name": fork.name, "block": fork.block, "time": fork.time}
            for fork in config.unknown_forks
        ],
    }


def _checkpoint(network: Network) -> dict[str, Any] | None:
    """Return the block at which a network started, None if it was block 0."""
    if network.checkpoint_number is None:
        return None
    return {
        "number": network.checkpoint_number,
        "hash": to_hex_or_none(network.checkpoint_hash),
        "oldest": network.oldest_blocks,
        "by_proofs": network.oldest_by_proofs,
    }


def _block(network: Network, block_hash: Any) -> dict[str, Any] | None:
    if block_hash is None:
        return None
    block = Block.objects.filter(network=network, hash=bytes(block_hash)).first()
    return {
        "hash": to_hex_or_none(block_hash),
        "number": None if block is None else block.number,
        "timestamp": None if block is None else block.timestamp,
    }


def _follower(network: Network, status: FollowerStatus) -> dict[str, Any]:
    return {
        "started_at": _time(status.process_started_at),
        "updated_at": _time(status.updated_at),
        "best_number": status.best_number,
        "best_hash": to_hex_or_none(status.best_hash),
        "blocks_behind": blocks_behind(network, status),
        "alarm": status.alarm,
    }


def _upstream(upstream: Upstream) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": upstream.pk,
        "url": str(upstream),
        "enabled": upstream.is_enabled,
        "note": upstream.note,
        "status": None,
    }
    status: UpstreamStatus | None = getattr(upstream, "status", None)
    if status is not None:
        found["status"] = {
            "head_number": status.head_number,
            "head_hash": to_hex_or_none(status.head_hash),
            "client_version": status.client_version,
            "latency_ms": status.latency_ms,
            "requests": status.requests,
            "errors": status.errors,
            "last_error": status.last_error,
            "last_error_at": _time(status.last_error_at),
            "backing_off_until": _time(status.backing_off_until),
            "checked_at": _time(status.checked_at),
            "fork_warnings": status.fork_warnings.splitlines(),
        }
    return found


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="milliseconds")
