"""Receipts that are small in storage and large in responses, as attackers can make them."""

from __future__ import annotations

import asyncio

import pytest

from jsonrpc.stream import CHUNK_BYTES, Stream
from networks.models import Network
from nodeapi.documents.receipt_codec import HOLE, pack
from nodeapi.documents.receipts import receipt_document
from nodeapi.models import TransactionRecord
from nodeapi.store.traces import SHORT_BYTES
from nodeapi.store.transactions import SHORT_RECEIPTS_BYTES
from tests.support.records import Recorded, add_recorded_block
from tests.support.rows import hash_of, make_network, set_head
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.django_db(transaction=True)

LOG = b'{"address":"0x' + b"11" * 20 + b'","topics":[],"data":"0x",' + HOLE + b"}"
HOSTILE = pack(b',"status":"0x1","logs":[' + b",".join([LOG] * 40_000) + b"]}")


@pytest.fixture
def network() -> Network:
    network = make_network()
    add_recorded_block(network, "zero", 0, [])
    set_head(network, "zero", 0)
    return network


def read(running: Serving, method: str, network: Network, name: bytes) -> bytes:
    """Read a result that must be a stream. Other tasks run in between."""

    async def answer() -> bytes:
        turns = 0
        done = False

        async def others() -> None:
            nonlocal turns
            while not done:
                turns += 1
                await asyncio.sleep(0)

        waiting = asyncio.create_task(others())
        found = await getattr(running.service.store, method)(network.pk, name)
        assert isinstance(found, Stream)
        parts = []
        async for part in found:
            assert len(part) <= 2 * CHUNK_BYTES
            parts.append(part)
            await asyncio.sleep(0)
        await found.aclose()
        done = True
        await waiting
        whole = b"".join(parts)
        assert len(whole) == found.size
        assert turns >= found.size // (2 * CHUNK_BYTES)
        return whole

    return bytes(running.ask(answer))


def test_long_receipt_is_streamed_however_short_it_is_stored(network: Network) -> None:
    sent = [Recorded("a"), Recorded("b")]
    block = add_recorded_block(network, "one", 1, sent)
    set_head(network, "one", 1)
    TransactionRecord.objects.filter(block=block).update(receipt=HOSTILE)
    assert len(HOSTILE) * 2 < SHORT_RECEIPTS_BYTES
    expected = [
        receipt_document(HOSTILE, one.document(index)) for index, one in enumerate(sent)
    ]
    assert len(expected[0]) > 5 * SHORT_BYTES
    with serving() as running:
        for one, receipt in zip(sent, expected, strict=True):
            assert read(running, "receipt", network, one.hash) == receipt
        answer = read(running, "block_receipts", network, hash_of("one"))
    assert answer == b"[" + b",".join(expected) + b"]"
