"""Random programs that call, create, write and destroy each other, on any fork."""

from __future__ import annotations

import random
from typing import Any

from evm.blocks import encode_block
from evm.chain_config import LADDER as FORKS
from evm.opcodes import OPCODES
from evm.transactions import CREATE_ADDRESS
from samples.schedules import from_genesis
from tests.scenarios.base import ANN, BEN, FRESH, begin

PROGRAMS = [bytes([0xB0 + n]) * 20 for n in range(16)]
INSTRUCTIONS = 60
BLOCKS, TRANSACTIONS = 5, 24

_NUMBERS = [
    0,
    1,
    2,
    3,
    4,
    7,
    31,
    32,
    33,
    64,
    255,
    1024,
    2**16,
    2**64,
    2**255,
    2**256 - 1,
]
_ADDRESSES = [
    int.from_bytes(address, "big")
    for address in (
        *PROGRAMS,
        *FRESH[:3],
        *(n.to_bytes(20, "big") for n in range(1, 18)),
    )
]
_OPCODES = bytes.fromhex(
    "0102030405060708090a0b101112131415161718191a1b1c1d1e203031323334353637"
    "38393a3b3c3d3e3f404142434445464748494a505152535455565758595a5b5c5d5e5f"
    "8081828384879091929397a0a1a2a3a40cfe"
)
_CALLS = (0xF1, 0xF2, 0xF4, 0xFA)
_ENDS = (0xF3, 0xFD, 0xFF, 0x00)


def _push(value: int) -> bytes:
    data = value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
    return bytes([0x5F + len(data)]) + data


def program(choose: random.Random, fork: str) -> bytes:
    """Return code whose instructions mostly have enough operands on the stack."""
    opcodes = FORKS.get(fork, FORKS["osaka"]).opcodes
    valid = [number for number in _OPCODES if OPCODES[number].name in opcodes]
    code = b"".join(_push(choose.choice(_NUMBERS[:8])) for _ in range(8))
    for _ in range(INSTRUCTIONS):
        kind = choose.random()
        if kind < 0.35:
            code += _push(choose.choice(_NUMBERS[:12]))
        elif kind < 0.38:
            code += _push(choose.choice(_NUMBERS))
        elif kind < 0.45:
            code += _push(choose.choice(_ADDRESSES))
        elif kind < 0.85:
            opcode = choose.choice(valid if choose.random() < 0.998 else _OPCODES)
            taken = OPCODES[opcode].taken if choose.random() < 0.95 else 0
            code += b"".join(_push(choose.choice(_NUMBERS[:9])) for _ in range(taken))
            code += bytes([opcode])
        elif kind < 0.95:
            ranges = b"".join(_push(choose.choice(_NUMBERS[:9])) for _ in range(4))
            value = choose.choice([b"", _push(0), _push(1)])
            gas = choose.choice([b"\x5a", _push(3000), _push(50_000), _push(2**70)])
            target = _push(choose.choice(_ADDRESSES))
            code += ranges + value + target + gas + bytes([choose.choice(_CALLS)])
        elif kind < 0.99:
            store = (
                _push(int.from_bytes(choose.randbytes(8), "big")) + _push(0) + b"\x52"
            )
            operands = b"".join(_push(choose.choice(_NUMBERS[:8])) for _ in range(4))
            code += store + operands + choose.choice([b"\xf0", b"\xf5"])
        else:
            code += bytes([choose.choice(_ENDS)])
    return code


def programs(fork: str) -> tuple[dict[str, Any], list[bytes]]:
    """Return a genesis that begins with the fork, and blocks that run the programs."""
    choose = random.Random(fork)
    alloc = {
        f"0x{address.hex()}": {
            "balance": hex(choose.choice([0, 1, 10**18])),
            "nonce": "0x1",
            "code": f"0x{program(choose, fork).hex()}",
            "storage": {f"0x{n:064x}": f"0x{n + 1:064x}" for n in range(3)},
        }
        for address in PROGRAMS
    }
    genesis, chain = begin(from_genesis(fork), alloc)
    for _ in range(BLOCKS):
        for _ in range(TRANSACTIONS):
            gas = choose.choice([60_000, 200_000, 900_000])
            sender = choose.choice([ANN, BEN])
            if choose.random() < 0.1:
                code = program(choose, fork)
                chain.send(sender, CREATE_ADDRESS, code, gas=gas + 200_000)
            else:
                target, data = choose.choice(PROGRAMS), choose.randbytes(40)
                chain.send(sender, target, data, gas=gas, value=choose.choice([0, 1]))
        chain.block()
    return genesis, [encode_block(block) for block in chain.blocks]
