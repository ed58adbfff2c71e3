"""A chain with a token that reports a name, decimals and the hash of its domain.

It also has misleading functions: one logs a transfer that does not happen, one moves
tokens without a log, one fails, and one transfers tokens only in a real block 2.
"""

from __future__ import annotations

from typing import Any

from eth_hash.auto import keccak

from samples.assembler import assemble
from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis
from tests.support import chains
from tests.support.signing import SIGNER
from wallets.signing.typed_hashes import DOMAIN, hash_struct

TOKEN = "0x" + "7c" * 20
STARTING_TOKENS = 100_000
"""In the smallest unit; the token has two decimals."""

SOURCE = """
        PUSH 0 CALLDATALOAD PUSH 224 SHR
        DUP1 PUSH4 selector("symbol()") EQ PUSH @symbol JUMPI
        DUP1 PUSH4 selector("decimals()") EQ PUSH @decimals JUMPI
        DUP1 PUSH4 selector("DOMAIN_SEPARATOR()") EQ PUSH @domain JUMPI
        DUP1 PUSH4 selector("balanceOf(address)") EQ PUSH @balanceOf JUMPI
        DUP1 PUSH4 selector("transfer(address,uint256)") EQ PUSH @transfer JUMPI
        DUP1 PUSH4 selector("approve(address,uint256)") EQ PUSH @approve JUMPI
        DUP1 PUSH4 selector("lie(address,uint256)") EQ PUSH @log JUMPI
        DUP1 PUSH4 selector("take(address,uint256)") EQ PUSH @move JUMPI
        DUP1 PUSH4 selector("wary(address,uint256)") EQ PUSH @wary JUMPI
        DUP1 PUSH4 selector("spin()") EQ PUSH @spin JUMPI
        PUSH4 selector("Error(string)") PUSH 0 MSTORE
        PUSH 0x20 PUSH 0x20 MSTORE PUSH 11 PUSH 0x40 MSTORE
        PUSH32 "not allowed" PUSH 0x60 MSTORE PUSH 0x64 PUSH 28 REVERT
symbol: PUSH 0x20 PUSH 0 MSTORE PUSH 3 PUSH 0x20 MSTORE
        PUSH32 "ABC" PUSH 0x40 MSTORE PUSH 0x60 PUSH 0 RETURN
decimals:
        PUSH 2 PUSH @word JUMP
domain: PUSH 0x5 SLOAD PUSH @word JUMP
balanceOf:
        PUSH 4 CALLDATALOAD SLOAD
word:   PUSH 0 MSTORE PUSH 0x20 PUSH 0 RETURN
approve:
        PUSH 0x24 CALLDATALOAD PUSH 0 MSTORE
        PUSH 4 CALLDATALOAD CALLER PUSH32 topic("Approval(address,address,uint256)")
        PUSH 0x20 PUSH 0 LOG3 STOP
transfer:
        PUSH 0x24 CALLDATALOAD CALLER SLOAD SUB CALLER SSTORE
        PUSH 0x24 CALLDATALOAD PUSH 4 CALLDATALOAD SLOAD ADD
        PUSH 4 CALLDATALOAD SSTORE
log:    PUSH 0x24 CALLDATALOAD PUSH 0 MSTORE
        PUSH 4 CALLDATALOAD CALLER PUSH32 topic("Transfer(address,address,uint256)")
        PUSH 0x20 PUSH 0 LOG3 STOP
move:   PUSH 0x24 CALLDATALOAD CALLER SLOAD SUB CALLER SSTORE STOP
wary:   GASPRICE ISZERO PREVRANDAO ISZERO BASEFEE ISZERO OR OR PUSH @quiet JUMPI
        TIMESTAMP PUSH 0 MSTORE PUSH 32 PUSH 32 PUSH 32 PUSH 0
        PUSH 0x000f3df6d732807ef1319fb7b8bb8522d0beac02 GAS STATICCALL ISZERO
        PUSH 32 MLOAD ISZERO OR PUSH @quiet JUMPI
        PUSH 2 NUMBER SUB PUSH @quiet JUMPI
        PUSH @transfer JUMP
quiet:  STOP
spin:   PUSH @spin JUMP
"""
"""The token's source. The slot of a balance is the number of the address."""


WARY_TOKEN = "0x" + "7d" * 20
"""A token whose balances tell in which surroundings it is called: they are a hash of the
caller, the price of gas and the block. Without a price or a beacon root, it fails."""

WARY_SOURCE = """
        TIMESTAMP PUSH 0 MSTORE PUSH 32 PUSH 32 PUSH 32 PUSH 0
        PUSH 0x000f3df6d732807ef1319fb7b8bb8522d0beac02 GAS STATICCALL ISZERO
        PUSH 32 MLOAD ISZERO OR GASPRICE ISZERO OR BASEFEE ISZERO OR PREVRANDAO ISZERO OR
        CALLER ISZERO OR ORIGIN ISZERO OR PUSH @fail JUMPI
        CALLER PUSH 64 MSTORE ORIGIN PUSH 96 MSTORE GASPRICE PUSH 128 MSTORE
        BASEFEE PUSH 160 MSTORE PREVRANDAO PUSH 192 MSTORE NUMBER PUSH 224 MSTORE
        COINBASE PUSH 256 MSTORE GASLIMIT PUSH 288 MSTORE BLOBBASEFEE PUSH 320 MSTORE
        CALLER BALANCE ISZERO PUSH 352 MSTORE GAS PUSH 384 MSTORE
        PUSH 416 PUSH 0 SHA3 PUSH 0 MSTORE PUSH 32 PUSH 0 RETURN
fail:   INVALID
"""


def domain_of(chain_id: int) -> dict[str, Any]:
    """Return the token's domain."""
    return {
        "name": "A token",
        "version": "1",
        "chainId": chain_id,
        "verifyingContract": TOKEN,
    }


def import_token_chain(slug: str, chain_id: int) -> ChainBuilder:
    """Import a chain with the token. SIGNER has some tokens and ten ether."""
    members = [
        ("name", "string"),
        ("version", "string"),
        ("chainId", "uint256"),
        ("verifyingContract", "address"),
    ]
    separator = hash_struct(DOMAIN, {DOMAIN: members}, domain_of(chain_id))
    genesis = make_genesis(
        chain_id=chain_id,
        first_blocks=from_genesis("osaka"),
        alloc={
            SIGNER: {"balance": hex(10 * 10**18)},
            WARY_TOKEN: {
                "balance": "0x0",
                "code": "0x" + assemble(WARY_SOURCE).hex(),
            },
            TOKEN: {
                "balance": "0x0",
                "code": "0x" + assemble(SOURCE).hex(),
                "storage": {
                    "0x" + SIGNER[2:].rjust(64, "0"): f"{STARTING_TOKENS:#066x}",
                    "0x" + "5".rjust(64, "0"): "0x" + separator.hex(),
                },
            },
        },
    )
    builder = ChainBuilder(genesis)
    builder.block()
    chains.import_blocks(slug, genesis, builder.blocks)
    return builder


def call_data(function: str, *words: str | int) -> bytes:
    """Return a call's input. words: addresses and numbers."""
    encoded = b"".join(
        bytes.fromhex(word[2:]).rjust(32, b"\0")
        if isinstance(word, str)
        else word.to_bytes(32)
        for word in words
    )
    return keccak(function.encode())[:4] + encoded
