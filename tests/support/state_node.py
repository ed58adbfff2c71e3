"""The methods of a simulated upstream that has a state, and that can lie about it.

`StateNode.methods` answer truly, with our own documents. `LocalClient` calls them without
a connection, and may change each result, for tests of thousands of lies.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from eth_typing import Address, Hash32

from evm.changes import AccountValue, Changes
from evm.signatures import keccak
from evm.world import EMPTY_CODE_HASH
from nodeapi.chain.memory_state import MemoryState
from nodeapi.proofs.values import Anchor
from nodeapi.results.proofs import proof_document
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import MethodUnavailable, UpstreamError
from samples.node import Refused

NUMBER = 1000
BLOCK_HASH = Hash32(keccak(b"block 1000"))

NOT_OFFERED = -32601

Batches = list[list[tuple[str, Sequence[Any]]]]
"""Methods and arguments of the calls of each request."""

Change = Callable[[str, Any], Any]
"""(method, result) → the result that is sent instead."""


def make_state(accounts: int = 200, slots: int = 120, seed: int = 1) -> MemoryState:
    """Return a state of accounts with ether, and of three contracts.

    The first contract has storage of large and small values, the second one a slot, and
    the third one none.
    """
    chance = random.Random(seed)
    changes = Changes()
    for _ in range(accounts):
        changes.accounts[Address(chance.randbytes(20))] = AccountValue(
            chance.randrange(9), chance.randrange(10**20), EMPTY_CODE_HASH, None
        )
    for number in range(3):
        code = chance.randbytes(100 + number)
        code_hash = Hash32(keccak(code))
        changes.codes[code_hash] = code
        changes.accounts[contract(number)] = AccountValue(1, 7, code_hash, None)
    small = {slot: slot + 1 for slot in range(slots // 2)}
    large = {chance.getrandbits(256): chance.getrandbits(256) for _ in small}
    changes.storage[contract(0)] = small | large
    changes.storage[contract(1)] = {5: 6}
    state = MemoryState()
    state.apply(changes)
    return state


def contract(number: int) -> Address:
    """Return the address of a state's contract."""
    return Address(keccak(b"contract %d" % number)[:20])


class StateNode:
    """The methods of a node with one state, after the block `BLOCK_HASH`.

    methods: by name, with the block as their last argument.
    """

    def __init__(self, state: MemoryState) -> None:
        self.state = state
        self.tries = state.open_trie()
        self.methods: dict[str, Callable[..., Any]] = {
            "eth_getProof": self._proof,
            "eth_getCode": self._code,
            "debug_executionWitness": self._witness,
        }

    @property
    def anchor(self) -> Anchor:
        """The block with the state."""
        assert self.state.root is not None
        return Anchor(NUMBER, BLOCK_HASH, self.state.root)

    def _require(self, block: Any) -> None:
        """Check a block argument."""
        name = block.get("blockHash") if isinstance(block, dict) else block
        if name not in (f"0x{BLOCK_HASH.hex()}", hex(NUMBER)):
            raise Refused(-32000, "header not found")

    def _proof(self, name: str, keys: list[str], block: Any) -> Any:
        self._require(block)
        if len(keys) > 1024:
            raise Refused(-32602, "too many storage keys requested")
        address = Address(bytes.fromhex(name[2:]))
        (account,) = self.tries.prove_accounts([address])
        slots = self.tries.prove_slots(address, [int(key, 16) for key in keys])
        return json.loads(proof_document(address, account, keys, slots))

    def _code(self, name: str, block: Any) -> str:
        self._require(block)
        account = self.state.account(Address(bytes.fromhex(name[2:])))
        code_hash = EMPTY_CODE_HASH if account is None else account.code_hash
        return f"0x{self.state.codes.get(code_hash, b'').hex()}"

    def _witness(self, block: str) -> Any:
        """Return the whole state."""
        self._require(block)
        nodes = {
            node
            for proof in self.tries.prove_accounts(list(self.state.accounts))
            for node in proof.nodes
        } | {
            node
            for address, slots in self.state.slots.items()
            for proof in self.tries.prove_slots(address, list(slots))
            for node in proof.nodes
        }
        return {
            "headers": [],
            "codes": [f"0x{code.hex()}" for code in self.state.codes.values()],
            "state": [f"0x{node.hex()}" for node in nodes],
            "keys": None,
        }


class LocalClient(UpstreamClient):
    """A client whose calls are answered without a connection.

    methods: by name. change: of each result. calls: methods and arguments of each batch.
    """

    def __init__(
        self, methods: dict[str, Callable[..., Any]], change: Change | None = None
    ) -> None:
        super().__init__("http://127.0.0.1")
        self.methods = methods
        self.change = change
        self.batches: Batches = []

    async def call(
        self, method: str, *params: Any, max_bytes: int | None = None
    ) -> Any:
        """Answer a call."""
        [result] = await self.batch([(method, params)])
        if isinstance(result, UpstreamError):
            raise result
        return result

    async def batch(
        self,
        calls: Sequence[tuple[str, Sequence[Any]]],
        max_bytes: int | None = None,
    ) -> list[Any]:
        """Answer calls."""
        self.batches.append(list(calls))
        return [self._answer(method, params) for method, params in calls]

    def _answer(self, method: str, params: Sequence[Any]) -> Any:
        if method not in self.methods:
            self.note_refusal(method)
            return MethodUnavailable(NOT_OFFERED, f"the method {method} does not exist")
        try:
            result = self.methods[method](*params)
            return self.change(method, result) if self.change else result
        except Refused as refusal:
            return UpstreamError(refusal.error["code"], refusal.error["message"])
