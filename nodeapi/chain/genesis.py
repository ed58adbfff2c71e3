"""Creation of a chain: the genesis as block 0, its alloc as the first state rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import sha3
from eth_typing import Hash32

from evm.block_access_list import NOTHING_ACCESSED
from evm.chain_config import ChainConfig
from evm.changes import AccountValue, Changes
from evm.execution import Outcome
from evm.genesis import genesis_accounts, genesis_block
from evm.state_trie import StateTrie
from evm.trie import NodeCache
from nodeapi.chain.memory_state import MemoryState
from nodeapi.chain.rows import Rows, block_row
from nodeapi.chain.verification import Verified

if TYPE_CHECKING:
    import psycopg

    from evm.blocks import Block


def genesis_state(genesis: Mapping[str, Any]) -> tuple[Changes, StateTrie, Hash32]:
    """Return the state of a genesis.json's alloc, its tries, and its state root.

    Raises: GenesisError if the alloc is malformed.
    """
    changes = Changes()
    for address, account in genesis_accounts(genesis).items():
        code_hash = Hash32(sha3.keccak_256(account.code).digest())
        changes.accounts[address] = AccountValue(
            account.nonce, account.balance, code_hash, None
        )
        if account.code:
            changes.codes[code_hash] = account.code
        if account.storage:
            changes.storage[address] = dict(account.storage)
    nothing = MemoryState()
    trie = StateTrie(nothing, NodeCache(0), None, nothing)
    return changes, trie, trie.apply(changes)


def verified_genesis(
    genesis: Mapping[str, Any], config: ChainConfig
) -> tuple[Verified, StateTrie]:
    """Return block 0 and its tries, to be stored."""
    changes, trie, root = genesis_state(genesis)
    block: Block = genesis_block(genesis, config, root)
    fork = config.genesis_fork(block.header.timestamp)
    outcome = Outcome(
        receipts=[],
        gas_used=0,
        bloom=0,
        requests=None,
        access_list=NOTHING_ACCESSED,
    )
    return Verified(block, fork, block.header.difficulty, outcome, changes), trie


def store_genesis(
    connection: psycopg.Connection[Any],
    network_id: int,
    verified: Verified,
    trie: StateTrie,
    *,
    with_state: bool = True,
) -> None:
    """Write block 0 and its state and make it the head, in one transaction.

    with_state: False for a network that starts at a checkpoint. Its rows and nodes of the
        state are those of the checkpoint.
    """
    header = verified.block.header
    rows = Rows(connection, network_id)
    with rows.transaction():
        rows.insert_blocks([block_row(verified, is_canonical=True)])
        if with_state:
            rows.insert_versions([(header.number, verified.changes)])
            rows.insert_codes(verified.changes.codes)
            rows.replace_nodes(trie.dirty_nodes())
        rows.set_head(header.number, header.hash, before=None)
