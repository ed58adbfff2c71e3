"""Identifiers of chains, accounts and scopes, as defined by CAIPs.

No function checks that a chain or an account exists. Identifiers are case-sensitive,
and the whole text must match: `eip155:1` followed by a line break is invalid.
Source: https://chainagnostic.org/CAIPs/caip-2, caip-10, caip-217; namespaces eip155 and
    wallet at https://namespaces.chainagnostic.org
"""

from __future__ import annotations

import re
from typing import NamedTuple

EIP155 = "eip155"
"""The namespace of EVM chains; its references are chain ids in decimal."""

WALLET = "wallet"
"""The namespace of scopes that belong to no chain but to the wallet itself."""

NAMESPACE = re.compile(r"[-a-z0-9]{3,8}")
REFERENCE = re.compile(r"[-_a-zA-Z0-9]{1,32}")
ADDRESS = re.compile(r"[-.%a-zA-Z0-9]{1,128}")
_EVM_REFERENCE = re.compile(r"0|[1-9][0-9]{0,31}")
_EVM_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")


class ChainId(NamedTuple):
    """A chain: `namespace:reference`."""

    namespace: str
    reference: str

    def __str__(self) -> str:
        return f"{self.namespace}:{self.reference}"


class AccountId(NamedTuple):
    """An account on a chain: `namespace:reference:address`."""

    chain_id: ChainId
    address: str

    def __str__(self) -> str:
        return f"{self.chain_id}:{self.address}"


class Scope(NamedTuple):
    """The key of a scope object: a chain, or a namespace alone (reference None)."""

    namespace: str
    reference: str | None

    def __str__(self) -> str:
        if self.reference is None:
            return self.namespace
        return f"{self.namespace}:{self.reference}"


class Address(NamedTuple):
    """An address that is the same on all chains of a namespace."""

    namespace: str
    address: str


def is_reference(text: str) -> bool:
    """Return whether a text is a valid CAIP-2 reference."""
    return REFERENCE.fullmatch(text) is not None


def parse_chain_id(text: str) -> ChainId:
    """Parse a CAIP-2 chain id, such as `eip155:1`.

    Raises: ValueError if the text is malformed.
    """
    namespace, _, reference = text.partition(":")
    if not NAMESPACE.fullmatch(namespace) or not is_reference(reference):
        raise ValueError("not a CAIP-2 chain id")
    return ChainId(namespace, reference)


def parse_account_id(text: str) -> AccountId:
    """Parse a CAIP-10 account id, such as `eip155:1:0x…`.

    Raises: ValueError if the text is malformed or has the older form with an @.
    """
    chain, _, address = text.rpartition(":")
    if not ADDRESS.fullmatch(address):
        raise ValueError("not a CAIP-10 account id")
    return AccountId(parse_chain_id(chain), address)


def parse_scope(text: str) -> Scope:
    """Parse the key of a scope object: a namespace, or a CAIP-2 chain id.

    Raises: ValueError if the text is malformed.
    """
    if NAMESPACE.fullmatch(text):
        return Scope(text, None)
    try:
        return Scope(*parse_chain_id(text))
    except ValueError as error:
        raise ValueError("neither a namespace nor a CAIP-2 chain id") from error


def evm_scope(chain_id: int) -> str:
    """Return the scope of an EVM chain."""
    return f"{EIP155}:{chain_id}"


def is_evm_reference(text: str) -> bool:
    """Return whether a reference is a chain id, in decimal without leading zeros."""
    return _EVM_REFERENCE.fullmatch(text) is not None


def account_namespace(scope: Scope) -> str | None:
    """Return the namespace of a scope's accounts, None if it has no accounts.

    The accounts of `wallet:eip155` are those of the namespace eip155.
    """
    return scope.reference if scope.namespace == WALLET else scope.namespace


def parse_address(namespace: str, text: str) -> Address:
    """Return an address in its normal form, so that equal addresses compare equal.

    For EVM chains that is lower case; a checksum in mixed case is not verified.
    Raises: ValueError.
    """
    if namespace == EIP155:
        if not _EVM_ADDRESS.fullmatch(text):
            raise ValueError(
                "not an address: 0x and 40 hexadecimal digits were expected"
            )
        return Address(namespace, text.lower())
    if not NAMESPACE.fullmatch(namespace) or not ADDRESS.fullmatch(text):
        raise ValueError("not an address")
    return Address(namespace, text)


def address_of(account: AccountId) -> Address:
    """Return an account's address, without its chain.

    Raises: ValueError when it can't be an address of the chain's namespace.
    """
    chain = account.chain_id
    namespace = account_namespace(Scope(*chain)) or chain.namespace
    if namespace == EIP155 == chain.namespace and not is_evm_reference(chain.reference):
        raise ValueError("not an account of an EVM chain")
    return parse_address(namespace, account.address)
