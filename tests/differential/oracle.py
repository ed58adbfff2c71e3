"""Executes blocks with the executable specification, and records every instruction.

    python oracle.py CASE OUT

It runs in the oracle's own environment and imports nothing of the project. CASE is
JSON: `chain_id`, `alloc`, `genesis` as [fork, RLP], `blocks` as [fork, RLP, changes]; the
last is null, or what the block did to the state if it can't be executed here. OUT becomes
one line of JSON for each transaction that ran code: [hash, entries], see `entry`.
"""

from __future__ import annotations

import importlib
import json
import sys
import zlib
from typing import Any, TextIO

from ethereum import trace
from ethereum_rlp import rlp
from ethereum_types.bytes import Bytes, Bytes32
from ethereum_types.numeric import U64, U256, Uint


class Recorder:
    """Receives the specification's trace events."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._entries: list[list[Any]] = []
        self._hash = b""
        self._priced = True
        self._in_precompile = False

    def __call__(self, evm: Any, event: Any) -> None:
        environment = evm.message.tx_env
        if environment.tx_hash is None:  # a system call
            return
        if environment.tx_hash != self._hash:
            self.flush()
            self._hash = bytes(environment.tx_hash)
        match event:
            case trace.OpStart():
                self._entries.append(entry(evm, event.op.value))
                self._priced = False
            case trace.EvmStop() if evm.running and evm.code:
                self._entries.append(entry(evm, event.op.value))
                self._priced = True
            case trace.GasAndRefund() if not self._priced:
                self._entries[-1][3] = event.gas_cost
                self._entries[-1][5] = refund_of(evm)
                self._priced = True
            case trace.PrecompileStart():
                self._in_precompile = self._priced = True
            case trace.PrecompileEnd():
                self._in_precompile = False
            case trace.OpException() if self._in_precompile:
                self._in_precompile = False
            case trace.OpException():
                self._fail(evm, event.error)

    def _fail(self, evm: Any, error: Any) -> None:
        if hasattr(error, "code"):  # no opcode: the instruction has not begun
            self._entries.append(entry(evm, error.code))
        self._entries[-1][6] = True
        self._priced = True

    def flush(self) -> None:
        """Write the entries of the completed transaction."""
        if self._hash:
            self._out.write(json.dumps([self._hash.hex(), self._entries]) + "\n")
        self._entries, self._hash = [], b""


def entry(evm: Any, op: int) -> list[Any]:
    """Return position, opcode, gas, cost, depth, refund, has it failed, then checksums
    of stack, memory and (where there is such a thing) return data."""
    stack = ",".join([hex(item) for item in evm.stack])
    returned = getattr(evm, "return_data", None)
    return [
        int(evm.pc),
        int(op),
        int(evm.gas_left),
        0,
        int(evm.message.depth) + 1,
        refund_of(evm),
        False,
        zlib.crc32(stack.encode()),
        zlib.crc32(bytes(evm.memory)),
        None if returned is None else zlib.crc32(bytes(returned)),
    ]


def refund_of(evm: Any) -> int:
    """Return the refund counter of a frame and of its callers."""
    total = 0
    while evm is not None:
        total += int(evm.refund_counter)
        evm = evm.message.parent_evm
    return total


class Chain:
    """The specification's chain, moved from fork to fork."""

    def __init__(self, case: dict[str, Any]) -> None:
        self._chain_id = U64(case["chain_id"])
        self._name, genesis_rlp = case["genesis"]
        self._fork = load(self._name)
        state = self._state_of(
            {
                bytes.fromhex(address): (
                    account["nonce"],
                    account["balance"],
                    bytes.fromhex(account["code"]),
                    {int(k): v for k, v in account["storage"].items()},
                )
                for address, account in case["alloc"].items()
            }
        )
        genesis = self._decode(bytes.fromhex(genesis_rlp))
        assert self._module("state").state_root(state) == genesis.header.state_root
        self._chain = self._fork.BlockChain([genesis], state, self._chain_id)

    def add(self, name: str, raw: bytes) -> None:
        """Execute a block, which the specification compares with its header."""
        self._move_to(name)
        self._fork.state_transition(self._chain, self._decode(raw))

    def take_over(self, name: str, raw: bytes, changes: dict[str, Any]) -> None:
        """Apply given changes of a block if they result in the header's state root."""
        self._move_to(name)
        accounts = accounts_of(self._chain.state)
        for address, change in changes.items():
            key = bytes.fromhex(address)
            _, _, _, storage = accounts.pop(key, (0, 0, b"", {}))
            if change is not None:
                slots = {int(slot): value for slot, value in change["storage"].items()}
                fields = change["nonce"], change["balance"]
                code = bytes.fromhex(change["code"])
                accounts[key] = (*fields, code, storage | slots)
        block, state = self._decode(raw), self._state_of(accounts)
        assert self._module("state").state_root(state) == block.header.state_root
        self._chain = self._fork.BlockChain(
            [*self._chain.blocks, block], state, self._chain_id
        )

    def _move_to(self, name: str) -> None:
        if name != self._name:
            accounts = accounts_of(self._chain.state)
            self._name, self._fork = name, load(name)
            state = self._state_of(accounts)
            blocks = self._chain.blocks
            self._chain = self._fork.BlockChain(blocks, state, self._chain_id)

    def _module(self, name: str) -> Any:
        return importlib.import_module(f"ethereum.forks.{self._name}.{name}")

    def _decode(self, raw: bytes) -> Any:
        return rlp.decode_to(self._module("blocks").Block, Bytes(raw))

    def _state_of(self, accounts: dict[bytes, tuple[int, int, bytes, Any]]) -> Any:
        module, types = self._module("state"), self._module("fork_types")
        state = module.State()
        for key, (nonce, balance, code, storage) in accounts.items():
            address = types.Address(key)
            account = types.Account(Uint(nonce), U256(balance), Bytes(code))
            module.set_account(state, address, account)
            for slot, value in storage.items():
                word = Bytes32(slot.to_bytes(32, "big"))
                module.set_storage(state, address, word, U256(value))
        return state


def accounts_of(state: Any) -> dict[bytes, tuple[int, int, bytes, dict[int, int]]]:
    """Return all accounts of a state, by address."""
    result = {}
    for address, account in state._main_trie._data.items():
        storage = state._storage_tries.get(address)
        slots = {} if storage is None else storage._data
        result[bytes(address)] = (
            int(account.nonce),
            int(account.balance),
            bytes(account.code),
            {int.from_bytes(slot, "big"): int(value) for slot, value in slots.items()},
        )
    return result


def load(name: str) -> Any:
    """Return a fork's module, without its checks of seals and uncles."""
    fork = importlib.import_module(f"ethereum.forks.{name}.fork")
    fork.validate_header = lambda *_: None
    fork.validate_ommers = lambda *_: None
    return fork


def main(case_path: str, out_path: str) -> None:
    """Execute a case."""
    sys.setrecursionlimit(20_000)
    with open(case_path) as file:
        case = json.load(file)
    chain = Chain(case)
    with open(out_path, "w") as out:
        recorder = Recorder(out)
        trace.set_evm_trace(recorder)
        for number, (fork, raw, changes) in enumerate(case["blocks"], 1):
            try:
                if changes is None:
                    chain.add(fork, bytes.fromhex(raw))
                else:
                    chain.take_over(fork, bytes.fromhex(raw), changes)
            except Exception as error:
                raise SystemExit(f"block {number} ({fork}): {error!r}") from error
            recorder.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
