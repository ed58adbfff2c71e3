"""The compared chains, in the input format of the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from eth_typing import Hash32

from evm.blocks import decode_block, encode_block
from evm.chain_config import ChainConfig
from evm.changes import Changes
from evm.genesis import genesis_accounts, genesis_block
from evm.header_rules import Generation
from evm.world import EMPTY_CODE_HASH
from nodeapi.chain.genesis import genesis_state
from nodeapi.chain.memory_state import MemoryState
from nodeapi.chain.replay import Origin
from nodeapi.chain.verification import Parent, Verified, verify_block
from samples.sample import FIRST_BLOCKS
from samples.schedules import LADDER
from tests.differential.programs import programs
from tests.scenarios import SCENARIOS
from tests.support import execution_apis, sample

NOT_SPECIFIED = {"constantinople", "amsterdam"}
"""Constantinople was never active on mainnet. The specification uses Petersburg for it.
It does not have the final rules of Amsterdam, and can't decode its headers."""
NOT_COMPARED = {"dao_fork"} | {
    name for name in SCENARIOS if name.endswith("_amsterdam")
}
"""Not compared, because the specification drains mainnet's accounts at the DAO fork, and
because of Amsterdam's headers."""
SPECIFIED_AS = {"petersburg": "constantinople"}


class Case:
    """A chain: its genesis, and its blocks with the state on which each is executed."""

    def __init__(self, name: str, genesis: dict[str, Any], blocks: list[bytes]) -> None:
        self.name = name
        self._genesis = genesis
        self._blocks = blocks
        self._config = ChainConfig.from_genesis(genesis)
        self._state = MemoryState()
        root = self._state.adopt(*genesis_state(genesis))
        self._first = genesis_block(genesis, self._config, root)

    def executed(self) -> Iterator[tuple[Origin, Verified]]:
        """Yield each block with its parent's state, which then moves on.

        Raises: InvalidBlock.
        """
        head = self._first.header
        total_difficulty, line = head.difficulty, [Generation(head, ())]
        for raw in self._blocks:
            block, state = decode_block(raw), self._state
            hashes = [generation.header.hash for generation in line]
            parent = Parent(
                head, total_difficulty, hashes, line, state, state.open_trie()
            )
            verified = verify_block(block, parent, self._config)
            origin = Origin(block, verified.fork, self._config, state, hashes)
            yield origin, verified
            state.apply(verified.changes)
            head, total_difficulty = block.header, verified.total_difficulty
            uncles = tuple(uncle.hash for uncle in block.uncles)
            line = [Generation(head, uncles), *line][:256]

    def told(self, blocks: list[Any]) -> dict[str, Any]:
        """Return the input of the oracle. blocks: `told_block` of each."""
        fork = self._config.genesis_fork(self._first.header.timestamp)
        return {
            "chain_id": self._config.chain_id,
            "alloc": {
                address.hex(): {
                    "nonce": account.nonce,
                    "balance": account.balance,
                    "code": account.code.hex(),
                    "storage": account.storage,
                }
                for address, account in genesis_accounts(self._genesis).items()
            },
            "genesis": [_specified(fork.name), encode_block(self._first).hex()],
            "blocks": blocks,
        }


def _specified(fork: str) -> str:
    return SPECIFIED_AS.get(fork, fork)


def told_block(origin: Origin, changes: Changes) -> list[Any]:
    """Return a block in the oracle's input format."""
    fork, told = origin.fork.name, None
    if fork in NOT_SPECIFIED:
        told = {
            address.hex(): account
            and {
                "nonce": account.nonce,
                "balance": account.balance,
                "code": _code(origin, changes, account.code_hash).hex(),
                "storage": changes.storage.get(address, {}),
            }
            for address, account in changes.accounts.items()
        }
    return [_specified(fork), encode_block(origin.block).hex(), told]


def _code(origin: Origin, changes: Changes, code_hash: Hash32) -> bytes:
    if code_hash == EMPTY_CODE_HASH:
        return b""
    return changes.codes.get(code_hash) or origin.state.code(code_hash)


def _programs(fork: str) -> Case:
    genesis, blocks = programs(fork)
    return Case(f"programs_{fork}", genesis, blocks)


def _scenario(name: str) -> Case:
    genesis, blocks = SCENARIOS[name]()
    return Case(name, genesis, [encode_block(block) for block in blocks])


CASES: dict[str, Callable[[], Case]] = {
    "sample": lambda: Case(
        "sample",
        sample.genesis(),
        sample.raw_blocks()[: FIRST_BLOCKS["amsterdam"] - 1],
    ),
    "execution-apis": lambda: Case(
        "execution-apis", execution_apis.genesis(), execution_apis.raw_blocks()
    ),
    **{
        name: lambda name=name: _scenario(name)
        for name in SCENARIOS
        if name not in NOT_COMPARED
    },
    **{
        f"programs_{fork}": lambda fork=fork: _programs(fork)
        for fork in LADDER
        if fork not in NOT_SPECIFIED
    },
}
