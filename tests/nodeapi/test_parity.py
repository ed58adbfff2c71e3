from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import orjson
import pytest

from evm.chain_config import LADDER
from evm.headers import Header
from evm.rewards import MiningReward, mining_rewards
from jsonrpc.stream import Stream
from nodeapi.methods.parity import (
    flat_list,
    flat_stream,
    result_list,
    result_stream,
    reward_traces,
)

HASH = b"\xab" * 32
REWARD = reward_traces([MiningReward(b"\x11" * 20, 2 * 10**18, False)], HASH, 5)


def block_answer(counts: list[int], text: str = "") -> tuple[bytes, list[object]]:
    """Return a block's result with these numbers of entries for its transactions."""
    entries = [
        [
            {"traceAddress": [i], "error": f'{text}]}},{{"txHash":"'}
            for i in range(count)
        ]
        for count in counts
    ]
    answer = [
        {"txHash": "0x" + bytes([place] * 32).hex(), "result": result}
        for place, result in enumerate(entries)
    ]
    return orjson.dumps(answer), [entry for result in entries for entry in result]


@pytest.mark.parametrize("behind", [b"", REWARD, REWARD + b"," + REWARD])
@pytest.mark.parametrize("counts", [[], [1], [3], [1, 2, 3], [1] * 50])
def test_entries_of_all_transactions_are_one_list(counts: list[int], behind: bytes):
    answer, entries = block_answer(counts)
    rewards = orjson.loads(b"[" + behind + b"]")
    assert orjson.loads(flat_list(answer, behind)) == entries + rewards


@pytest.mark.parametrize("behind", [b"", REWARD])
@pytest.mark.parametrize("chunk", [7, 97, 1000, 65536])
def test_stream_is_the_same_wherever_it_is_cut(chunk: int, behind: bytes) -> None:
    answer, _ = block_answer([1, 3, 2] * 60, text="x" * 700)

    async def pieces() -> AsyncGenerator[bytes, None]:
        for start in range(0, len(answer), chunk):
            yield answer[start : start + chunk]

    async def read() -> bytes:
        return await flat_stream(Stream(len(answer), pieces()), 180, behind).read()

    assert asyncio.run(read()) == flat_list(answer, behind)


@pytest.mark.parametrize("chunk", [7, 97, 1000, 65536])
@pytest.mark.parametrize("counts", [[], [1], [0, 2, 3] * 60])
def test_results_of_all_transactions_are_one_list(
    counts: list[int], chunk: int
) -> None:
    answer, _ = block_answer(counts, text="x" * 700)
    results = [entry["result"] for entry in orjson.loads(answer)]
    assert orjson.loads(result_list(answer)) == results

    async def pieces() -> AsyncGenerator[bytes, None]:
        for start in range(0, len(answer), chunk):
            yield answer[start : start + chunk]

    async def read() -> bytes:
        stream = Stream(len(answer), pieces())
        return await result_stream(stream, len(counts)).read()

    assert asyncio.run(read()) == result_list(answer)


def test_reward_has_an_author_and_no_transaction() -> None:
    assert orjson.loads(REWARD) == {
        "action": {
            "author": "0x" + "11" * 20,
            "rewardType": "block",
            "value": "0x1bc16d674ec80000",
        },
        "blockHash": "0x" + HASH.hex(),
        "blockNumber": 5,
        "result": None,
        "subtraces": 0,
        "traceAddress": [],
        "transactionHash": None,
        "transactionPosition": None,
        "type": "reward",
    }


def header(number: int, coinbase: int, difficulty: int = 1) -> Header:
    return Header(
        parent_hash=HASH,
        uncles_hash=HASH,
        coinbase=bytes([coinbase] * 20),
        state_root=HASH,
        transactions_root=HASH,
        receipts_root=HASH,
        logs_bloom=bytes(256),
        difficulty=difficulty,
        number=number,
        gas_limit=0,
        gas_used=0,
        timestamp=0,
        extra_data=b"",
        mix_hash=HASH,
        nonce=bytes(8),
    )


@pytest.mark.parametrize(
    ("number", "fork"),
    [(9, "frontier"), (10, "byzantium"), (19, "byzantium"), (20, "constantinople")],
)
def test_rewards_are_those_by_which_blocks_are_executed(number: int, fork: str) -> None:
    config = {"byzantiumBlock": "0xa", "constantinopleBlock": 20}
    full = LADDER[fork].block_reward
    uncles = [header(number - 1, 2), header(number - 6, 3)]
    rewards = mining_rewards(header(number, 1), uncles, config)
    assert rewards == [
        MiningReward(b"\1" * 20, full + full // 16, False),
        MiningReward(b"\2" * 20, full * 7 // 8, True),
        MiningReward(b"\3" * 20, full * 2 // 8, True),
    ]


def test_nothing_is_paid_after_the_merge() -> None:
    assert mining_rewards(header(100, 1, difficulty=0), [], {}) == []
