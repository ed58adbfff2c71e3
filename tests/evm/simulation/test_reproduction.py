"""A simulation of a block's own transactions has the block's results."""

from __future__ import annotations

from typing import Any

from evm.blocks import Block, decode_block
from evm.chain_config import ChainConfig
from evm.genesis import genesis_block
from evm.header_rules import Generation
from evm.headers import EMPTY_UNCLES_HASH
from evm.simulation.arguments import CallArguments
from evm.simulation.budget import GasBudget
from evm.simulation.overrides import BlockOverrides
from evm.simulation.planning import BlockCalls
from evm.transactions import (
    ACCESS_LIST,
    BLOB,
    CREATE_ADDRESS,
    LEGACY,
    SET_CODE,
    Transaction,
)
from nodeapi.chain.genesis import genesis_state
from nodeapi.chain.memory_state import MemoryState
from nodeapi.chain.verification import Parent, verify_block
from samples.sample import FIRST_BLOCKS
from tests.evm.simulation.chain import simulate_on
from tests.support import execution_apis, sample


def request_of(block: Block) -> BlockCalls:
    """Return the request that has a block's properties and transactions."""
    header = block.header
    overrides = BlockOverrides(
        number=header.number,
        difficulty=header.difficulty or None,
        time=header.timestamp,
        gas_limit=header.gas_limit,
        fee_recipient=header.coinbase,
        prev_randao=header.mix_hash,
        beacon_root=header.parent_beacon_root,
        withdrawals=None if block.withdrawals is None else tuple(block.withdrawals),
    )
    arguments = tuple(map(arguments_of, block.transactions))
    return BlockCalls(overrides=overrides, calls=arguments)


def arguments_of(transaction: Transaction) -> CallArguments:
    """Return the arguments of a call that does the same as a transaction."""
    arguments = CallArguments(
        sender=transaction.sender,
        to=None if transaction.to == CREATE_ADDRESS else transaction.to,
        gas=transaction.gas,
        value=transaction.value,
        nonce=transaction.nonce,
        data=transaction.data,
        access_list=None if transaction.type == LEGACY else transaction.access_list,
    )
    if transaction.type <= ACCESS_LIST:
        arguments.gas_price = transaction.max_fee_per_gas
        return arguments
    arguments.max_fee_per_gas = transaction.max_fee_per_gas
    arguments.max_priority_fee_per_gas = transaction.max_priority_fee_per_gas
    if transaction.type == BLOB:
        arguments.max_fee_per_blob_gas = transaction.max_fee_per_blob_gas
        arguments.blob_versioned_hashes = transaction.blob_versioned_hashes
    if transaction.type == SET_CODE:
        arguments.authorization_list = transaction.authorization_list
    return arguments


COMPARED = (
    *("parent_hash", "gas_used", "logs_bloom", "base_fee_per_gas"),
    *("blob_gas_used", "excess_blob_gas", "parent_beacon_root", "requests_hash"),
    *("receipts_root", "withdrawals_root"),
)


def expected(block: Block) -> dict[str, Any]:
    """Return the header's fields that a simulation reproduces.

    Simulated transactions have no signature, hence another transactions root. No uncles
    are rewarded.
    """
    names = [*COMPARED]
    if block.header.uncles_hash == EMPTY_UNCLES_HASH:
        names.append("state_root")
    return {name: getattr(block.header, name) for name in names}


def reproduce(genesis: dict[str, Any], raw_blocks: list[bytes]) -> list[Block]:
    """Simulate each block of a chain on its parent. Return the blocks."""
    config = ChainConfig.from_genesis(genesis)
    state = MemoryState()
    head = genesis_block(genesis, config, state.adopt(*genesis_state(genesis))).header
    total_difficulty = head.difficulty
    generations = [Generation(head, ())]
    blocks = []
    for raw in raw_blocks:
        block = decode_block(raw)
        hashes = [generation.header.hash for generation in generations]
        (simulated,) = simulate_on(
            state,
            head,
            config,
            [request_of(block)],
            GasBudget(0),
            hashes=hashes[1:],
            validates=True,
        )
        found, wanted = simulated.block.header, expected(block)
        assert {name: getattr(found, name) for name in wanted} == wanted, (
            head.number + 1
        )
        assert len(simulated.outcomes) == len(block.transactions)
        parent = Parent(
            head, total_difficulty, hashes, generations, state, state.open_trie()
        )
        verified = verify_block(block, parent, config, record_limit_bytes=None)
        state.apply(verified.changes)
        head, total_difficulty = block.header, verified.total_difficulty
        uncles = tuple(uncle.hash for uncle in block.uncles)
        generations = [Generation(head, uncles), *generations][:256]
        blocks.append(block)
    return blocks


def test_each_block_of_the_sample_chain_is_reproduced() -> None:
    blocks = reproduce(sample.genesis(), sample.raw_blocks())
    assert len(blocks) > max(FIRST_BLOCKS.values())
    kinds = {each.type for block in blocks for each in block.transactions}
    assert kinds == {0, 1, 2, 3, 4}


def test_each_block_of_the_recorded_chain_is_reproduced() -> None:
    raw = execution_apis.raw_blocks()
    assert len(reproduce(execution_apis.genesis(), raw)) == len(raw)
