"""Random contracts: trace records of the import equal traces of another execution.

The blocks are executed again on stored state, instruction by instruction. The tracers of
this module are written like go-ethereum's: they observe single instructions, and use no code
that creates trace records.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from eth_utils.exceptions import ValidationError

from evm.delegations import delegate_of
from evm.errors import InvalidTransaction
from evm.opcodes import OPCODE_NAMES
from evm.rules.fork import Fork
from evm.signatures import CURVE_ORDER, keccak
from evm.tracers.derived import prestate_derivation
from evm.tracers.frames import CallFrame
from evm.tracers.prestate import PrestateConfig
from evm.tracers.steps import Step, TracedTransaction
from evm.transactions import Transaction
from jsonrpc.stream import Stream
from nodeapi.chain.database import importer_connection
from nodeapi.chain.replay import Replay, find_origin
from samples.builder import ChainBuilder
from samples.schedules import fork_genesis
from samples.signers import Signer, create2_address, create_address
from tests.support import chains
from tests.support.executed import CHAIN_ID, ETHER
from tests.support.random_calls import random_accounts, random_transaction
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.django_db(transaction=True)

ALICE = Signer("alice")
BLOCKS, TRANSACTIONS = 12, 5
FORKS = (
    *("homestead", "spurious_dragon", "byzantium", "petersburg", "istanbul"),
    *("london", "shanghai", "cancun", "prague", "bpo2"),
)
EMPTY_CODE = keccak(b"")

_LOOKS = {"BALANCE", "EXTCODESIZE", "EXTCODECOPY", "EXTCODEHASH", "SELFDESTRUCT"}
_CALLS = {"CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"}


def name(address: bytes) -> str:
    return f"0x{address.hex()}"


def random_chain(fork: str) -> tuple[dict[str, Any], ChainBuilder]:
    """Return a genesis with random contracts, and blocks that call them."""
    choose = random.Random(fork)
    plain = fork_genesis(fork, chain_id=CHAIN_ID)
    rules = ChainBuilder(plain).next_fork()
    alloc: dict[str, Any] = {name(ALICE.address): {"balance": hex(1000 * ETHER)}}
    for address, account in random_accounts(choose, rules).items():
        alloc[name(address)] = {
            "balance": hex(account.balance),
            "nonce": hex(account.nonce),
            "code": name(account.code),
            "storage": {hex(slot): hex(v) for slot, v in account.storage.items()},
        }
    genesis = {**plain, "alloc": plain["alloc"] | alloc}
    chain = ChainBuilder(genesis)
    while len(chain.blocks) < BLOCKS:
        for _ in range(TRANSACTIONS):
            send(chain, choose, rules)
        with suppress(InvalidTransaction):  # the gas limit is below the intrinsic gas
            chain.block()
    return genesis, chain


def send(chain: ChainBuilder, choose: random.Random, rules: Fork) -> None:
    one = random_transaction(choose, rules, 0)
    options: dict[str, Any] = {"value": one.value, "gas": one.gas}
    if one.authorization_list:
        options["authorization_list"] = one.authorization_list
    chain.send(ALICE, one.to, one.data, **options)


class Geth:
    """callTracer and prestateTracer, computed from single steps."""

    wants_steps = wants_frames = True

    def __init__(self, transaction: Transaction, fork: Fork) -> None:
        self._transaction = transaction
        self._fork = fork
        self._open: list[list[Any]] = [[]]
        """The calls of each frame that runs."""
        self.before: dict[bytes, dict[str, Any]] = {}
        self._created: set[bytes] = set()
        self._deleted: set[bytes] = set()

    def start(self, transaction: TracedTransaction) -> None:
        self._state = transaction.state
        sender, to = transaction.sender, transaction.to
        if to is None:
            to = create_address(sender, self._state.get_nonce(sender))  # type: ignore[arg-type]
            self._created.add(to)
        else:
            self._look_through(to)
        for address in (sender, to, transaction.coinbase):
            self._look_up(address)
        for authorization in self._transaction.authorization_list:
            if authorization.s <= CURVE_ORDER // 2:
                with suppress(ValidationError):
                    self._look_up(authorization.authority())

    def _look_up(self, address: bytes) -> None:
        if address not in self.before:
            self.before[address] = {**self._account(address), "storage": {}}

    def _account(self, address: bytes) -> dict[str, Any]:
        state = self._state
        return {
            "balance": state.get_balance(address),
            "nonce": state.get_nonce(address),
            "code": state.get_code(address),
        }

    def _look_through(self, address: bytes) -> None:
        delegate = delegate_of(self._state.get_code(address))
        if self._fork.has_delegations and delegate is not None:
            self._look_up(delegate)

    def step(self, step: Step) -> None:
        if step.error is not None:
            return
        op, frame = OPCODE_NAMES[step.op], step.frame
        stack, here = frame.stack[::-1], frame.message.storage_address
        if op in ("SLOAD", "SSTORE"):
            storage = self.before[here]["storage"]
            storage.setdefault(stack[0], self._state.get_storage(here, stack[0]))
        elif op in _LOOKS:
            self._look_up((stack[0] % 2**160).to_bytes(20, "big"))
            if op == "SELFDESTRUCT" and (
                not self._fork.has_parent_beacon_root or here in self._created
            ):
                self._deleted.add(here)
        elif op in _CALLS:
            address = (stack[1] % 2**160).to_bytes(20, "big")
            self._look_up(address)
            self._look_through(address)
        elif op == "CREATE":
            self._create(create_address(here, self._state.get_nonce(here)))
        elif op == "CREATE2":
            _, start, size, salt = stack[:4]
            init = bytes(frame.memory[start : start + size]).ljust(size, b"\0")
            self._create(create2_address(here, salt, init))

    def _create(self, address: bytes) -> None:
        self._look_up(address)
        self._created.add(address)

    def fault(self, step: Step) -> None:
        pass

    def enter(self, frame: CallFrame) -> None:
        self._open.append([])

    def log(self, *log: Any) -> None:
        pass

    def exit(self, frame: CallFrame) -> None:
        calls = self._open.pop()
        self._open[-1].append(call_object(frame, calls))

    def end(self, frame: CallFrame, gas_used: int) -> None:
        assert frame.gas_used == gas_used
        (calls,) = self._open
        self.calls = call_object(frame, calls)
        self.after = {
            address: {
                **self._account(address),
                "storage": {
                    slot: self._state.get_storage(address, slot)
                    for slot in account["storage"]
                },
            }
            for address, account in self.before.items()
        }

    def result(self) -> bytes:
        return b""

    def prestate(self, *, include_empty: bool = False) -> dict[str, Any]:
        return {
            name(address): account_object(account)
            for address, account in self.before.items()
            if include_empty or not is_empty(account)
        }

    def difference(self) -> dict[str, Any]:
        pre, post = {}, {}
        for address, before in self.before.items():
            if address in self._deleted:
                pre[name(address)] = account_object(before)
                continue
            changed = changes(before, self.after[address])
            if changed is None:
                continue
            post[name(address)] = changed
            after = self.after[address]["storage"]
            slots = {s: v for s, v in before["storage"].items() if v and v != after[s]}
            pre[name(address)] = account_object({**before, "storage": slots})
        for address, before in self.before.items():
            if is_empty(before):
                pre.pop(name(address), None)
        return {"pre": pre, "post": post}


def is_empty(account: dict[str, Any]) -> bool:
    return not (account["balance"] or account["nonce"] or account["code"])


def words(storage: dict[int, int]) -> dict[str, str]:
    return {f"0x{slot:064x}": f"0x{value:064x}" for slot, value in storage.items()}


def account_object(account: dict[str, Any]) -> dict[str, Any]:
    found = {"balance": hex(account["balance"])}
    if account["code"]:
        found["code"] = name(account["code"])
        found["codeHash"] = name(keccak(account["code"]))
    if account["nonce"]:
        found["nonce"] = account["nonce"]
    if account["storage"]:
        found["storage"] = words(account["storage"])
    return found


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any] | None:
    if before == after:
        return None
    found: dict[str, Any] = {}
    if before["balance"] != after["balance"]:
        found["balance"] = hex(after["balance"])
    if before["code"] != after["code"]:
        found["code"] = name(after["code"])
        found["codeHash"] = name(keccak(after["code"]))
    if before["nonce"] != after["nonce"] and after["nonce"]:
        found["nonce"] = after["nonce"]
    old, new = before["storage"], after["storage"]
    storage = {slot: v for slot, v in new.items() if v and v != old[slot]}
    if storage:
        found["storage"] = words(storage)
    return found


def call_object(frame: CallFrame, calls: list[Any]) -> dict[str, Any]:
    is_made = not (frame.type.startswith("CREATE") and frame.error)
    has_output = frame.output and frame.error in (None, "execution reverted")
    members = {
        "type": frame.type,
        "from": name(frame.sender),
        "to": name(frame.to) if is_made and frame.to is not None else None,
        "gas": hex(frame.gas),
        "gasUsed": hex(frame.gas_used),
        "input": name(frame.input),
        "output": name(frame.output) if has_output else None,
        "error": frame.error,
        "calls": calls or None,
        "value": None if frame.value is None else hex(frame.value),
    }
    return {key: value for key, value in members.items() if value is not None}


def read(running: Serving, method: str, *arguments: Any) -> list[Any]:
    """Return the results of a block's transactions from the store."""

    async def answer() -> bytes:
        found = await getattr(running.service.store, method)(*arguments)
        return await found.read() if isinstance(found, Stream) else found

    return [entry["result"] for entry in json.loads(running.ask(answer))]


