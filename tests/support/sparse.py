"""A chain whose blocks read, write and clear much storage, and a checkpoint on it."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from typing import Any

import pytest
from django.db import connection
from eth_typing import Address

from abi.encoding import call_data, mapping_slot
from networks.models import Network
from nodeapi.chain.database import importer_connection
from nodeapi.chain.importers import FollowingImporter
from nodeapi.chain.networks import stored_config
from nodeapi.follower.proving import FollowerProver
from nodeapi.follower.thread import LoopThread
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import from_genesis, make_genesis
from tests.support.simulator import ALICE
from tests.support.state_node import Batches, LocalClient

WRITER, READER, TOKEN = (Address(bytes([n]) * 20) for n in (0xA1, 0xA2, 0xA3))
PAIRS = 6
"""Slots that a call of one of the contracts writes or reads."""


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


@dataclass(frozen=True)
class Load:
    """A state with much storage, and blocks of random calls.

    accounts: number of those with ether. slots: of `WRITER` in the genesis, so that its
    trie has extensions and deep leaves. has_tokens: whether each account has tokens, too,
    and transactions transfer some.
    """

    fork: str = "prague"
    accounts: int = 300
    slots: int = 400
    has_tokens: bool = False

    @cached_property
    def addresses(self) -> list[Address]:
        """The accounts with ether."""
        chance = random.Random(1)
        return [Address(chance.randbytes(20)) for _ in range(self.accounts)]

    @cached_property
    def genesis(self) -> dict[str, Any]:
        """The genesis.json."""
        alloc: dict[str, Any] = {
            f"0x{address.hex()}": {"balance": hex(place + 1)}
            for place, address in enumerate(self.addresses)
        }
        alloc[f"0x{ALICE.address.hex()}"] = {"balance": hex(10**24)}
        storage = {f"0x{n:064x}": f"0x{n + 1:064x}" for n in range(self.slots)}
        code = {"balance": "0x0", "code": f"0x{_WRITE.hex()}", "storage": storage}
        alloc[f"0x{WRITER.hex()}"] = code
        alloc[f"0x{READER.hex()}"] = {"balance": "0x0", "code": f"0x{_READ.hex()}"}
        if self.has_tokens:
            holders = [ALICE.address, *self.addresses]
            balances = {
                f"0x{mapping_slot(each, 0):064x}": hex(10**9) for each in holders
            }
            code = {"balance": "0x0", "code": f"0x{contract('token').runtime.hex()}"}
            alloc[f"0x{TOKEN.hex()}"] = {**code, "storage": balances}
        forks = from_genesis(self.fork)
        return make_genesis(chain_id=1337, first_blocks=forks, alloc=alloc)

    def chain(self) -> ChainBuilder:
        """Return a chain without blocks, of which each takes a second."""
        return ChainBuilder(self.genesis, seconds_per_block=1)

    def grow(
        self, chain: ChainBuilder, count: int, seed: int, transactions: int = 4
    ) -> ChainBuilder:
        """Add blocks with random calls. Other seeds make other blocks."""
        chance = random.Random(seed)
        for _ in range(count):
            for _ in range(transactions):
                if chance.random() < 0.6:
                    chain.send(ALICE, WRITER, self._written(chance))
                else:
                    chain.send(ALICE, READER, self.asked(chance))
                if chance.random() < 0.3:
                    chain.send(ALICE, chance.choice(self.addresses), value=7)
                if self.has_tokens and chance.random() < 0.5:
                    to, amount = chance.choice(self.addresses), chance.randrange(1000)
                    data = call_data("transfer(address,uint256)", to, amount)
                    chain.send(ALICE, TOKEN, data)
            chain.block(extra_data=b"%d" % seed)
        return chain

    def _written(self, chance: random.Random) -> bytes:
        """Return the data of a call that writes and clears slots."""
        return b"".join(
            _word(chance.randrange(2 * self.slots))
            + _word(chance.choice([0, 0, chance.getrandbits(64)]))
            for _ in range(PAIRS)
        )

    def asked(self, chance: random.Random) -> bytes:
        """Return the data of a call of `READER`: addresses, the first one unknown."""
        addresses = [chance.randbytes(20), *chance.sample(self.addresses, PAIRS - 1)]
        return b"".join(each.rjust(32, b"\0") for each in addresses)


@contextmanager
def kept_garbage_collector() -> Iterator[None]:
    """Keep a follower from changing this process's garbage collector."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "freeze", lambda: None)
        patch.setattr(gc, "set_threshold", lambda *_: None)
        yield


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
    slug: str,
    methods: dict[str, Callable[..., Any]],
    lacks: Collection[str] = (),
    batches: Batches | None = None,
    liars: Sequence[LocalClient] = (),
) -> Iterator[FollowingImporter]:
    """Yield an importer into a sparse network.

    methods: of its upstream. lacks: those of them that it does not offer.
    batches: to which each request to it is added. liars: upstreams that are asked first.
    """
    network = Network.objects.get(slug=slug)
    offered = {name: each for name, each in methods.items() if name not in lacks}
    client = LocalClient(offered)
    if batches is not None:
        client.batches = batches
    pool: Any = _Clients(*liars, client)
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
