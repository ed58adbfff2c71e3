"""Stored blocks executed again: canonical, on side branches, partly traced, and failing."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from abi.encoding import call_data
from evm.blocks import Block
from evm.chain_config import ChainConfig
from evm.tracers.steps import Step, TracerError
from evm.tracers.struct_log import StructLogger, StructLogOptions
from nodeapi.chain.database import importer_connection
from nodeapi.chain.replay import NotTraceable, Replay, find_origin
from samples.builder import ChainBuilder
from samples.sample import build_sample_chain
from tests.nodeapi.chain.test_branches import ALICE, Line, genesis
from tests.support import chains, copies, sample

pytestmark = pytest.mark.django_db(transaction=True)


def replay_of(
    connection: psycopg.Connection[Any], slug: str, start: dict[str, Any], block: Block
) -> Replay:
    network = chains.network_id(connection, slug)
    config = ChainConfig.from_genesis(start)
    return Replay(find_origin(connection, network, config, block.header.hash))


def logged(replay: Replay) -> dict[str, Any]:
    """Return the struct logger's result for the next transaction."""
    pieces: list[bytes] = []
    logger = StructLogger(StructLogOptions(), pieces.append)
    replay.trace(logger, 60)
    pieces.append(logger.result())
    answer: dict[str, Any] = json.loads(b"".join(pieces))
    return answer


class Failing(StructLogger):
    """A tracer that fails at the second storage write, or at the start."""

    def __init__(self, *, at_start: bool = False) -> None:
        super().__init__(StructLogOptions(), len)
        self._at_start = at_start
        self.writes = 0

    def start(self, transaction: Any) -> None:
        if self._at_start:
            raise TracerError("not even begun")

    def step(self, step: Step) -> None:
        self.writes += step.op == 0x55
        if self.writes and step.op == 0x00:
            raise TracerError("gone wrong after a write")


def test_every_block_of_the_sample_costs_the_gas_that_it_did() -> None:
    builder, story = ChainBuilder(sample.genesis()), build_sample_chain()
    copies.sample_chain()
    with importer_connection() as connection:
        network = chains.network_id(connection, "sample")
        hashes = connection.execute(
            "SELECT hash FROM nodeapi_block WHERE network_id = %s AND is_canonical"
            " AND number > 0 AND gas_used < 2000000 ORDER BY number",
            (network,),
        ).fetchall()
        for (block_hash,) in hashes:
            origin = find_origin(connection, network, builder.config, block_hash)
            replay = Replay(origin)
            gas = [logged(replay)["gas"] for _ in origin.block.transactions]
            number = origin.block.header.number
            assert gas == [
                receipt.gas_used
                for receipt in story.chain.outcomes[number - 1].receipts
            ]
    assert len(hashes) > 60


def test_side_blocks_stand_on_their_own_branch() -> None:
    start = genesis(is_merged=True)
    line = Line(ChainBuilder(start))
    left, right = line.chain.fork(), line.chain.fork()
    left_blocks = line.grow(left, 3, value=5)
    right_blocks = line.grow(right, 2, value=6)
    chains.import_blocks("net", start, [*line.chain.blocks, *left_blocks])
    chains.import_blocks("net", start, right_blocks)
    assert chains.head("net")[1] == left_blocks[-1].header.hash
    slot, word = f"0x{0:064x}", "0x{:064x}"
    with importer_connection() as connection:
        for block, value in ((left_blocks[1], 5), (right_blocks[1], 6)):
            replay = replay_of(connection, "net", start, block)
            entries = logged(replay)["structLogs"]
            (write,) = [e for e in entries if e["op"] == "SSTORE"]
            # The block depends on writes of its own branch.
            assert write["storage"] == {slot: word.format(value)}
            assert write["gasCost"] == 2200
            for _ in block.transactions[1:]:
                replay.skip()
    # After a reorganisation, the traces of both branches are the same.
    chains.import_blocks("net", start, line.grow(right, 2, value=6))
    with importer_connection() as connection:
        for block, value in ((left_blocks[1], 5), (right_blocks[1], 6)):
            entries = logged(replay_of(connection, "net", start, block))["structLogs"]
            (write,) = [e for e in entries if e["op"] == "SSTORE"]
            assert write["storage"] == {slot: word.format(value)}
            assert write["gasCost"] == 2200


def one_block() -> tuple[dict[str, Any], Block]:
    """Return a block of four transactions, each of which depends on the earlier ones."""
    start = genesis(is_merged=True)
    line = Line(ChainBuilder(start))
    for value in range(1, 5):
        data = call_data("set(uint256,uint256)", 9, value)
        line.chain.send(ALICE, line.slots, data)
    block = line.chain.block()
    chains.import_blocks("net", start, line.chain.blocks)
    return start, block


@pytest.mark.parametrize("at_start", [False, True])
def test_a_tracer_that_fails_changes_nothing_for_the_next_one(at_start: bool) -> None:
    start, block = one_block()
    with importer_connection() as connection:
        plain = replay_of(connection, "net", start, block)
        expected = [logged(plain) for _ in block.transactions]
        broken = replay_of(connection, "net", start, block)
        found = []
        for index in range(4):
            if index % 2:
                found.append(logged(broken))
                continue
            tracer = Failing(at_start=at_start)
            with pytest.raises(TracerError):
                broken.trace(tracer, 60)
            assert tracer.writes == (0 if at_start else 1)
    assert found == expected[1::2]


def test_transactions_that_are_passed_over_are_executed() -> None:
    start, block = one_block()
    with importer_connection() as connection:
        plain = replay_of(connection, "net", start, block)
        expected = [logged(plain) for _ in block.transactions]
        partial = replay_of(connection, "net", start, block)
        partial.skip()
        partial.skip()
        assert [logged(partial), logged(partial)] == expected[2:]


def test_what_can_not_be_traced_is_said_in_geth_s_words() -> None:
    start, block = one_block()
    config = ChainConfig.from_genesis(start)
    with importer_connection() as connection:
        network = chains.network_id(connection, "net")
        genesis_hash = ChainBuilder(start).head.hash
        with pytest.raises(NotTraceable, match=r"^genesis is not traceable$"):
            find_origin(connection, network, config, genesis_hash)
        with pytest.raises(NotTraceable, match=r"^block 0x(00){32} not found$"):
            find_origin(connection, network, config, bytes(32))
        with pytest.raises(NotTraceable):
            find_origin(connection, network + 1, config, block.header.hash)
