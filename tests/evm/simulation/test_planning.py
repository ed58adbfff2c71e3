"""Numbers, timestamps and headers of simulated blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evm.blob_gas import next_excess_blob_gas
from evm.chain_config import UnknownFork, UnsupportedFork
from evm.header_rules import next_base_fee
from evm.simulation.errors import SimulationError
from evm.simulation.planning import (
    MAX_BLOCKS,
    MAX_CALLS_IN_BLOCK,
    check_counts,
    check_difficulties,
    header_before_execution,
    plan_blocks,
)
from tests.evm.simulation.chain import chain, empty

BUILDER = chain()
BASE = BUILDER.head


def planned(*requests: Any) -> list[tuple[int, int]]:
    """Return numbers and timestamps, relative to the base block."""
    return [
        (block.number - BASE.number, block.timestamp - BASE.timestamp)
        for block in plan_blocks(requests, BASE)
    ]


def at(**changes: int) -> Any:
    """Return a block at a number and time that are relative to the base block."""
    for name, base in (("number", BASE.number), ("time", BASE.timestamp)):
        if name in changes:
            changes[name] += base
    return empty(**changes)


def refused(*requests: Any) -> tuple[int, str]:
    with pytest.raises(SimulationError) as error:
        plan_blocks(requests, BASE)
    return error.value.code, error.value.text


def test_blocks_follow_the_base_every_twelve_seconds() -> None:
    assert planned(empty(), empty()) == [(1, 12), (2, 24)]


def test_given_times_are_kept_and_continued() -> None:
    assert planned(at(time=1), empty(), at(time=14)) == [(1, 1), (2, 13), (3, 14)]


def test_empty_blocks_fill_gaps() -> None:
    assert planned(empty(), at(number=4)) == [(1, 12), (2, 24), (3, 36), (4, 48)]


def test_numbers_must_ascend() -> None:
    number = BASE.number
    assert refused(at(number=0)) == (
        -38020,
        f"block numbers must be in order: {number} <= {number}",
    )
    assert refused(at(number=2), at(number=1)) == (
        -38020,
        f"block numbers must be in order: {number + 1} <= {number + 2}",
    )


def test_times_must_ascend_across_filled_gaps() -> None:
    time = BASE.timestamp
    assert refused(at(time=0)) == (
        -38021,
        f"block timestamps must be in order: {time} <= {time}",
    )
    assert refused(at(number=3, time=24))[0] == -38021
    assert planned(at(number=3, time=25))[-1] == (3, 25)


def test_number_of_blocks_includes_filled_gaps() -> None:
    assert len(planned(at(number=MAX_BLOCKS))) == MAX_BLOCKS
    assert refused(at(number=MAX_BLOCKS + 1)) == (-38026, "too many blocks")


def test_counts_of_blocks_and_calls_are_limited() -> None:
    check_counts([MAX_CALLS_IN_BLOCK, MAX_CALLS_IN_BLOCK])
    for counts, text in (
        ([0] * (MAX_BLOCKS + 1), "too many blocks"),
        ([5001], "too many calls in block: 5001 > 5000"),
        ([5000, 5000, 1], "too many calls: 10001 > 10000"),
    ):
        with pytest.raises(SimulationError) as error:
            check_counts(counts)
        assert (error.value.code, error.value.text) == (-38026, text)


def header(request: Any, parent: Any = BASE, *, validates: bool = False) -> Any:
    (block,) = plan_blocks([request], parent)
    made, _ = header_before_execution(
        block, parent, BUILDER.config, validates=validates
    )
    return made


def test_header_continues_its_parent() -> None:
    parent = replace(
        BASE,
        coinbase=b"\x09" * 20,
        gas_limit=1234,
        mix_hash=b"\x08" * 32,
        extra_data=b"x",
        blob_gas_used=2**20,
        excess_blob_gas=2**21,
    )
    made = header(empty(), parent)
    assert made.parent_hash == parent.hash
    assert (made.coinbase, made.gas_limit) == (parent.coinbase, 1234)
    assert (made.mix_hash, made.extra_data) == (bytes(32), b"")
    fork = BUILDER.next_fork()
    fee = parent.base_fee_per_gas or 0
    excess = next_excess_blob_gas(2**21, 2**20, fee, fork)
    assert made.excess_blob_gas == excess > 0
    assert made.parent_beacon_root == bytes(32)


def test_base_fee_follows_the_parent_in_validation_only() -> None:
    assert header(empty()).base_fee_per_gas == 0
    assert header(empty(), validates=True).base_fee_per_gas == next_base_fee(BASE)
    for validates in (False, True):
        made = header(empty(base_fee_per_gas=5), validates=validates)
        assert made.base_fee_per_gas == 5


def test_overrides_are_part_of_the_header() -> None:
    made = header(
        empty(
            gas_limit=99,
            fee_recipient=b"\x01" * 20,
            prev_randao=b"\x02" * 32,
            beacon_root=b"\x03" * 32,
        )
    )
    assert (made.gas_limit, made.coinbase) == (99, b"\x01" * 20)
    assert (made.mix_hash, made.parent_beacon_root) == (b"\x02" * 32, b"\x03" * 32)


def test_difficulty_is_overridden_before_the_merge_only() -> None:
    blocks = plan_blocks([empty(), empty(difficulty=0)], BASE)
    with pytest.raises(SimulationError) as error:
        check_difficulties(blocks, BASE, BUILDER.config)
    text = (
        f"block {BASE.number + 2}: difficulty override is not allowed after the merge"
    )
    assert (error.value.code, error.value.text) == (-32602, text)
    work = chain("london")
    (block,) = plan_blocks([empty(difficulty=5)], work.head)
    check_difficulties([block], work.head, work.config)
    made, fork = header_before_execution(block, work.head, work.config, validates=False)
    assert (made.difficulty, fork.name) == (5, "london")
    assert made.withdrawals_root is made.excess_blob_gas is None


@pytest.mark.parametrize(
    ("changes", "difficulty"),
    [({}, 0), ({"difficulty": 5}, 5)],
)
def test_a_fork_before_the_merge_has_a_difficulty_on_a_merged_chain(
    changes: dict[str, int], difficulty: int
) -> None:
    blocks = plan_blocks([empty(fork="london", **changes), empty()], BASE)
    check_difficulties(blocks, BASE, BUILDER.config)
    made, fork = header_before_execution(
        blocks[0], BASE, BUILDER.config, validates=False
    )
    assert (made.difficulty, fork.name) == (difficulty, "london")
    after, _ = header_before_execution(blocks[1], made, BUILDER.config, validates=False)
    assert after.difficulty == 0
    named = plan_blocks([empty(fork="paris", difficulty=5)], BASE)
    with pytest.raises(SimulationError, match="not allowed after the merge"):
        check_difficulties(named, BASE, BUILDER.config)


def test_fork_follows_the_simulated_time() -> None:
    config = replace(
        BUILDER.config,
        time_forks=((0, BUILDER.next_fork()), (BASE.timestamp + 20, later())),
    )
    blocks = plan_blocks([empty(), empty()], BASE)
    names, parent = [], BASE
    for block in blocks:
        parent, fork = header_before_execution(block, parent, config, validates=False)
        names.append(fork.name)
    assert names == ["osaka", "later"]


def later() -> Any:
    return replace(BUILDER.next_fork(), name="later")


def test_unknown_fork_is_refused() -> None:
    unknown = UnknownFork("future", time=BASE.timestamp + 1)
    config = replace(BUILDER.config, unknown_forks=(unknown,))
    (block,) = plan_blocks([empty()], BASE)
    with pytest.raises(UnsupportedFork):
        header_before_execution(block, BASE, config, validates=False)
