"""Addresses on the stack, and addresses of new contracts."""

from __future__ import annotations

from eth_typing import Address
from sha3 import keccak_256

from evm import rlp

ADDRESS_MASK = 2**160 - 1

SYSTEM_ADDRESS = Address(bytes.fromhex("fffffffffffffffffffffffffffffffffffffffe"))
"""Calls system contracts (EIP-4788), and is the address of the logs of transfers of ether
(EIP-7708)."""


def address_of(word: int) -> Address:
    """Return the address in a stack item."""
    return Address((word & ADDRESS_MASK).to_bytes(20, "big"))


def contract_address(creator: bytes, nonce: int) -> Address:
    """Return the address of a contract made by CREATE or a transaction.

    nonce: the creator's, before it was incremented.
    """
    encoded = rlp.encode([creator, rlp.encode_int(nonce)])
    return Address(keccak_256(encoded).digest()[12:])


def salted_contract_address(creator: bytes, salt: int, code: bytes) -> Address:
    """Return the address of a contract made by CREATE2 (EIP-1014). code: init code."""
    seed = b"\xff" + creator + salt.to_bytes(32, "big") + keccak_256(code).digest()
    return Address(keccak_256(seed).digest()[12:])
