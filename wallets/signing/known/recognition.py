"""Recognizes typed data of known kinds, and describes it."""

from __future__ import annotations

from dataclasses import dataclass

from wallets.signing.known.authorizations import AUTHORIZATIONS
from wallets.signing.known.cow import COW_ORDERS
from wallets.signing.known.layouts import Layout, Reading, Separator, Summary
from wallets.signing.known.permit2 import PERMIT2_PERMITS
from wallets.signing.known.permits import PERMITS
from wallets.signing.known.phrases import Tokens
from wallets.signing.known.seaport import SEAPORT_ORDERS
from wallets.signing.typed_data import TypedData
from wallets.signing.typed_hashes import DOMAIN, hash_struct

LAYOUTS: tuple[Layout, ...] = (
    *PERMITS,
    *PERMIT2_PERMITS,
    *AUTHORIZATIONS,
    *SEAPORT_ORDERS,
    *COW_ORDERS,
)
"""All known kinds. Their encoded types differ."""

MAX_TOKENS = 8
"""Token contracts that are read for a page. Amounts of others are in smallest units."""


@dataclass(frozen=True, slots=True)
class Known:
    """Typed data of a known kind."""

    layout: Layout
    data: TypedData

    @property
    def title(self) -> str:
        """Name of the kind."""
        return self.layout.title

    @property
    def contract(self) -> str:
        """The domain's verifying contract, in lower case."""
        return str(self.data.domain["verifyingContract"])

    @property
    def separator(self) -> Separator:
        """The contract's function that confirms the domain."""
        return self.layout.separator

    @property
    def domain_hash(self) -> bytes:
        """The hash of the domain that is signed: 32 bytes."""
        data = self.data
        return hash_struct(DOMAIN, {DOMAIN: data.domain_members}, data.domain)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens that the summary names, at most MAX_TOKENS."""
        named = self.layout.tokens_of(self.data.message, self.contract)
        return tuple(dict.fromkeys(named))[:MAX_TOKENS]

    def summary(self, signer: str, tokens: Tokens, now: float) -> Summary | None:
        """Return the description, None for values that the contract would reject.

        signer: address of the account that signs, in lower case. now: Unix seconds.
        """
        message, contract = self.data.message, self.contract
        return self.layout.describe(Reading(message, signer, contract, tokens, now))


def recognize(data: TypedData) -> Known | None:
    """Return data of a known kind; None if type or domain differ in any way."""
    for layout in LAYOUTS:
        if layout.fits(data):
            return Known(layout, data)
    return None
