"""Accounts with known private keys, which send the transactions of generated chains."""

from __future__ import annotations

from eth_typing import Address

from evm import rlp
from evm.signatures import address_of_key, keccak
from evm.signing import (
    TransactionFields,
    sign_authorization,
    sign_transaction,
)
from evm.transactions import Authorization, Transaction


class Signer:
    """An account whose private key is derived from its name, for test chains only."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._private_key = keccak(f"portcullis generated chain: {name}".encode())
        self.address = address_of_key(self._private_key)

    def sign(self, fields: TransactionFields) -> Transaction:
        """Return the signed transaction."""
        return sign_transaction(fields, self._private_key)

    def authorize(self, chain_id: int, address: Address, nonce: int) -> Authorization:
        """Return a signed authorization to delegate to an address (EIP-7702)."""
        return sign_authorization(chain_id, address, nonce, self._private_key)


def create_address(creator: Address, nonce: int) -> Address:
    """Return the address of a contract created by CREATE or by a transaction.

    nonce: the creator's nonce before the creation.
    """
    return Address(keccak(rlp.encode([creator, rlp.encode_int(nonce)]))[12:])


def create2_address(creator: Address, salt: int, init_code: bytes) -> Address:
    """Return the address of a contract created by CREATE2 (EIP-1014)."""
    return Address(
        keccak(b"\xff" + creator + salt.to_bytes(32, "big") + keccak(init_code))[12:]
    )
