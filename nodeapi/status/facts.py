"""Head, lag, follower, upstreams, quarantined blocks and records of a network, as text."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Count, F, Func, IntegerField, Sum
from django.db.models.functions import Coalesce

from evm.hexadecimal import to_hex
from keys.charts.words import duration, share
from legible import words
from legible.text import visible
from networks.models import Network, Upstream
from nodeapi.models import (
    Block,
    FollowerStatus,
    QuarantinedBlock,
    TransactionRecord,
    UpstreamStatus,
)
from nodeapi.status.block_states import Tags, tags_of
from nodeapi.status.following import Following, blocks_behind, following

QUARANTINED_SHOWN = 50
"""Maximum number of quarantined blocks on the page. The newest ones are shown."""


@dataclass(frozen=True, slots=True)
class FollowerFacts:
    """The state of the process that follows the network."""

    state: Following
    started_at: datetime | None
    updated_at: datetime | None
    alarm: str

    @property
    def is_running(self) -> bool:
        """Whether the process has written its status recently."""
        return self.state not in (Following.NO_UPSTREAMS, Following.STOPPED)

    @property
    def is_bad(self) -> bool:
        """Whether staff have to act."""
        return self.state in (Following.STOPPED, Following.ALARM)


@dataclass(frozen=True, slots=True)
class UpstreamFacts:
    """An upstream with its measurements, formatted as text. The URL is masked."""

    name: str
    note: str
    state: str
    """`disabled`, `not contacted`, `backing off`, `failing`, `behind` or `ok`."""
    head: str
    behind: str
    """Blocks behind the highest head of all upstreams; "" if it is none."""
    latency: str
    requests: str
    errors: str
    last_error: str
    last_error_at: datetime | None
    backing_off_until: datetime | None
    client_version: str

    @property
    def is_bad(self) -> bool:
        """Whether the upstream can't be used at present."""
        return self.state in ("backing off", "failing", "behind")


@dataclass(frozen=True, slots=True)
class QuarantinedFacts:
    """A quarantined block, formatted as text."""

    pk: int
    number: int
    hash: str
    reason: str
    upstream: str
    """The masked URL; `deleted` if the upstream was deleted."""
    at: datetime


@dataclass(frozen=True, slots=True)
class NetworkStatus:
    """Content of the status page."""

    head_number: int | None
    head_hash: str
    head_moment: str
    head_age: str
    """Time since the timestamp of the head."""
    lag_seconds: str
    """Age of the head while the upstreams have newer blocks, otherwise `0 s`."""
    progress: str
    """What a network that is preparing has done and still has to do; "" for others."""
    lag_blocks: int | None
    """Blocks behind the highest head of the upstreams, None if that is unknown."""
    tags: Tags
    checkpoint: int | None
    oldest_blocks: dict[str, int] | None
    """See `networks.models.Network`; None if the network started at block 0."""
    warnings: list[str]
    """Sentences about forks that this version can't execute, and about differences of
    the upstreams' schedules."""
    follower: FollowerFacts
    upstreams: list[UpstreamFacts]
    quarantined: list[QuarantinedFacts]


def network_status(network: Network, now: datetime) -> NetworkStatus:
    """Return the status of a network. now: with a time zone."""
    from evm.headers import decode_header  # loads the EVM

    status = FollowerStatus.objects.filter(network=network).first()
    best = status.best_number if status else None
    head = _head(network)
    timestamp = decode_header(bytes(head.header)).timestamp if head else 0
    behind = blocks_behind(network, status, now)
    age = words.age(now.timestamp() - timestamp) if head else "–"
    return NetworkStatus(
        head_number=network.head_number,
        head_hash=to_hex(head.hash) if head else "",
        head_moment=words.moment(timestamp) if head else "",
        head_age=age,
        lag_seconds=age if behind else "0 s",
        progress=progress(network),
        lag_blocks=behind,
        tags=tags_of(network),
        checkpoint=network.checkpoint_number,
        oldest_blocks=network.oldest_blocks,
        warnings=_warnings(network),
        follower=_follower(network, status, now),
        upstreams=_upstreams(network, best, now),
        quarantined=_quarantined(network),
    )


def progress(network: Network) -> str:
    """Return the progress of a network's first import as text, "" after it."""
    from nodeapi.chain.position import ANCESTORS_KEPT  # loads the EVM

    if not network.is_preparing:
        return ""
    status = FollowerStatus.objects.filter(network=network).first()
    head, checkpoint = network.head_number or 0, network.checkpoint_number
    if checkpoint is not None and head == 0:
        due = min(ANCESTORS_KEPT, checkpoint)
        oldest = network.oldest_number
        stored = 0 if oldest is None else checkpoint - oldest + 1
        return f"{stored} of {due} blocks up to the checkpoint are stored"
    best = None if status is None else status.best_number
    if status is None or best is None or best <= head:
        return ""
    seconds = (status.updated_at - status.process_started_at).total_seconds()
    done = 0 if status.starting_number is None else head - status.starting_number
    if done <= 0 or seconds <= 0:
        return f"block {words.number(head)} of {words.number(best)}"
    left = (best - head) * seconds / done
    return (
        f"block {words.number(head)} of {words.number(best)}, "
        f"{done / seconds:,.1f} blocks per second, {words.age(left)} left"
    )


def _head(network: Network) -> Block | None:
    if network.head_hash is None:
        return None
    blocks = Block.objects.filter(network=network, hash=bytes(network.head_hash))
    return blocks.only("hash", "header").first()


