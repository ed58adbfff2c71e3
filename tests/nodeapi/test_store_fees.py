"""Suggested tips and the fees of the head, for chains that are imported step by step."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

from evm.blocks import Block
from evm.header_rules import next_base_fee
from networks.models import Network
from nodeapi.store import fees, transactions
from postgres.errors import Unavailable
from samples.builder import MINER, ChainBuilder
from samples.schedules import from_genesis, make_genesis
from samples.signers import Signer
from tests.support import chains
from tests.support.rows import make_network
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.django_db(transaction=True)

ALICE, BOB, MINING = Signer("alice"), Signer("bob"), Signer("miner")
GWEI = 10**9


def genesis(fork: str = "cancun") -> dict[str, Any]:
    return make_genesis(
        chain_id=7,
        first_blocks=from_genesis(fork),
        alloc={
            f"0x{who.address.hex()}": {"balance": hex(10**24)}
            for who in (ALICE, BOB, MINING)
        },
    )


def tip_of(transaction: Any, block: Block) -> int:
    base_fee = block.header.base_fee_per_gas or 0
    tip: int = min(
        transaction.max_priority_fee_per_gas, transaction.max_fee_per_gas - base_fee
    )
    return tip


def suggested(blocks: list[Block], last: int) -> int:
    """Return geth's suggestion with the newest block as head. last: the former one.

    Source: go-ethereum v1.17.2 eth/gasprice/gasprice.go, one block after the other.
    """

    def values(number: int) -> list[int]:
        block = blocks[number - 1]
        paid = sorted(
            tip_of(each, block)
            for each in block.transactions
            if each.sender != block.header.coinbase
        )
        return [tip for tip in paid if tip >= 2][:3]

    number = len(blocks)
    requested = list(range(number, max(number - 20, 0), -1))
    number -= len(requested)
    found: list[int] = []
    while requested:
        sampled = values(requested.pop(0)) or [last]
        if len(sampled) == 1 and len(found) + 1 + len(requested) < 40 and number > 0:
            requested.append(number)
            number -= 1
        found += sampled
    return min(sorted(found)[(len(found) - 1) * 60 // 100], 500 * GWEI)


def grow(chain: ChainBuilder, rng: random.Random, count: int) -> list[Block]:
    """Add blocks without, with few or with many transactions of random tips."""
    for _ in range(count):
        for _ in range(rng.choice([0, 1, 2, 3, 4, 5])):
            sender = rng.choice([ALICE, BOB, MINING])
            tip = rng.choice([0, 1, 2, *(rng.randrange(2, 700 * GWEI),) * 6])
            chain.send(
                sender,
                BOB.address,
                gas=21_000,
                max_priority_fee_per_gas=tip,
                max_fee_per_gas=tip + rng.choice([2, 1000]) * GWEI,
            )
        chain.block(coinbase=rng.choice([MINER, MINING.address]))
    return chain.blocks[-count:]


def network_id() -> int:
    return Network.objects.get(slug="net").pk


def follow(running: Serving, number: int) -> None:
    """Wait until the head has been announced."""
    directory, network = running.service.directory, network_id()
    running.until(lambda: directory.get(network).head_number == number)


@pytest.mark.parametrize("cache_bytes", [0, 2**20])
def test_suggested_tips_are_geths_under_each_head(
    settings: Any, cache_bytes: int
) -> None:
    settings.NODEAPI_CACHE_BYTES = cache_bytes
    rng = random.Random(3)
    start = genesis()
    chain = ChainBuilder(start)
    chains.import_blocks("net", start, grow(chain, rng, 1))
    last = fees.FIRST_TIP
    seen = set()
    with serving() as running:
        store = running.service.store
        for step in (0, 4, 14, 1, 1, 23, 1, 9):
            if step:
                chains.import_blocks("net", start, grow(chain, rng, step))
                follow(running, len(chain.blocks))
            last = suggested(chain.blocks, last)
            assert running.ask(store.suggested_tip, network_id()) == last
            seen.add(last)
    assert len(seen) > 2


def test_fees_follow_the_head() -> None:
    start = genesis()
    chain = ChainBuilder(start)
    chain.block()
    chains.import_blocks("net", start, chain.blocks)
    with serving() as running:
        store = running.service.store
        for _ in range(3):
            header = chain.blocks[-1].header
            found = running.ask(store.head_fees, network_id())
            assert found.base_fee == header.base_fee_per_gas
            assert found.next_base_fee == next_base_fee(header)
            assert found.blob_fee == 1
            assert running.at_once(store.head_fees, network_id()) == found
            chain.send(ALICE, BOB.address, gas=21_000)
            chain.block()
            chains.import_blocks("net", start, chain.blocks[-1:])
            follow(running, len(chain.blocks))


@pytest.mark.parametrize("fork", ["berlin", "london"])
def test_forks_without_base_or_blob_fees_have_none(fork: str) -> None:
    start = genesis(fork)
    chain = ChainBuilder(start)
    chain.send(ALICE, BOB.address, gas=21_000)
    chain.block()
    chains.import_blocks("net", start, chain.blocks)
    with serving() as running:
        store = running.service.store
        found = running.ask(store.head_fees, network_id())
        is_london = fork == "london"
        assert (found.base_fee is not None) == is_london
        assert (found.next_base_fee is not None) == is_london
        assert found.blob_fee is None
        view = running.ask(store.head, network_id())
        history = orjson.loads(running.ask(store.fee_history, view, 0, 1, (50.0,)))
        assert history["baseFeePerBlobGas"] == ["0x0"] * 3
        assert (history["baseFeePerGas"][-1] != "0x0") == is_london
        price = 20 * GWEI if not is_london else GWEI
        assert history["reward"] == [["0x0"], [hex(price)]]
        pending = orjson.loads(running.ask(store.fee_history, view, 2, 2, (50.0,)))
        assert (pending["oldestBlock"], pending["reward"]) == ("0x2", [["0x0"]])
        assert pending["baseFeePerGas"][0] == history["baseFeePerGas"][-1]


def test_network_without_blocks_has_no_fees_yet() -> None:
    network = make_network()
    with serving() as running:
        store = running.service.store
        for read in (store.suggested_tip, store.head_fees, store.chain_config):
            with pytest.raises(Unavailable, match="no blocks yet"):
                running.ask(read, network.pk)


def test_concurrent_callers_share_one_computation(queries: list[bytes]) -> None:
    start = genesis()
    chain = ChainBuilder(start)
    chains.import_blocks("net", start, grow(chain, random.Random(5), 3))
    with serving() as running:
        calls = [(running.service.store.suggested_tip, network_id())] * 20
        assert len(set(running.ask_all(*calls))) == 1
    assert len([sql for sql in queries if b"SELECT header FROM" in sql]) == 1


def test_histories_are_long_or_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long blocks and long histories are computed in threads, with the same results."""
    start = genesis()
    chain = ChainBuilder(start)
    blocks = grow(chain, random.Random(8), 40)
    chains.import_blocks("net", start, blocks)
    found = []
    for is_short in (True, False):
        if is_short:
            monkeypatch.setattr(fees, "_LONG_HISTORY", 0)
            monkeypatch.setattr(fees, "_SHORT_BLOCK", 0)
            monkeypatch.setattr(transactions, "SHORT_RECEIPTS_BYTES", 0)
        else:
            monkeypatch.undo()
        with serving() as running:
            store = running.service.store
            view = running.ask(store.head, network_id())
            read = (store.fee_history, view, 0, 40, (0.0, 50.0, 100.0))
            found.append(running.ask(*read))
            assert running.ask(*read) == found[-1]
    assert found[0] == found[1]
    history = orjson.loads(found[0])
    rewards = [[int(each, 16) for each in row] for row in history["reward"][1:]]
    for row, block in zip(rewards, blocks, strict=True):
        tips = sorted(tip_of(each, block) for each in block.transactions)
        assert (row[0], row[-1]) == ((tips[0], tips[-1]) if tips else (0, 0))
    assert len(history["baseFeePerGas"]) == 42


def test_history_of_the_pending_block_is_that_of_an_empty_block() -> None:
    start = genesis()
    chain = ChainBuilder(start)
    blocks = grow(chain, random.Random(9), 5)
    chain.block()
    chains.import_blocks("net", start, blocks)
    found = []
    with serving() as running:
        store = running.service.store
        for _ in range(2):
            view = running.ask(store.head, network_id())
            for first in (4, 6):
                found.append(
                    running.ask(store.fee_history, view, first, 6, (9.0, 50.0))
                )
            chains.import_blocks("net", start, chain.blocks[-1:])
            follow(running, 6)
    assert found[:2] == found[2:]
    assert orjson.loads(found[1])["reward"] == [["0x0", "0x0"]]
