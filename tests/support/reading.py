"""Reads of trace records through the store."""

from __future__ import annotations

import os
from typing import Any

from jsonrpc.stream import CHUNK_BYTES, Stream
from networks.models import Network
from tests.support.records import Recorded, add_recorded_block, entries
from tests.support.rows import make_network, set_head
from tests.support.serving import Serving

TOKEN, PROXY = b"\x60\x01" * 300, b"\xef\x01\x00" + bytes(20)
MEBIBYTE = 2**20


SHORT = [
    Recorded("a", data=b"\x12\x34", output=b"01", codes=[TOKEN]),
    Recorded("b"),
    Recorded("c", data=bytes(5_000), codes=[TOKEN, PROXY]),
]


def recorded_network() -> Network:
    """Return a network with block 0 only, to which a test adds records."""
    network = make_network()
    add_recorded_block(network, "zero", 0, [])
    set_head(network, "zero", 0)
    return network


def read(running: Serving, method: str, network: Network, *arguments: Any) -> Any:
    """Return a method's result. A stream is read, and its size is checked."""

    async def answer() -> Any:
        found = getattr(running.service.store, method)(network.pk, *arguments)
        value = await found
        if not isinstance(value, Stream):
            return value
        chunks = [chunk async for chunk in value]
        await value.aclose()
        # The stream joins chunks. A part may have the size of two chunks.
        assert max(map(len, chunks)) <= 2 * CHUNK_BYTES
        assert sum(map(len, chunks)) == value.size
        return b"".join(chunks)

    return running.ask(answer)


def digits(count: int) -> bytes:
    """Return hex digits that can't be compressed to less than half."""
    return os.urandom(count // 2).hex().encode()


def calls_of(transactions: list[Recorded], first: int = 0) -> bytes:
    return entries([(t, t.calls(i)) for i, t in enumerate(transactions, first)])


def prestates_of(transactions: list[Recorded]) -> bytes:
    return entries([(t, t.prestate()) for t in transactions])
