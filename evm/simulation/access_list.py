"""The access list of a call: accounts and slots that its execution touches.

Source: go-ethereum v1.17.10, eth/tracers/logger/access_list_tracer.go,
internal/ethapi/api.go `AccessList`
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from eth_typing import Address
from eth_utils.exceptions import ValidationError

from evm.addresses import address_of, contract_address
from evm.opcodes import NUMBERS
from evm.simulation.call import LIMITED_CALL, CallResult
from evm.simulation.traced import execute_traced_call
from evm.tracers.steps import InstructionTracer
from evm.transactions import CREATE_ADDRESS, AccessList, Authorization

if TYPE_CHECKING:
    from evm.simulation.arguments import CallMessage
    from evm.simulation.block import CallBlock
    from evm.tracers.steps import Step
    from evm.world import World

_SLOT_OPCODES = frozenset({NUMBERS["SLOAD"], NUMBERS["SSTORE"]})
_ACCOUNT_OPCODES = frozenset(
    NUMBERS[name]
    for name in ("EXTCODECOPY", "EXTCODEHASH", "EXTCODESIZE", "BALANCE", "SELFDESTRUCT")
)
_CALLS = frozenset(
    NUMBERS[name] for name in ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")
)
_CALL_ITEMS = 5
"""Stack items that geth's tracer asks of a call."""

_Touched = dict[Address, set[int]]
"""Accounts, each with its slots."""


class AccessListTracer(InstructionTracer):
    """A `StepTracer` that collects accounts and slots."""

    def __init__(self, known: AccessList, excluded: Container[bytes]) -> None:
        """Begin with a known list.

        excluded: addresses that are listed with the slots that are touched only.
        """
        self.touched: _Touched = {}
        self._excluded = excluded
        for address, slots in known:
            if address in excluded:
                continue
            self.touched.setdefault(address, set())
            for slot in slots:
                self._add_slot(address, slot)

    def step(self, step: Step) -> None:
        """Add the next instruction's accounts and slots, even if it is going to fail."""
        items = step.frame.stack
        if not items:
            return
        if step.op in _SLOT_OPCODES:
            self._add_slot(step.frame.message.storage_address, items[-1])
        elif step.op in _ACCOUNT_OPCODES:
            self._add_account(address_of(items[-1]))
        elif step.op in _CALLS and len(items) >= _CALL_ITEMS:
            self._add_account(address_of(items[-2]))

    def result(self) -> bytes:
        """Return nothing; `access_list` returns the collected accounts and slots."""
        return b""

    def _add_account(self, address: bytes) -> None:
        if address not in self._excluded:
            self.touched.setdefault(Address(address), set())

    def _add_slot(self, address: bytes, slot: int) -> None:
        self.touched.setdefault(Address(address), set()).add(slot)


def authorities(authorizations: Iterable[Authorization], chain_id: int) -> set[Address]:
    """Return the signers of the authorizations with a valid chain id and signature."""
    found = set()
    for authorization in authorizations:
        try:
            authorization.validate(chain_id)
            found.add(authorization.authority())
        except ValidationError:
            continue
    return found


def receiver(call: CallMessage) -> Address:
    """Return the recipient of a call, or the address of the contract that it creates."""
    if call.to != CREATE_ADDRESS:
        return call.to
    return contract_address(call.sender, call.nonce)


def create_access_list(
    world: World,
    block: CallBlock,
    call: CallMessage,
    excluded: Container[bytes],
    deadline: float,
) -> tuple[CallResult, int]:
    """Execute a call until its access list is complete. Each execution is undone.

    call: its access list is complete afterwards.
    excluded: see `AccessListTracer`.
    deadline: in the time of `time.monotonic()`.

    Return the result of the last execution, and the gas that all have used together.

    Raises: CallRejected; ExecutionTimeout of `evm.tracers.steps`.
    """
    previous = AccessListTracer(call.access_list, excluded).touched
    gas_used = 0
    while True:
        known = call.accesses = tuple(
            (address, tuple(sorted(previous[address]))) for address in sorted(previous)
        )
        tracer = AccessListTracer(known, excluded)
        result = execute_traced_call(
            world, block, call, tracer, rules=LIMITED_CALL, deadline=deadline
        )
        world.discard(0)
        gas_used += result.gas_used
        if tracer.touched == previous:
            return result, gas_used
        previous = tracer.touched
