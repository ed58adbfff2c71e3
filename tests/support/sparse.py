"""A chain whose blocks read, write and clear much storage, and a checkpoint on it."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from threading import Event
from typing import Any

from django.db import connection
from eth_typing import Address

from networks.models import Network
from nodeapi.chain.database import importer_connection
from nodeapi.chain.importers import FollowingImporter
from nodeapi.chain.networks import stored_config
from nodeapi.follower.proving import FollowerProver
from nodeapi.follower.thread import LoopThread
from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis
from tests.support.simulator import ALICE
from tests.support.state_node import LocalClient

WRITER, READER = Address(b"\xa1" * 20), Address(b"\xa2" * 20)
PAIRS = 6
"""Slots that a call of one of the contracts writes or reads."""
SLOTS = 400
"""Slots of `WRITER` in the genesis, so that its trie has extensions and deep leaves."""


def _word(number: int) -> bytes:
    return number.to_bytes(32)


def _load(place: int) -> bytes:
    """Return code that pushes a word of the call's data."""
    return b"\x61" + (32 * place).to_bytes(2) + b"\x35"


_WRITE = b"".join(_load(2 * n + 1) + _load(2 * n) + b"\x55" for n in range(PAIRS))
# Each balance and each slot is written into its own word of memory, all are logged.
_READ = (
    b"".join(
        _load(n) + b"\x31" + b"\x61" + (32 * n).to_bytes(2) + b"\x52"
        for n in range(PAIRS)
    )
    + _load(0)
    + b"\x54\x61"
    + (32 * PAIRS).to_bytes(2)
    + b"\x52\x61"
    + (32 * PAIRS + 32).to_bytes(2)
    + b"\x5f\xa0"
)


def genesis(fork: str = "prague") -> dict[str, Any]:
    """Return the genesis.json of `storage_chain`."""
    chance = random.Random(1)
    alloc: dict[str, Any] = {
        f"0x{chance.randbytes(20).hex()}": {"balance": hex(n + 1)} for n in range(300)
    }
    alloc[f"0x{ALICE.address.hex()}"] = {"balance": hex(10**24)}
    alloc[f"0x{WRITER.hex()}"] = {
        "balance": "0x0",
        "code": f"0x{_WRITE.hex()}",
        "storage": {f"0x{slot:064x}": f"0x{slot + 1:064x}" for slot in range(SLOTS)},
    }
    alloc[f"0x{READER.hex()}"] = {"balance": "0x0", "code": f"0x{_READ.hex()}"}
    return make_genesis(chain_id=1337, first_blocks=from_genesis(fork), alloc=alloc)


def storage_chain() -> ChainBuilder:
    """Return a chain without blocks, of which each has a second."""
    return ChainBuilder(genesis(), seconds_per_block=1)


def grow(
    chain: ChainBuilder, count: int, seed: int, transactions: int = 4
) -> ChainBuilder:
    """Add blocks with random calls. Other seeds make other blocks."""
    chance = random.Random(seed)
    addresses = [bytes.fromhex(name[2:]) for name in sorted(genesis()["alloc"])]
    for _ in range(count):
        for _ in range(transactions):
            if chance.random() < 0.6:
                words = [
                    number
                    for _ in range(PAIRS)
                    for number in (
                        chance.randrange(2 * SLOTS),
                        chance.choice([0, 0, chance.getrandbits(64)]),
                    )
                ]
                chain.send(ALICE, WRITER, b"".join(map(_word, words)))
            else:
                asked = [chance.randbytes(20), *chance.sample(addresses, PAIRS - 1)]
                data = b"".join(each.rjust(32, b"\0") for each in asked)
                chain.send(ALICE, READER, data)
            if chance.random() < 0.3:
                chain.send(ALICE, Address(chance.choice(addresses)), value=7)
        chain.block(extra_data=b"%d" % seed)
    return chain


class _Clients:
    """The part of an upstream pool that a prover needs."""

    def __init__(self, *clients: LocalClient) -> None:
        self._clients = list(clients)

    def clients(self, number: int) -> list[LocalClient]:
        return self._clients

    def blame_client(self, client: LocalClient, reason: str) -> None:
        raise AssertionError(reason)


@contextmanager
def sparse_importer(
    slug: str, methods: dict[str, Callable[..., Any]], lacks: Collection[str] = ()
) -> Iterator[FollowingImporter]:
    """Yield an importer into a sparse network.

    methods: of its only upstream. lacks: those of them that it does not offer.
    """
    network = Network.objects.get(slug=slug)
    offered = {name: each for name, each in methods.items() if name not in lacks}
    pool: Any = _Clients(LocalClient(offered))
    with importer_connection() as opened, LoopThread("upstreams") as thread:
        prover = FollowerProver(opened, network.pk, thread, pool, Event())
        config = stored_config(network.pk)
        importer = FollowingImporter(opened, network.pk, config, prover=prover)
        with closing(importer):
            yield importer


def forget_state(slug: str) -> None:
    """Make a network's head its checkpoint, of whose state nothing is known."""
    network = Network.objects.get(slug=slug)
    Network.objects.filter(pk=network.pk).update(checkpoint_number=network.head_number)
    with connection.cursor() as cursor:
        for table in ("accountversion", "storageversion", "trienode"):
            cursor.execute(
                f"DELETE FROM nodeapi_{table} WHERE network_id = %s", [network.pk]
            )
