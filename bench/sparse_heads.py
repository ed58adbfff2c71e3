"""Heads of a sparse network: from a subscriber of its upstream to one of our own.

The blocks have 30 million gas, and most of what they access is known. The follower, its
server and PostgreSQL share a core, where PostgreSQL works for the upstream as well. The
upstream and the subscribers have the other one.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median

from bench.listeners import listeners
from bench.live import open_sockets
from bench.rows import Row
from bench.servers import postgres_pid
from bench.storage import add_block_of_load
from bench.turns import Say, rounds
from evm.block_access_list import decode_access_list
from networks.models import Network
from nodeapi.chain.access_lists import read_access_list
from nodeapi.chain.database import importer_connection
from nodeapi.models import AccountVersion, StorageVersion
from samples.builder import ChainBuilder
from samples.signers import Signer

WARM_BLOCKS, HEADS = 3, 11
TRANSACTIONS, HOLDERS = 350, 1_000
NEW_SLOTS = 0.065
"""With it, 94 % of the accounts and slots that a block accesses are known."""
PAUSE_SECONDS = 0.5
"""Pause between two blocks, long enough for the work of the previous block to end."""
MOST_SECONDS = 2


def add_heads(
    chain: ChainBuilder, holders: Sequence[Signer], chance: random.Random
) -> None:
    """Add the blocks: some to make accounts and slots known, then the measured ones."""
    some = list(holders[:HOLDERS])
    written = [chance.getrandbits(256)]
    for _ in range(WARM_BLOCKS):
        add_block_of_load(chain, some, chance, written, TRANSACTIONS)
    for _ in range(HEADS):
        add_block_of_load(chain, some, chance, written, TRANSACTIONS, NEW_SLOTS)


def heads(
    networks: tuple[str, str],
    ports: tuple[int, int],
    pids: tuple[list[int], list[int]],
    cores: tuple[set[int], set[int]],
    import_next: Callable[[int], None],
    say: Say,
) -> Iterator[Row]:
    """Measure the time between the notifications of both networks.

    networks, ports: of the complete network and of the sparse one. pids: of the upstream,
        and of the follower and its server. cores: of the servers and of the clients.
    import_next: imports blocks into the complete network, and waits for the sparse one.
    """
    servers, clients = cores
    say(f"checkpoint: {HEADS} heads")
    import_next(WARM_BLOCKS)
    upstream, ours = pids
    _pin(upstream, clients)
    _pin([*ours, *_postgres_pids()], servers)
    seconds, shares = [], []
    with ExitStack() as stack:
        crowds = []
        for slug, port in zip(networks, ports, strict=True):
            crowds.append(stack.enter_context(listeners(clients)))
            open_sockets(crowds[-1], port, slug, 1, ["newHeads"])
        for _ in rounds(HEADS):
            time.sleep(PAUSE_SECONDS)
            before = _proved(networks[1])
            import_next(1)
            began, ended = (crowd.receive() for crowd in crowds)
            seconds.append(ended - began)
            unknown = _proved(networks[1]) - before
            shares.append(100 - 100 * unknown / _accesses(networks[0]))
    case = f"head at a subscriber, blocks of {TRANSACTIONS} transactions, one core"
    yield Row("checkpoint", f"{case}: known accesses", median(shares), "%")
    required = f"<= {MOST_SECONDS}"
    yield Row("checkpoint", case, median(seconds), "s p50", required=required)


def _pin(pids: Sequence[int], cores: set[int]) -> None:
    """Let all threads of processes run on these cores only."""
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)


def _postgres_pids() -> list[int]:
    """Return the processes of PostgreSQL. Those of later connections inherit the cores."""
    pid = postgres_pid()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [pid, *map(int, children.split())]


def _proved(slug: str) -> int:
    """Return how many accounts and slots of a sparse network were proved so far."""
    checkpoint = Network.objects.get(slug=slug).checkpoint_number
    return sum(
        versions.filter(network__slug=slug, block_number=checkpoint).count()
        for versions in (AccountVersion.objects, StorageVersion.objects)
    )


def _accesses(slug: str) -> int:
    """Return how many accounts and slots the newest block has accessed."""
    network = Network.objects.get(slug=slug)
    assert network.head_hash is not None
    with importer_connection() as connection:
        row = read_access_list(connection, network.pk, bytes(network.head_hash))
    assert row is not None
    return sum(
        1 + len(account.storage) + len(account.reads)
        for account in decode_access_list(row.list)
    )
