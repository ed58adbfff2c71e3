"""A chain with transactions that are difficult to show on a page."""

from __future__ import annotations

from abi.encoding import word
from evm.blocks import Block
from samples.assembler import assemble
from samples.builder import ChainBuilder
from samples.signers import Signer
from tests.support.tokens import error_reason

ALICE = Signer("alice")
COMPLAINER, WIDE, DEEP, MIXED, LOGGER = (bytes([0xA0 + n]) * 20 for n in range(1, 6))
SCRIPT = "<script>alert(1)</script>"
TURNED = "a\u202edlog\0"
"""A text with a bidirectional control character and a control character."""
MARKED = "e" + "\u0301" * 240
"""A text with many combining marks, between which a line can't break."""
GAS_PRICE_WEI = 10**11
BLOCK_GAS = 60_000_000
FORKS = (
    *("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople"),
    *("petersburg", "istanbul", "berlin", "london"),
)

_PROGRAMS = {
    # Reverts with its input.
    COMPLAINER: "CALLDATASIZE PUSH 0 DUP1 CALLDATACOPY CALLDATASIZE PUSH 0 REVERT",
    # Calls an account without code; the input is the number of calls.
    WIDE: """
        PUSH 0 CALLDATALOAD
        again: DUP1 ISZERO PUSH @done JUMPI
        PUSH 0 DUP1 DUP1 DUP1 DUP1 PUSH 0xeeee GAS CALL POP
        PUSH 1 SWAP1 SUB PUSH @again JUMP
        done: STOP
    """,
    # Calls itself with its input minus one, then reverts with the text below.
    DEEP: """
        CALLDATASIZE PUSH 0 DUP1 CALLDATACOPY
        PUSH 0 MLOAD DUP1 ISZERO PUSH @bottom JUMPI
        PUSH 1 SWAP1 SUB PUSH 0 MSTORE
        PUSH 0 DUP1 CALLDATASIZE PUSH 0 DUP1 ADDRESS GAS CALL
        bottom: PUSH 32 CALLDATASIZE SUB PUSH 32 REVERT
    """,
    # Makes calls, logs and changes of all kinds.
    MIXED: """
        CALLDATASIZE PUSH 0 DUP1 CALLDATACOPY
        PUSH 7 PUSH 1 SSTORE  PUSH 0 PUSH 2 SSTORE
        PUSH 5 PUSH 32 PUSH 0 LOG1
        PUSH 0 DUP1 CALLDATASIZE PUSH 0 PUSH 1000000000000000000
            PUSH20 0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee GAS CALL POP
        PUSH 0 DUP1 CALLDATASIZE PUSH 0 PUSH20 @LOGGER GAS DELEGATECALL POP
        PUSH 0 DUP1 CALLDATASIZE PUSH 0 PUSH20 @COMPLAINER GAS STATICCALL POP
        PUSH 0 DUP1 DUP1 DUP1 DUP1 PUSH 2 GAS CALL POP
        PUSH 0x60006000fd PUSH 0 MSTORE
        PUSH 5 PUSH 27 PUSH 0 CREATE POP
        PUSH 0x60ee6000526001601ff3 PUSH 0 MSTORE
        PUSH 10 PUSH 22 PUSH 0 CREATE POP
        PUSH 32 PUSH 0 LOG0
        STOP
    """,
    LOGGER: """
        PUSH 1 PUSH 3 SSTORE
        PUSH 3 PUSH 2 PUSH 1 CALLDATASIZE PUSH 0 LOG3
        STOP
    """,
}


def genesis() -> dict[str, object]:
    """Return a genesis with the contracts."""
    alloc: dict[str, object] = {ALICE.address.hex(): {"balance": hex(10**24)}}
    for address, program in _PROGRAMS.items():
        text = program.replace("@LOGGER", f"0x{LOGGER.hex()}")
        code = assemble(text.replace("@COMPLAINER", f"0x{COMPLAINER.hex()}"))
        alloc[address.hex()] = {
            "balance": hex(5 * 10**18),
            "code": f"0x{code.hex()}",
            "storage": {"0x2": "0x9"},
        }
    return {
        "config": {"chainId": 1337, **{f"{fork}Block": 0 for fork in FORKS}},
        "difficulty": "0x20000",
        "gasLimit": hex(BLOCK_GAS),
        "alloc": alloc,
    }


def build() -> ChainBuilder:
    """Return the chain: a block of seven transactions, then one of 150."""
    chain = ChainBuilder(genesis())
    price = {"gas_price": GAS_PRICE_WEI}
    chain.send(ALICE, COMPLAINER, error_reason(SCRIPT), **price)
    chain.send(ALICE, COMPLAINER, error_reason(TURNED), **price)
    chain.send(ALICE, COMPLAINER, bytes.fromhex("01020304") + bytes(32), **price)
    chain.send(ALICE, WIDE, word(20_000), gas=20_000_000, **price)
    chain.send(ALICE, DEEP, word(300) + error_reason(SCRIPT), gas=15_000_000, **price)
    chain.send(ALICE, MIXED, error_reason("not today"), gas=2_000_000, **price)
    chain.deploy(ALICE, bytes.fromhex("60ee6000526001601ff3"), value=10**18, **price)
    chain.send(ALICE, COMPLAINER, error_reason(MARKED), **price)
    chain.block()
    for number in range(150):
        chain.send(ALICE, bytes([number + 1]) * 20, gas=21_000, value=number, **price)
    chain.block()
    return chain


def side_block() -> Block:
    """Return another block 1, whose only transaction is the first of the chain's."""
    chain = ChainBuilder(genesis())
    chain.send(ALICE, COMPLAINER, error_reason(SCRIPT), gas_price=GAS_PRICE_WEI)
    return chain.block(extra_data=b"beside")


def blocks() -> list[Block]:
    """Return the chain's blocks and the side block."""
    return [*build().blocks, side_block()]
