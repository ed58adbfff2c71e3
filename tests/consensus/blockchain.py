"""Fixtures with blocks as RLP: BlockchainTests and EEST's `blockchain_test`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eth_utils.exceptions import ValidationError

from evm.blocks import Block, decode_block
from evm.errors import InvalidBlock
from evm.rlp import RlpError
from tests.consensus.accounts import compare_accounts
from tests.consensus.chain import TestChain, UnknownParent
from tests.consensus.networks import chain_config
from tests.consensus.values import data
from tests.consensus.verdict import Mismatch, expect

REJECTIONS = (InvalidBlock, RlpError, UnknownParent, ValidationError)
"""Exceptions that reject a block. Any other exception is a crash."""

OUTCOME_FIELDS = frozenset(
    {"state root", "receipts root", "logs bloom", "gas used", "requests hash"}
)
"""Fields that are compared after all transactions have been executed."""


def run_blockchain_test(fixture: Mapping[str, Any]) -> None:
    """Import the blocks of a fixture, and compare head and state at the end.

    Raises: Mismatch, UnknownNetwork.
    """
    config = chain_config(fixture["network"], fixture.get("config"))
    genesis = decode_block(data(fixture["genesisRLP"]))
    expected_hash = data(fixture["genesisBlockHeader"]["hash"])
    expect("genesis hash", expected_hash, genesis.header.hash)
    chain = TestChain(config, genesis, fixture["pre"])
    for index, entry in enumerate(fixture["blocks"], 1):
        _insert(chain, f"block entry {index}", entry)
    compare_end(chain, fixture)


def compare_end(chain: TestChain, fixture: Mapping[str, Any]) -> None:
    """Compare the head, and the accounts where the fixture lists them."""
    header = chain.head.block.header
    expect("last block hash", data(fixture["lastblockhash"]), header.hash)
    if fixture.get("postStateHash"):
        root = data(fixture["postStateHash"])
        expect("post-state root", root, header.state_root)
    if fixture.get("postState"):
        compare_accounts(fixture["postState"], chain.head_state())


def _insert(chain: TestChain, place: str, entry: Mapping[str, Any]) -> None:
    exceptions = [v for k, v in entry.items() if k.startswith("expectException") and v]
    if "blockHeader" not in entry:
        exceptions = exceptions or ["an exception"]

    def import_block() -> None:
        chain.insert(decode_block(data(entry["rlp"])))

    check_insertion(place, import_block, " or ".join(exceptions))
    if not exceptions:
        block: Block = decode_block(data(entry["rlp"]))
        expect(f"{place}, hash", data(entry["blockHeader"]["hash"]), block.header.hash)


def check_insertion(place: str, import_block: Any, exception: str) -> None:
    """Import a block and compare the outcome with the expectation.

    exception: names of the expected exception, empty for a valid block.
    Raises: Mismatch.
    """
    try:
        import_block()
    except REJECTIONS as error:
        if not exception:
            raise Mismatch(f"{place} was rejected: {error}") from error
        if _is_late(error) and _is_of_transactions(exception):
            raise Mismatch(
                f"{place} must be rejected because of a transaction ({exception}), "
                f"but all transactions were executed: {error}"
            ) from error
        return
    if exception:
        raise Mismatch(f"{place} was accepted; expected {exception}")


def _is_late(error: Exception) -> bool:
    """Return whether a block was rejected only because of the results of its transactions."""
    return isinstance(error, InvalidBlock) and error.field in OUTCOME_FIELDS


def _is_of_transactions(exception: str) -> bool:
    """Return whether every alternative of an expected exception names a transaction.

    EEST writes `TransactionException.NAME|…`, ethereum/tests `TR_Name`.
    """
    return all(
        name.strip().startswith(("TransactionException.", "TR_"))
        for name in exception.split("|")
    )
