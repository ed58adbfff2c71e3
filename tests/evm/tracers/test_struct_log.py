"""The struct logger, compared with recorded results of geth."""

import json

import pytest

from evm.chain_config import ChainConfig
from evm.tracers.struct_log import StructLogger, StructLogOptions
from nodeapi.chain.replay import Origin, Replay
from tests.nodeapi.chain.verifying import verify_chain
from tests.support import execution_apis
from tests.support.programs import CONTRACT, call_origin

OPTIONS = {
    "enableMemory": "enable_memory",
    "disableStack": "disable_stack",
    "disableStorage": "disable_storage",
    "enableReturnData": "enable_return_data",
}
OWN = int.from_bytes(CONTRACT)


def replay(origin, options):
    """Return the parsed result for a block."""
    pieces = []
    run = Replay(origin)
    for transaction in origin.block.transactions:
        logger = StructLogger(options, pieces.append)
        pieces.append(b',{"txHash":"0x%b","result":' % transaction.hash.hex().encode())
        run.trace(logger, 60)
        pieces.append(logger.result() + b"}")
    return json.loads(b"[" + b"".join(pieces)[1:] + b"]")


def origin_of(genesis, raw_blocks, number):
    config = ChainConfig.from_genesis(genesis)
    verified, state = verify_chain(genesis, b"".join(raw_blocks[: number - 1]))
    chosen, _ = verify_chain(genesis, b"".join(raw_blocks[:number]))
    hashes = [block.block.header.hash for block in reversed(verified)]
    last = chosen[-1]
    return Origin(last.block, last.fork, config, state, hashes)


RECORDED = ["debug_traceBlockByNumber", "debug_traceBlockByHash"]


@pytest.mark.parametrize("method", RECORDED)
def test_every_recorded_entry_is_the_same(method):
    genesis, raw = execution_apis.genesis(), execution_apis.raw_blocks()
    numbers = {
        "0x" + block.header.hash.hex(): block.header.number
        for block in execution_apis.blocks()
    }
    compared = 0
    for params, answer in execution_apis.exchanges(method):
        if "result" not in answer:
            continue
        number = numbers.get(params[0]) or int(params[0], 16)
        asked = params[1] if len(params) > 1 else {}
        options = StructLogOptions(**{OPTIONS[k]: v for k, v in asked.items()})
        found = replay(origin_of(genesis, raw, number), options)
        expected = answer["result"]
        assert [e["txHash"] for e in found] == [e["txHash"] for e in expected]
        for ours, theirs in zip(found, expected, strict=True):
            for one, other in zip(
                ours["result"]["structLogs"],
                theirs["result"]["structLogs"],
                strict=True,
            ):
                assert one == other
                compared += 1
            assert ours == theirs
    assert compared > 100


@pytest.mark.parametrize(("limit", "expected"), [(0, 4), (3, 3), (-1, 0), (-7, 0)])
def test_limit_is_a_number_of_entries_and_none_below_zero(limit, expected):
    # The limit is a number of entries. With a negative limit, geth returns none.
    origin = call_origin("6001 6002 01 00")
    (entry,) = replay(origin, StructLogOptions(limit=limit))
    answer = entry["result"]
    assert len(answer["structLogs"]) == expected
    assert answer["gas"] == 21009


def test_new_swaps_change_items_deep_in_the_stack():
    # SWAPN 17 and EXCHANGE 1, 29 (EIP-8024)
    origin = call_origin("30" * 40 + "6001 6002 e780 e88f 00", fork="amsterdam")
    (entry,) = replay(origin, StructLogOptions())
    *_, before, swapped, exchanged = [
        each["stack"] for each in entry["result"]["structLogs"]
    ]
    assert (before[-1], before[-18]) == (swapped[-18], swapped[-1]) == ("0x2", hex(OWN))
    assert (exchanged[-2], exchanged[-30]) == (swapped[-30], swapped[-2])
    assert exchanged[-30] == "0x1"


@pytest.mark.parametrize("gas", [20_000, 120_000])
def test_a_store_without_state_gas_has_an_error_in_its_entry(gas):
    origin = call_origin("6001 5f 55", fork="amsterdam", gas=gas)
    (entry,) = replay(origin, StructLogOptions())
    last = entry["result"]["structLogs"][-1]
    assert (last["op"], last["error"]) == ("SSTORE", "out of gas")
