"""Logs of simulated calls, with and without transfers of ether."""

from __future__ import annotations

from typing import Any

import pytest

from evm.receipts import logs_bloom
from evm.simulation.arguments import CallArguments
from evm.simulation.overrides import AccountOverride
from evm.simulation.transfer_logs import ETHER_ADDRESS, TRANSFER_TOPIC
from samples.assembler import assemble
from tests.evm.simulation.chain import (
    IDENTITY,
    POOR,
    RICH,
    TARGET,
    calls,
    chain,
    only,
    simulate,
)

BUILDER = chain()
LOG = "PUSH 0 PUSH 0 LOG0 "


def padded(address: bytes) -> bytes:
    return bytes(12) + address


def transfer(sender: bytes, to: bytes, value: int) -> tuple[Any, ...]:
    topics = TRANSFER_TOPIC, padded(sender), padded(to)
    return ETHER_ADDRESS, topics, value.to_bytes(32, "big")


def calling(kind: str, to: bytes, value: int) -> str:
    """Return source that calls an account, with a value if the opcode has one."""
    paid = f"PUSH {value} " if kind in ("CALL", "CALLCODE") else ""
    return f"PUSH 0 PUSH 0 PUSH 0 PUSH 0 {paid}PUSH20 0x{to.hex()} GAS {kind} POP "


def logs(
    source: str, *, value: int = 0, traces: bool = True, **accounts: AccountOverride
) -> Any:
    """Return the logs of one call of TARGET with this code."""
    target = AccountOverride(code=assemble(source), balance=100)
    argument = CallArguments(sender=RICH, to=TARGET, value=value)
    request = calls(argument, target=target, **accounts)
    return only(simulate(BUILDER, request, traces_transfers=traces)).logs


def contents(found: Any) -> list[tuple[Any, ...]]:
    return [(log.address, log.topics, log.data) for log in found]


def test_transfers_are_reported_on_demand() -> None:
    assert logs("STOP", value=5, traces=False) == []
    assert contents(logs("STOP", value=5)) == [transfer(RICH, TARGET, 5)]
    assert logs("STOP", value=0) == []


@pytest.mark.parametrize("kind", ["CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"])
def test_only_calls_with_their_own_value_transfer(kind: str) -> None:
    inner = [transfer(TARGET, POOR, 7)] if kind == "CALL" else []
    outer = [transfer(RICH, TARGET, 5)]
    assert contents(logs(calling(kind, POOR, 7), value=5)) == outer + inner


def test_transfers_to_precompiled_contracts_are_reported() -> None:
    found = contents(logs(calling("CALL", IDENTITY, 7)))
    assert found == [transfer(TARGET, IDENTITY, 7)]


def test_creations_and_self_destructions_transfer() -> None:
    created = logs("PUSH 0 PUSH 0 PUSH 9 CREATE")
    ((address, topics, data),) = contents(created)
    assert (address, topics[:2]) == (ETHER_ADDRESS, (TRANSFER_TOPIC, padded(TARGET)))
    assert int.from_bytes(data, "big") == 9
    destroyed = contents(logs(f"PUSH20 0x{POOR.hex()} SELFDESTRUCT"))
    assert destroyed == [transfer(TARGET, POOR, 100)]


def test_failed_frames_leave_no_gaps_in_the_indexes() -> None:
    reverting = AccountOverride(code=assemble(LOG + "PUSH 0 PUSH 0 REVERT"))
    source = LOG + calling("CALL", POOR, 7) + LOG
    found = logs(source, poor=reverting)
    assert [log.log_index for log in found] == [0, 1]
    assert {log.address for log in found} == {TARGET}


def test_refused_calls_leave_no_gaps_in_the_indexes() -> None:
    found = logs(calling("CALL", POOR, 101) + LOG)
    assert [log.log_index for log in found] == [0]


def test_failed_call_has_no_logs_and_indexes_continue_in_the_block() -> None:
    source = LOG + "CALLVALUE PUSH @fail JUMPI STOP fail: INVALID"
    target = AccountOverride(code=assemble(source))
    wanted = [
        CallArguments(sender=RICH, to=TARGET, value=value, gas=50_000)
        for value in (0, 1, 0)
    ]
    request = calls(*wanted, target=target)
    simulated = simulate(BUILDER, request, calls(wanted[0]), traces_transfers=True)
    indexes = [
        [[log.log_index for log in outcome.logs] for outcome in block.outcomes]
        for block in simulated
    ]
    assert indexes == [[[0], [], [1]], [[0]]]


def test_transfers_are_no_part_of_the_bloom() -> None:
    target = AccountOverride(code=assemble(LOG))
    argument = CallArguments(sender=RICH, to=TARGET, value=5)
    headers = []
    for traces in (False, True):
        (simulated,) = simulate(
            BUILDER, calls(argument, target=target), traces_transfers=traces
        )
        headers.append(simulated.block.header)
        assert len(simulated.outcomes[0].logs) == 1 + traces
    assert headers[0] == headers[1]
    (own,) = simulated.outcomes[0].result.logs
    assert int.from_bytes(headers[0].logs_bloom, "big") == logs_bloom([own])
