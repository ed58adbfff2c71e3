"""Accounts whose private keys are known: those who send a generated chain's transactions."""

from __future__ import annotations

from eth_typing import Address

from nodeapi.evm import rlp
from nodeapi.evm.signatures import address_of_key, keccak
from nodeapi.evm.signing import (
    TransactionFields,
    sign_authorization,
    sign_transaction,
)
from nodeapi.evm.transactions import Authorization, Transaction


class Signer:
    """An account whose key follows from its name: worth nothing on a real chain."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._private_key = keccak(f"portcullis generated chain: {name}".encode())
        self.address = address_of_key(self._private_key)

    def sign(self, fields: TransactionFields) -> Transaction:
        """Return the signed transaction."""
        return sign_transaction(fields, self._private_key)

    def authorize(self, chain_id: int, address: Address, nonce: int) -> Authorization:
        """Return the consent to run the code at an address (EIP-7702)."""
        return sign_authorization(chain_id, address, nonce, self._private_key)


def create_address(creator: Address, nonce: int) -> Address:
    """Return where CREATE, or a creating transaction, puts a contract.

    nonce: the creator's before the creation.
    """
    return Address(keccak(rlp.encode([creator, rlp.encode_int(nonce)]))[12:])


def create2_address(creator: Address, salt: int, init_code: bytes) -> Address:
    """Return where CREATE2 puts a contract (EIP-1014)."""
    return Address(
        keccak(b"\xff" + creator + salt.to_bytes(32, "big") + keccak(init_code))[12:]
    )