def _warnings(network: Network) -> list[str]:
    from evm.chain_config import ChainConfig  # loads the EVM
    from nodeapi.forks.check import UpcomingFork

    config = ChainConfig.from_genesis(network.genesis)
    scheduled = [
        str(fork if fork.time is None else UpcomingFork(fork.name, fork.time))
        for fork in config.unknown_forks
    ]
    statuses = UpstreamStatus.objects.filter(
        upstream__network=network, upstream__is_enabled=True
    )
    of_upstreams = [
        f"{status.upstream}: {text}"
        for status in statuses.select_related("upstream").order_by("upstream")
        for text in status.fork_warnings.splitlines()
        if text not in scheduled
    ]
    return scheduled + of_upstreams


def _follower(
    network: Network, status: FollowerStatus | None, now: datetime
) -> FollowerFacts:
    return FollowerFacts(
        state=following(network, now),
        started_at=status.process_started_at if status else None,
        updated_at=status.updated_at if status else None,
        alarm=status.alarm if status else "",
    )


def _quarantined(network: Network) -> list[QuarantinedFacts]:
    found = QuarantinedBlock.objects.filter(network=network)
    newest = found.select_related("upstream").order_by("-id")[:QUARANTINED_SHOWN]
    return [
        QuarantinedFacts(
            pk=block.pk,
            number=block.number,
            hash=to_hex(block.hash),
            reason=visible(block.reason),
            upstream=str(block.upstream or "deleted"),
            at=block.at,
        )
        for block in newest
    ]


def _upstreams(
    network: Network, best: int | None, now: datetime
) -> list[UpstreamFacts]:
    upstreams = list(network.upstreams.all())
    found = UpstreamStatus.objects.filter(upstream__in=upstreams)
    statuses = {status.upstream_id: status for status in found}
    return [
        _upstream(upstream, statuses.get(upstream.pk), best, now)
        for upstream in upstreams
    ]


def _upstream(
    upstream: Upstream, status: UpstreamStatus | None, best: int | None, now: datetime
) -> UpstreamFacts:
    status = status or UpstreamStatus(upstream=upstream)
    head, until = status.head_number, status.backing_off_until
    behind = max(0, best - head) if head is not None and best is not None else 0
    return UpstreamFacts(
        name=str(upstream),
        note=upstream.note,
        state=upstream_state(upstream, status, behind, now),
        head="–" if head is None else words.number(head),
        behind=words.number(behind) if behind else "",
        latency=duration(
            None if status.latency_ms is None else 1000 * status.latency_ms
        ),
        requests=words.number(status.requests),
        errors=f"{status.errors:,} ({share(status.errors, status.requests)})",
        last_error=visible(status.last_error),
        last_error_at=status.last_error_at,
        backing_off_until=until if until and until > now else None,
        client_version=visible(status.client_version),
    )


def upstream_state(
    upstream: Upstream, status: UpstreamStatus, behind: int, now: datetime
) -> str:
    """Return an upstream's state; see `UpstreamFacts.state`."""
    if not upstream.is_enabled:
        return "disabled"
    if status.checked_at is None:
        return "not contacted"
    if status.backing_off_until is not None and status.backing_off_until > now:
        return "backing off"
    if status.head_number is None:
        return "failing"
    return "behind" if behind > 1 else "ok"


logger = logging.getLogger(__name__)


@transaction.atomic
def release_block(*, network: Network, block_id: int) -> QuarantinedBlock | None:
    """Release a quarantined block of all upstreams that have sent it.

    The follower reads the change within a few seconds. It imports the block again if an
    upstream still reports it.

    block_id: the id of one of the block's rows.

    Returns: the released block, or None if it is not quarantined any more.
    """
    found = QuarantinedBlock.objects.filter(network=network, pk=block_id)
    block = found.select_for_update().first()
    if block is None:
        return None
    QuarantinedBlock.objects.filter(network=network, hash=bytes(block.hash)).delete()
    logger.info(
        "network %s: block %d 0x%s was released from quarantine",
        network.slug,
        block.number,
        bytes(block.hash).hex(),
    )
    return block


BLOCKS = 100
"""Number of newest blocks that are measured: some thousand rows, read in milliseconds."""

_COLUMNS = ("receipt", "calls", "prestate", "details")


@dataclass(frozen=True, slots=True)
class RecordSizes:
    """Stored size of the trace records and receipts of some blocks.

    blocks, transactions: their numbers. total: bytes.
    """

    blocks: int
    transactions: int
    total: int

    def __str__(self) -> str:
        if not self.transactions:
            return "no transactions yet"
        return (
            f"{self.total / self.transactions:,.0f} bytes per transaction, "
            f"{self.total / self.blocks:,.0f} bytes per block "
            f"(newest {self.blocks} blocks)"
        )


def newest_record_sizes(network: Network) -> RecordSizes:
    """Return the stored size of the records of a network's newest canonical blocks."""
    if network.head_number is None:
        return RecordSizes(0, 0, 0)
    newest = {"network": network, "number__gt": network.head_number - BLOCKS}
    blocks = Block.objects.filter(is_canonical=True, **newest)
    lengths = [
        Func(F(column), function="octet_length", output_field=IntegerField())
        for column in _COLUMNS
    ]
    found = TransactionRecord.objects.filter(block__in=blocks.values("pk")).aggregate(
        transactions=Count("index"),
        total=Coalesce(Sum(lengths[0] + lengths[1] + lengths[2] + lengths[3]), 0),
    )
    return RecordSizes(blocks.count(), found["transactions"], found["total"])