def executed_again(network: int, chain: ChainBuilder) -> Iterator[list[Geth]]:
    """Yield the traces of each block's transactions, by execution on stored state."""
    with importer_connection() as connection:
        for block in chain.blocks:
            found = find_origin(connection, network, chain.config, block.header.hash)
            replay, tracers = Replay(found), []
            for transaction in found.block.transactions:
                tracer = Geth(transaction, found.fork)
                replay.trace(tracer, 60)
                tracers.append(tracer)
            yield tracers


@pytest.mark.parametrize("fork", FORKS)
def test_records_say_what_executing_again_shows(fork: str) -> None:
    genesis, chain = random_chain(fork)
    chains.import_blocks("random", genesis, chain.blocks, batch_blocks=5)
    with importer_connection() as connection:
        network = chains.network_id(connection, "random")
    derived = [
        prestate_derivation(PrestateConfig(include_empty=True)),
        prestate_derivation(PrestateConfig(diff_mode=True)),
    ]
    kinds: list[str] = []
    with serving() as running:
        for block, tracers in zip(
            chain.blocks, executed_again(network, chain), strict=True
        ):
            place = network, block.header.hash
            calls = read(running, "block_trace", *place, "calls")
            prestates = read(running, "block_trace", *place, "prestate")
            everything, differences = (
                read(running, "derived_block_trace", *place, one) for one in derived
            )
            assert len(calls) == len(tracers) == TRANSACTIONS
            assert calls == [tracer.calls for tracer in tracers]
            assert prestates == [tracer.prestate() for tracer in tracers]
            assert everything == [t.prestate(include_empty=True) for t in tracers]
            assert differences == [tracer.difference() for tracer in tracers]
            follow(prestates, differences)
            kinds += [kind for call in calls for kind in kinds_of(call)]
    assert len(kinds) > 1.5 * BLOCKS * TRANSACTIONS
    assert len(set(kinds)) >= 3


