"""States after blocks in worker processes: on all branches, before and after a
reorganisation, and calls, compared with transactions of blocks that were built on them."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest
from eth_typing import Address

from abi.encoding import call_data
from nodeapi.chain.database import importer_connection
from nodeapi.tracing import states
from nodeapi.tracing.jobs import TaskJob
from nodeapi.tracing.pool import TracePool
from nodeapi.tracing.states import (
    BlockRows,
    NoSuchBlock,
    RowsMissing,
    StateCache,
    StateMoved,
)
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.nodeapi.chain import trees
from tests.nodeapi.tracing.pools import LIMITS, run
from tests.support import chains

ALICE, BOB = Signer("alice"), Signer("bob")
FORWARDER = Address(b"\xf0" * 20)
FORWARD = (
    "6020 36 03 6020 6000 37"  # the data behind the first word
    "6000 6000 6020 36 03 6000 6000 6000 35 5a f1 50"  # to the account in that word
    "3d 6000 6000 3e 3d 6000 a0 00"  # and what it returns into a log
)


def check(rows: BlockRows, node: trees.Node, everything: set[Any]) -> None:
    """Compare a state with the one in memory."""
    state = node.state
    for address, slot in sorted(everything, key=str):
        assert rows.account(address) == state.account(address), node.name
        if slot is not None:
            assert rows.storage(address, slot) == state.storage(address, slot)
    for address in {address for address, _ in everything}:
        assert {*rows.live_slots(address)} == {*state.live_slots(address)}
        account = state.account(address)
        if account is not None and state.codes.get(account.code_hash):
            assert rows.code(account.code_hash) == state.code(account.code_hash)


@pytest.mark.usefixtures("module_db")
def test_states_of_all_branches_survive_reorganisations() -> None:
    nodes = trees.tree()
    everything = {
        (address, slot)
        for node in nodes.values()
        for address in node.state.accounts
        for slot in (None, *node.state.slots.get(address, {}), 99)
    }
    cache = StateCache()
    stored: set[str] = set()
    # Each branch becomes the longest one in turn. a5 extends the head, b5 replaces it.
    for last in ("a4", "b5", "c4", "d4", "e5"):
        line = [name for name in nodes[last].line if name not in stored]
        raw = [nodes[name].raw for name in line]
        chains.import_blocks("branches", trees.genesis(), raw)
        stored |= {*line}
        with importer_connection() as connection:
            network = chains.network_id(connection, "branches")
            for name in sorted(stored):
                node = nodes[name]
                for _ in range(2):
                    try:
                        state = cache.after(connection, network, node.hash)
                        check(state.state, node, everything)
                    except StateMoved:
                        continue
                    break
                else:
                    pytest.fail(f"the state after {name} moved twice")
                hashes = [nodes[each].hash for each in reversed(node.line[:-1])]
                assert list(state.ancestor_hashes)[: len(hashes)] == hashes
            with pytest.raises(NoSuchBlock):
                cache.after(connection, network, bytes(32))


@pytest.mark.usefixtures("module_db")
def test_missing_rows_are_collected_and_read_together() -> None:
    nodes = trees.tree()
    chains.import_blocks("collecting", trees.genesis(), [nodes["t1"].raw])
    cache, node = StateCache(), nodes["t1"]
    with importer_connection() as connection:
        network = chains.network_id(connection, "collecting")
        cache.collect(True)
        rows = cache.after(connection, network, node.hash).state
        for address in node.state.accounts:
            with pytest.raises(RowsMissing):
                rows.account(address)
        cache.collect(False)
        cache.read_wanted()
        found = {address: rows.account(address) for address in node.state.accounts}
        assert found == node.state.accounts


@pytest.mark.usefixtures("module_db")
def test_rows_of_all_blocks_together_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(states, "ROWS_IN_ALL", 20)
    nodes = trees.tree()
    line = nodes["a4"].line
    chains.import_blocks("rows", trees.genesis(), [nodes[name].raw for name in line])
    cache = StateCache()
    with importer_connection() as connection:
        network = chains.network_id(connection, "rows")
        found = []
        for name in line:
            rows = cache.after(connection, network, nodes[name].hash).state
            for slot in range(15):
                rows.storage(ALICE.address, slot)
            found.append(rows)
        newest = cache.after(connection, network, nodes[line[-1]].hash).state
        again = cache.after(connection, network, nodes[line[0]].hash).state
    assert newest is found[-1]  # together with up to 20 rows of other tasks
    assert again is not found[0]
    assert again.row_count == 0


def forwarding_chain() -> tuple[dict[str, Any], list[ChainBuilder], bytes]:
    """Return a genesis, the chain after each block, and a token's address."""
    forwarder = {"balance": "0x0", "code": "0x" + FORWARD.replace(" ", "")}
    name = f"0x{FORWARDER.hex()}"
    genesis = fork_genesis("shanghai", ALICE, BOB, **{name: forwarder})
    chain = ChainBuilder(genesis)
    token = chain.deploy(ALICE, contract("token").init_code((1000).to_bytes(32)))
    chain.block()
    chance = random.Random(7)
    states = [chain.fork()]
    for _ in range(5):
        for _ in range(3):
            receiver = chance.choice((BOB, Signer("carol"), Signer("dave"))).address
            data = call_data(
                "transfer(address,uint256)", receiver, chance.randint(1, 9)
            )
            chain.send(ALICE, token, data)
        chain.block()
        states.append(chain.fork())
    return genesis, states, token


@pytest.mark.usefixtures("module_db")
def test_a_call_returns_what_a_transaction_in_the_next_block_gets() -> None:
    genesis, states, token = forwarding_chain()
    blocks = list(states[-1].blocks)
    chains.import_blocks("forwarding", genesis, blocks)
    with importer_connection() as connection:
        network = chains.network_id(connection, "forwarding")
    names = (ALICE, BOB, Signer("carol"), Signer("dave"), Signer("erin"))
    asked = [call_data("balanceOf(address)", who.address) for who in names]
    asked.append(call_data("transfer(address,uint256)", BOB.address, 5))
    asked.append(b"\x01\x02\x03\x04")

    async def test(pool: TracePool) -> None:
        for built in states:
            twin = built.fork()
            for data in asked:
                wrapped = bytes(12) + token + data
                twin.send(BOB, FORWARDER, wrapped, gas=200_000)
            twin.block()
            receipts = twin.outcomes[-1].receipts
            jobs = [
                TaskJob(
                    network_id=network,
                    task="call",
                    block_hash=built.head.hash,
                    arguments={
                        "call": {
                            "from": f"0x{FORWARDER.hex()}",
                            "to": f"0x{token.hex()}",
                            "input": f"0x{data.hex()}",
                        },
                        "gas_cap": 50_000_000,
                    },
                    timeout=5.0,
                )
                for data in asked
            ]
            answers = await asyncio.gather(
                *(outcome(pool, job) for job in jobs), return_exceptions=False
            )
            for receipt, answer in zip(receipts, answers, strict=True):
                assert f"0x{receipt.logs[-1].data.hex()}" == answer

    async def outcome(pool: TracePool, job: TaskJob) -> str:
        try:
            found = (await pool.run(job, "key")).result
        except Exception as error:
            return str(getattr(error, "data", None))
        assert isinstance(found, bytes)
        return str(json.loads(found))

    run(test, LIMITS)
