"""A chain with token contracts, whose calls and logs have well-known forms."""

from __future__ import annotations

from eth_abi import encode

from abi.definitions import parse_definition
from evm.blocks import Block
from evm.hexadecimal import to_hex
from samples.assembler import assemble
from samples.builder import ChainBuilder
from samples.signers import Signer
from tests.explorer import chain

ALICE, CAROL = Signer("alice"), Signer("carol")
BOB = bytes([0xB0]) * 20
COIN, ART, GAMES, FORGER, FORWARDER, OTHERS = (
    bytes([0xC0 + n]) * 20 for n in range(1, 7)
)

TRANSFER = "event Transfer(address indexed from, address indexed to, uint256 amount)"
SINGLE = (
    "event TransferSingle(address indexed operator, address indexed from,"
    " address indexed to, uint256 id, uint256 amount)"
)
BATCH = (
    "event TransferBatch(address indexed operator, address indexed from,"
    " address indexed to, uint256[] ids, uint256[] amounts)"
)

AGGREGATE = (
    "function aggregate3((address target, bool allowFailure, bytes callData)[] calls)"
)


def topic(line: str) -> str:
    return f"0x{parse_definition(line).key.hex()}"


_PROGRAMS = {
    # transfer(address to, uint256 amount) of ERC-20
    COIN: f"""
        PUSH 36 CALLDATALOAD PUSH 0 MSTORE
        PUSH 4 CALLDATALOAD CALLER PUSH {topic(TRANSFER)} PUSH 32 PUSH 0 LOG3
        PUSH 1 PUSH 0 MSTORE PUSH 32 PUSH 0 RETURN
    """,
    # safeTransferFrom(address from, address to, uint256 tokenId) of ERC-721
    ART: f"""
        PUSH 68 CALLDATALOAD PUSH 36 CALLDATALOAD PUSH 4 CALLDATALOAD
        PUSH {topic(TRANSFER)} PUSH 0 PUSH 0 LOG4 STOP
    """,
    # Logs its input as a batch of ERC-1155 from address 0, with topic and receiver.
    GAMES: """
        PUSH 64 CALLDATASIZE SUB PUSH 64 PUSH 0 CALLDATACOPY
        PUSH 32 CALLDATALOAD PUSH 0 CALLER PUSH 0 CALLDATALOAD
        PUSH 64 CALLDATASIZE SUB PUSH 0 LOG4 STOP
    """,
    # Logs its input with topic 0 and two further topics.
    FORGER: """
        PUSH 32 CALLDATASIZE SUB PUSH 32 PUSH 0 CALLDATACOPY
        PUSH 2 PUSH 1 PUSH 0 CALLDATALOAD
        PUSH 32 CALLDATASIZE SUB PUSH 0 LOG3 STOP
    """,
    # Calls the coin with its own input.
    FORWARDER: f"""
        CALLDATASIZE PUSH 0 DUP1 CALLDATACOPY
        PUSH 0 DUP1 CALLDATASIZE PUSH 0 DUP1 PUSH20 0x{COIN.hex()} GAS CALL STOP
    """,
}

PAYMENT, GIFT, PRIZES, FORGED, MALFORMED, FORWARDED, PLAIN, BUNDLE = range(8)
"""The transactions of block 1."""


def genesis() -> dict[str, object]:
    """Return a genesis with the contracts."""
    found = chain.genesis()
    alloc: dict[str, object] = {
        signer.address.hex(): {"balance": hex(10**24)} for signer in (ALICE, CAROL)
    }
    for address, program in _PROGRAMS.items():
        alloc[address.hex()] = {
            "balance": "0x0",
            "code": f"0x{assemble(program).hex()}",
        }
    return {**found, "alloc": alloc}


def call(line: str, *arguments: object) -> bytes:
    """Return the input of a call of the function that a line defines."""
    definition = parse_definition(line)
    types = [one.type.name for one in definition.inputs]
    return definition.key + encode(types, arguments)


def payment(amount: int) -> bytes:
    return call("function transfer(address to, uint256 amount)", to_hex(BOB), amount)


def blocks() -> list[Block]:
    """Return the chain: a block with a transaction of each kind, and 60 payments."""
    builder = ChainBuilder(genesis())
    price = {"gas_price": chain.GAS_PRICE_WEI}
    gift = "function safeTransferFrom(address from, address to, uint256 tokenId)"
    batch = encode(["uint256[]", "uint256[]"], [[7, 8], [100, 200]])
    word = bytes.fromhex
    sent: list[tuple[bytes, bytes]] = [
        (COIN, payment(25 * 10**18)),
        (ART, call(gift, to_hex(ALICE.address), to_hex(BOB), 4711)),
        (GAMES, word(topic(BATCH)[2:]) + bytes(12) + BOB + batch),
        (FORGER, word(topic(TRANSFER)[2:]) + b"\xff" * 5),
        (COIN, payment(1)[:4] + b"\xff" * 64),
        (FORWARDER, payment(3)),
        (BOB, b""),
    ]
    for to, data in sent:
        builder.send(ALICE, to, data, gas=200_000, **price)
    calls = [(to_hex(OTHERS), True, payment(9)), (to_hex(OTHERS), True, b"")]
    builder.send(CAROL, OTHERS, call(AGGREGATE, calls), gas=200_000, **price)
    builder.block()
    for number in range(60):
        builder.send(ALICE, COIN, payment(number), gas=60_000, **price)
        if number % 3 == 2:
            builder.block()
    return builder.blocks