def kinds_of(call: dict[str, Any]) -> Iterator[str]:
    yield call["type"]
    for inner in call.get("calls", ()):
        yield from kinds_of(inner)


def follow(prestates: list[Any], differences: list[Any]) -> None:
    """Check that each transaction's prestate contains the changes of the earlier ones."""
    known: dict[str, Any] = {}
    for prestate, difference in zip(prestates, differences, strict=True):
        for address in known.keys() & prestate.keys():
            known_account, found = known[address], prestate[address]
            for member in ("balance", "nonce", "code"):
                assert found.get(member) == known_account.get(member), address
            slots = found.get("storage", {})
            for slot in known_account["storage"].keys() & slots.keys():
                assert slots[slot] == known_account["storage"][slot]
        move_on(known, prestate, difference)


def move_on(known: dict[str, Any], prestate: Any, difference: Any) -> None:
    pre, post = difference["pre"], difference["post"]
    for address in prestate.keys() | post.keys():
        if address in pre and address not in post:
            known.pop(address, None)  # destroyed, or reported as destroyed by geth
            continue
        account = dict(prestate.get(address, {"balance": "0x0"}))
        old = known.get(address, {}).get("storage", {})
        account["storage"] = {**old, **account.get("storage", {})}
        for slot in pre.get(address, {}).get("storage", {}):
            account["storage"][slot] = "0x" + "00" * 32
        changed = dict(post.get(address, {}))
        account["storage"] |= changed.pop("storage", {})
        account |= changed
        if account.get("code") == "0x":
            del account["code"]
        known[address] = account
