"""The watcher's observations, and execution without and with a watcher."""

import gc
import weakref

import pytest

from evm.blocks import decode_block
from evm.chain_config import LADDER, ChainConfig
from evm.execution import execute_block
from evm.genesis import genesis_block
from evm.headers import ZERO_HASH
from evm.tracers.recorder import Recorder
from evm.world import World
from nodeapi.chain.genesis import genesis_state
from nodeapi.chain.memory_state import MemoryState
from tests.support import sample
from tests.support.executed import ETHER, SENDER, Account, Chain
from tests.support.random_calls import push

CALLER, CALLEE = b"\xaa" * 20, b"\xbb" * 20
LOG = b"\x60\x00\x60\x00\xa0"
REVERT = b"\x60\x00\x60\x00\xfd"
ZEROS = b"\x60\x00" * 5


def call_to(address, gas=100_000):
    return ZEROS + push(int.from_bytes(address, "big")) + push(gas) + b"\xf1\x50"


def test_watching_changes_nothing_of_the_sample_chain():
    genesis = sample.genesis()
    config = ChainConfig.from_genesis(genesis)
    state = MemoryState()
    first = genesis_block(genesis, config, state.adopt(*genesis_state(genesis))).header
    total_difficulty, hashes, transactions = first.difficulty, [first.hash], 0
    for raw in sample.raw_blocks():
        block = decode_block(raw)
        header = block.header
        is_merged = config.is_merged(total_difficulty)
        fork = config.fork_at(header.number, header.timestamp, is_merged)
        outcomes = []
        for watcher in (None, Recorder()):
            world = World(state)
            outcome = execute_block(
                block, fork, config, world, list(hashes), lambda: ZERO_HASH, watcher
            )
            changes = world.changes(clears_empty_accounts=fork.clears_empty_accounts)
            outcomes.append((outcome.receipts, outcome.requests, changes))
        assert outcomes[0] == outcomes[1]
        assert len(outcome.records) == len(block.transactions)
        transactions += len(block.transactions)
        assert state.apply(changes) == header.state_root
        total_difficulty += header.difficulty
        hashes = [header.hash, *hashes][:256]
    assert transactions > 100


def test_logs_are_numbered_through_the_block_and_undone_numbers_come_back():
    failing = LOG + LOG + REVERT
    code = LOG + call_to(CALLEE) + LOG
    chain = Chain(
        "osaka", {CALLER: Account(0, 1, code), CALLEE: Account(0, 1, failing)}
    )
    for expected in ([0, 1], [2, 3]):
        top = chain.run(CALLER)
        assert [log.index for log in top.logs] == expected
        assert [log.position for log in top.logs] == [0, 1]
        (undone,) = top.calls
        assert [log.index for log in undone.logs] == [expected[0] + 1, expected[0] + 2]


def test_system_calls_are_not_seen():
    history = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")
    chain = Chain("osaka", {history: Account(0, 1, LOG + call_to(CALLEE))})
    chain.execution.begin()
    assert chain.recorder.records == []
    assert chain.recorder.log_count == 0


def test_a_watched_block_leaves_nothing_to_the_garbage_collector():
    chain = Chain("osaka", {CALLER: Account(0, 1, LOG + call_to(CALLEE))})
    chain.run(CALLER)
    assert len(chain.recorder.records) == 1
    world = weakref.ref(chain.world)
    gc.disable()
    try:
        del chain
        assert world() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("fork", LADDER)
def test_a_call_to_an_empty_account_has_a_frame(fork):
    chain = Chain(fork, {CALLER: Account(0, 1, call_to(CALLEE))})
    (frame,) = chain.run(CALLER).calls
    assert (frame.type, frame.to, frame.gas, frame.gas_used) == (
        "CALL",
        CALLEE,
        100_000,
        0,
    )
    assert (frame.error, frame.depth, frame.sender) == (None, 1, CALLER)


def test_an_instruction_that_fails_leaves_no_frame():
    for code in (b"\xa0", b"\xf1", b"\x60\x01\xf0", b"\xf5"):
        top = Chain("osaka", {CALLER: Account(0, 1, code)}).run(CALLER)
        assert not top.calls
        assert top.error.startswith("stack underflow")
        assert top.gas_used == 1_000_000


def test_too_much_init_code_fails_in_the_creating_frame():
    code = push(49_153) + b"\x60\x00\x60\x00\xf0"
    top = Chain("osaka", {CALLER: Account(0, 1, code)}).run(CALLER)
    assert not top.calls
    assert top.error == (
        "out of gas: max initcode size exceeded: code size 49153 limit 49152"
    )


def test_a_second_creation_at_one_address_takes_all_its_gas():
    create = b"\x60\x05" + b"\x60\x00" * 3 + b"\xf5\x50"
    code = create + create
    top = Chain("osaka", {CALLER: Account(0, 1, code)}).run(CALLER)
    first, second = top.calls
    assert (first.type, first.error, first.gas_used) == ("CREATE2", None, 0)
    assert second.error == "contract address collision"
    # 32,000 for the instruction, and 63/64 of the rest.
    assert second.gas_used == second.gas > 800_000
    assert second.to == first.to


@pytest.mark.parametrize(
    ("fork", "gas"),
    [("frontier", 946_991), ("osaka", 946_991 - 946_991 // 64)],
)
def test_a_refused_creation_shows_the_gas_it_would_have_had(fork, gas):
    code = b"\x60\x00\x60\x00" + push(ETHER) + b"\xf0\x50"
    top = Chain(fork, {CALLER: Account(1, 1, code)}).run(CALLER)
    (frame,) = top.calls
    assert frame.error == "insufficient balance for transfer"
    assert (frame.gas, frame.gas_used, frame.value) == (gas, 0, ETHER)


def test_a_self_destruction_is_a_frame_of_its_own():
    code = push(int.from_bytes(CALLEE, "big")) + b"\xff"
    chain = Chain("osaka", {CALLER: Account(7, 1, code)})
    (frame,) = chain.run(CALLER).calls
    assert (frame.type, frame.sender, frame.to) == ("SELFDESTRUCT", CALLER, CALLEE)
    assert (frame.value, frame.gas, frame.depth) == (7, 0, 1)
    # EIP-6780: the contract was created earlier.
    assert chain.recorder.destroyed == set()


def test_a_creation_that_collides_at_the_top_fails():
    chain = Chain("osaka", {})
    made = chain.run(None, b"\x00").to
    other = Chain("osaka", {made: Account(0, 1)})
    top = other.run(None, b"\x00")
    assert top.error == "contract address collision"
    assert (top.to, top.gas_used) == (made, 1_000_000)
    assert other.world.get_nonce(SENDER) == 1
