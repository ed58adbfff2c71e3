"""vmTrace: the cost and effects of each instruction, and nested frames."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from evm.chain_config import LADDER
from evm.errors import InvalidTransaction
from evm.opcodes import OPCODES
from evm.tracers.struct_log import StructLogger, StructLogOptions
from evm.tracers.vm_trace import VmTracer
from evm.transactions import Transaction
from tests.evm.test_interpreter import push
from tests.support.executed import SENDER, Account, replay_of, transaction
from tests.support.random_calls import CONTRACTS, random_accounts, random_transaction

OUTER, INNER = CONTRACTS[0], CONTRACTS[1]


def trace(
    fork: str, accounts: dict[bytes, Account], one: Transaction
) -> dict[str, Any]:
    pieces: list[bytes] = []
    tracer = VmTracer(pieces.append)
    replay_of(fork, accounts, one).trace(tracer, 60)
    pieces.append(tracer.result())
    found: dict[str, Any] = json.loads(b"".join(pieces))
    return found


def logs(
    fork: str, accounts: dict[bytes, Account], one: Transaction
) -> list[dict[str, Any]]:
    pieces: list[bytes] = []
    logger = StructLogger(StructLogOptions(enable_memory=True), pieces.append)
    replay_of(fork, accounts, one).trace(logger, 60)
    pieces.append(logger.result())
    found = json.loads(b"".join(pieces))
    entries: list[dict[str, Any]] = found["structLogs"]
    return entries


def flat(trace: dict[str, Any], depth: int = 1) -> Iterator[tuple[int, dict[str, Any]]]:
    for operation in trace["ops"]:
        yield depth, operation
        if operation["sub"] is not None:
            yield from flat(operation["sub"], depth + 1)


def test_every_member_of_a_small_program() -> None:
    inner = push(7) + push(0) + b"\x52" + push(32) + push(0) + b"\xf3"  # returns 7
    outer = (
        push(5) + push(1) + b"\x55"  # SSTORE
        + push(32) + push(64) + push(0) * 3 + push(int.from_bytes(INNER)) + b"\x5a\xf1"
        + b"\x80\x90\x00"
    )  # fmt: skip
    accounts = {OUTER: Account(1, 1, outer), INNER: Account(1, 1, inner)}
    found = trace("osaka", accounts, transaction(0, OUTER, gas=100_000))
    assert found["code"] == "0x" + outer.hex()
    ops = found["ops"]
    assert ops[0] == {
        "pc": 0,
        "cost": 3,
        "sub": None,
        "ex": {"used": 78_997, "push": ["0x5"], "mem": None, "store": None},
    }
    store = ops[2]
    assert store["ex"]["store"] == {"key": "0x1", "val": "0x5"}
    assert store["ex"]["push"] == []
    call, duplicate, swap, stop = ops[-4:]
    assert call["ex"]["push"] == ["0x1"]
    assert call["ex"]["mem"] == {"off": 64, "data": word(7)}
    assert call["sub"]["code"] == "0x" + inner.hex()
    assert [each["pc"] for each in call["sub"]["ops"]] == [0, 2, 4, 5, 7, 9]
    assert call["sub"]["ops"][2]["ex"]["mem"] == {"off": 0, "data": word(7)}
    # The cost includes the passed gas, a part of which is returned later.
    before, left = ops[-5]["ex"]["used"], call["ex"]["used"]
    assert before - call["cost"] < left < before
    assert duplicate["ex"]["push"] == ["0x1", "0x1"]
    assert swap["ex"]["push"] == ["0x1", "0x1"]
    assert stop["ex"] == {
        "used": swap["ex"]["used"], "push": [], "mem": None, "store": None
    }  # fmt: skip
    assert stop["sub"] is None


def word(value: int) -> str:
    return f"0x{value:064x}"


@pytest.mark.parametrize(
    ("code", "gas"),
    [
        (push(1) * 2 + b"\x55", 21_010),  # out of gas
        (b"\x01", 100_000),  # stack underflow
        (b"\xfe", 100_000),
        (push(9) + b"\x56", 100_000),  # no destination to jump to
    ],
)
def test_an_instruction_that_failed_has_no_effects(code: bytes, gas: int) -> None:
    accounts = {OUTER: Account(1, 1, code)}
    found = trace("osaka", accounts, transaction(0, OUTER, gas=gas))
    assert found["ops"][-1]["ex"] is None
    assert all(each["ex"] for each in found["ops"][:-1])


def test_revert_is_no_failure() -> None:
    accounts = {OUTER: Account(1, 1, push(0) * 2 + b"\xfd")}
    found = trace("osaka", accounts, transaction(0, OUTER))
    assert found["ops"][-1]["ex"]["push"] == []


def test_frames_without_instructions_have_no_operations() -> None:
    plain = transaction(0, b"\xee" * 20, value=1)
    assert trace("osaka", {}, plain) == {"code": "0x", "ops": []}
    call = push(0) * 5 + push(4) + b"\x5a\xf1\x00"  # of a precompiled contract
    found = trace("osaka", {OUTER: Account(1, 1, call)}, transaction(0, OUTER))
    subs = [each["sub"] for each in found["ops"] if each["sub"]]
    assert subs == [{"code": "0x", "ops": []}]
    code = push(0) + b"\x50"
    found = trace("osaka", {}, transaction(0, None, code))
    assert found["code"] == "0x" + code.hex()
    assert [each["pc"] for each in found["ops"]] == [0, 2, 3]


@pytest.mark.parametrize("fork", LADDER)
def test_operations_are_those_of_the_struct_logger(fork: str) -> None:
    compared = nested = 0
    for seed in range(12):
        choose = random.Random(f"vm {fork} {seed}")
        accounts = random_accounts(choose, LADDER[fork])
        one = random_transaction(choose, LADDER[fork], accounts_nonce(accounts))
        try:
            found = list(flat(trace(fork, accounts, one)))
        except InvalidTransaction:
            continue
        entries = logs(fork, accounts, one)
        assert [(depth, op["pc"]) for depth, op in found] == [
            (entry["depth"], entry["pc"]) for entry in entries
        ]
        for place, ((_, operation), entry) in enumerate(
            zip(found, entries, strict=True)
        ):
            following = next_of_frame(entries, place)
            check(operation, entry, following)
            compared += 1
            nested += operation["sub"] is not None
    assert compared > 100
    assert nested


def accounts_nonce(accounts: dict[bytes, Account]) -> int:
    return accounts[SENDER].nonce if SENDER in accounts else 0


def next_of_frame(entries: list[dict[str, Any]], place: int) -> dict[str, Any] | None:
    """Return the next entry of the frame of an entry, None for its last one."""
    depth = entries[place]["depth"]
    for entry in entries[place + 1 :]:
        if entry["depth"] <= depth:
            return entry if entry["depth"] == depth else None
    return None


def check(
    operation: dict[str, Any],
    entry: dict[str, Any],
    following: dict[str, Any] | None,
) -> None:
    """Compare an operation with what the struct logger shows before and after it."""
    sub, cost = operation["sub"], entry["gasCost"]
    if entry["op"] not in ("CREATE", "CREATE2"):
        assert operation["cost"] == cost
    elif sub is not None and sub["ops"]:
        first = sub["ops"][0]
        given = operation["cost"] - cost
        if first["ex"] is not None and first["sub"] is None:
            assert first["ex"]["used"] + first["cost"] == given
    if "error" in entry:
        assert operation["ex"] is None
    effects = operation["ex"]
    if effects is None:
        assert following is None
        return
    if following is None:
        assert effects["push"] == []
        return
    assert effects["used"] == following["gas"]
    numbers = {opcode.name: opcode for opcode in OPCODES}
    count = numbers.get(entry["op"], OPCODES[0]).put
    assert effects["push"] == (following["stack"][-count:] if count else [])
    if effects["mem"] is not None:
        memory = "".join(each[2:] for each in following["memory"])
        start = 2 * effects["mem"]["off"]
        data = effects["mem"]["data"][2:]
        assert memory[start : start + len(data)] == data
