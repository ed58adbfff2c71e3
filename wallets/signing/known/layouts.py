"""A known kind of typed data, and how data is compared with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eth_hash.auto import keccak

from wallets.signing.known.phrases import Sentence, Tokens
from wallets.signing.typed_data import TypedData
from wallets.signing.typed_hashes import DOMAIN, encode_type

NAME_CHAIN_CONTRACT = f"{DOMAIN}(string name,uint256 chainId,address verifyingContract)"
FULL = f"{DOMAIN}(string name,string version,uint256 chainId,address verifyingContract)"
"""Encoded types of domains."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The input of a description.

    signer: address of the account that signs, in lower case.
    contract: the domain's verifying contract, in lower case.
    now: Unix seconds.
    """

    message: Mapping[str, Any]
    signer: str
    contract: str
    tokens: Tokens
    now: float


@dataclass(frozen=True, slots=True)
class Summary:
    """A description of typed data.

    main: one sentence about the permission that the signature gives.
    items: further sentences, such as the tokens of a batch.
    warnings: sentences about unusual values.
    notes: readable forms of values by their path, such as `details/amount`.
    """

    main: Sentence
    items: tuple[Sentence, ...] = ()
    warnings: tuple[Sentence, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Separator:
    """A contract's function that returns the hash of its domain.

    function: its signature. It has no parameters.
    word: position of the hash in the returned data, in words of 32 bytes.
    """

    function: str = "DOMAIN_SEPARATOR()"
    word: int = 0

    @property
    def selector(self) -> bytes:
        """The function's four bytes."""
        return keccak(self.function.encode())[:4]


@dataclass(frozen=True, slots=True)
class Layout:
    """A known kind of typed data.

    title: name of the kind.
    encoded: the encoded type (EIP-712, encodeType). It begins with the primary type.
    domains: encoded types of the domains with which it is known.
    values: the domain's name, version and contract, as far as they are fixed.
    describe: makes the summary, None for values that the kind's contract would reject.
    tokens_of: the tokens that the summary names.
    separator: how the contract confirms the domain.
    """

    title: str
    encoded: str
    describe: Callable[[Reading], Summary | None]
    tokens_of: Callable[[Mapping[str, Any], str], Iterable[str]]
    domains: tuple[str, ...] = (FULL,)
    values: tuple[Mapping[str, str], ...] = ({},)
    separator: Separator = Separator()

    def fits(self, data: TypedData) -> bool:
        """Return whether data has exactly this type and one of these domains."""
        if encode_type(data.primary_type, data.types) != self.encoded:
            return False
        domain_type = encode_type(DOMAIN, {DOMAIN: data.domain_members})
        return domain_type in self.domains and any(
            all(data.domain.get(name) == value for name, value in fixed.items())
            for fixed in self.values
        )
