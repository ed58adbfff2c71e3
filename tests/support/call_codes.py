"""Code with calls and creations for any fork, and the resulting call frames."""

from __future__ import annotations

import json
from typing import Any

from evm.chain_config import LADDER
from evm.tracers.call import CallConfig, call_json
from evm.tracers.flat_call import FlatCallConfig, Place, flat_call_json
from evm.tracers.frames import CallFrame
from tests.support.executed import ETHER, Account, Chain
from tests.support.random_calls import push

CALLER, CALLEE, NOBODY = b"\xaa" * 20, b"\xbb" * 20, b"\xee" * 20
CALL, CALLCODE, DELEGATECALL, STATICCALL = 0xF1, 0xF2, 0xF4, 0xFA
FORKS = list(LADDER)
BYZANTIUM = FORKS[FORKS.index("byzantium") :]
PLACE = Place(bytes(32), 1, bytes(32), 0)
REVERT = push(0) * 2 + b"\xfd"
GAS = b"\x5a"
ONE_BYTE = push(1) + push(0) + b"\xf3"
"""Returns a byte of memory: the code 00."""


def since(fork: str, name: str) -> bool:
    return FORKS.index(fork) >= FORKS.index(name)


def call_to(
    address: bytes, kind: int = CALL, gas: bytes = GAS, value: int = 0, size: int = 0
) -> bytes:
    """Return code for a call that leaves its result on the stack. gas: code for the gas."""
    amount = push(value) if kind in (CALL, CALLCODE) else b""
    ranges = push(0) * 2 + push(size) + push(0)
    return ranges + amount + push(int.from_bytes(address, "big")) + gas + bytes([kind])


def run(fork: str, code: bytes, callee: bytes = b"", **options: Any) -> CallFrame:
    accounts = {CALLER: Account(ETHER, 1, code), CALLEE: Account(5, 1, callee)}
    return Chain(fork, accounts).run(CALLER, **options)


def shown(top: CallFrame, **config: bool) -> Any:
    return json.loads(call_json(top, CallConfig(**config)))


def flat(top: CallFrame, precompiles: Any = (), **config: bool) -> Any:
    return json.loads(flat_call_json(top, FlatCallConfig(**config), precompiles, PLACE))


def creation(init: bytes, kind: int = 0xF0, value: int = 0) -> bytes:
    assert len(init) <= 32
    salt = push(0) if kind == 0xF5 else b""
    word = push(int.from_bytes(init.ljust(32, b"\0"), "big"))
    return (
        word
        + push(0)
        + b"\x52"
        + salt
        + push(len(init))
        + push(0)
        + push(value)
        + bytes([kind])
    )
