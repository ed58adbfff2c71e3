"""A network with upstreams, and with all kinds of rows that a follower writes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from evm.blocks import Block
from networks.models import Network, Upstream
from networks.services import add_upstream
from nodeapi.chain.forkchoice import Forkchoice
from nodeapi.models import (
    FollowerStatus,
    ImportTiming,
    QuarantinedBlock,
    UpstreamStatus,
)
from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis
from samples.signers import Signer
from tests.support import chains

CHAIN_ID = 202_612
ALICE = Signer("alice")
SECONDS = 12
REPLACED, ADDED = 3, 4
"""Blocks that the reorganisation of the chain demotes, and those that it promotes."""

SECRET = "0123456789abcdef0123456789abcdef"
"""Part of an upstream's URL, which no page may show."""


def genesis_at(timestamp: int) -> dict[str, Any]:
    """Return a genesis with an account that can pay."""
    genesis = make_genesis(
        chain_id=CHAIN_ID,
        first_blocks=from_genesis("osaka"),
        alloc={ALICE.address.hex(): {"balance": hex(10**24)}},
    )
    return {**genesis, "timestamp": hex(timestamp)}


class FollowedChain:
    """A chain whose newest block is some seconds old, imported block by block."""

    def __init__(self, slug: str = "live", blocks: int = 40, age: int = 9) -> None:
        """Create the genesis. Its timestamp lets block `blocks` be `age` seconds old."""
        self.slug = slug
        now = int(timezone.now().timestamp())
        self.genesis = genesis_at(now - age - blocks * SECONDS)
        self.builder = ChainBuilder(self.genesis)
        chains.import_blocks(slug, self.genesis, [])

    @property
    def network(self) -> Network:
        """The network as it is in the database."""
        return Network.objects.get(slug=self.slug)

    def grow(self, count: int = 1, transactions: int = 3) -> list[Block]:
        """Import blocks on top of the head, and return them."""
        made = [_block(self.builder, transactions) for _ in range(count)]
        chains.import_blocks(self.slug, self.genesis, made)
        return made

    def reorganise(self, replaced: int = REPLACED, added: int = ADDED) -> list[Block]:
        """Replace the newest blocks by others, and return the replaced ones.

        added: has to be more than `replaced`, so that the other branch wins.
        """
        branch = self.builder.fork()
        old = [_block(self.builder, 2) for _ in range(replaced)]
        new = [_block(branch, 1, extra_data=b"other") for _ in range(added)]
        chains.import_blocks(self.slug, self.genesis, [*old, *new])
        self.builder = branch
        return old

    def finalize(self, safe: int, finalized: int) -> None:
        """Import the forkchoice in which the blocks with these numbers are tagged."""
        hashes = [block.header.hash for block in self.builder.blocks]
        forkchoice = Forkchoice(hashes[-1], hashes[safe - 1], hashes[finalized - 1])
        chains.import_blocks(self.slug, self.genesis, [], forkchoice=forkchoice)


def _block(builder: ChainBuilder, transactions: int, **options: Any) -> Block:
    for number in range(transactions):
        builder.send(ALICE, bytes([number + 1]) * 20, gas=21_000, value=number)
    return builder.block(**options)


def add_upstreams(network: Network) -> list[Upstream]:
    """Add three upstreams that respond, and a disabled one that was never contacted."""
    urls = (
        f"https://mainnet.example/v3/{SECRET}",
        "ws://10.0.0.7:8546",
        f"https://user:{SECRET}@backup.example:8545",
        "http://10.0.0.9:8545",
    )
    made = [add_upstream(network=network, url=url) for url in urls]
    Upstream.objects.filter(pk=made[1].pk).update(note="own geth, rack 4")
    Upstream.objects.filter(pk=made[3].pk).update(is_enabled=False)
    return made


def add_statuses(
    network: Network, upstreams: list[Upstream], now: datetime, behind: int = 0
) -> None:
    """Store what a follower of the network observes.

    behind: number of blocks from our head to the upstreams' highest head.
    """
    best = (network.head_number or 0) + behind
    FollowerStatus.objects.update_or_create(
        network=network,
        defaults={
            "process_started_at": now - timedelta(hours=7),
            "updated_at": now,
            "best_number": best,
            "best_hash": network.head_hash,
        },
    )
    observed: list[dict[str, Any]] = [
        {"head_number": best, "latency_ms": 31.4, "requests": 81_244, "errors": 12},
        {"head_number": best - 9, "latency_ms": 0.8, "requests": 40_000},
        {
            "head_number": best - 1,
            "latency_ms": 1840.0,
            "requests": 4_120,
            "errors": 900,
            "last_error": "HTTP status 429",
            "last_error_at": now - timedelta(seconds=4),
            "backing_off_until": now + timedelta(minutes=20),
        },
    ]
    for upstream, values in zip(upstreams, observed, strict=False):
        version = "Geth/v1.17.2-stable/linux-amd64/go1.25.1"
        UpstreamStatus.objects.update_or_create(
            upstream=upstream,
            defaults={"checked_at": now, "client_version": version, **values},
        )


def add_quarantined(network: Network, upstream: Upstream | None) -> QuarantinedBlock:
    """Store a block that was found invalid."""
    return QuarantinedBlock.objects.create(
        network=network,
        hash=bytes.fromhex("5a" * 32),
        number=41,
        upstream=upstream,
        reason="state root is 0x5f…, not 0x20…",
    )


def add_timings(network: Network, now: datetime, count: int = 1_000) -> None:
    """Store the timings of a day's imports, as if each block was imported many times."""
    head = network.head_number or 0
    ImportTiming.objects.bulk_create(
        ImportTiming(
            network=network,
            number=head - place % (head + 1),
            at=now - timedelta(days=1) * place / count,
            fetch_ms=20 + place % 17,
            execute_ms=90 + place % 71,
            commit_ms=8 + place % 5,
            transactions=150,
            gas_used=12_000_000,
        )
        for place in range(count)
    )
