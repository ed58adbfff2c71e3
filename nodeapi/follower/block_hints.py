"""What upstreams name for the execution of one block, asked one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from eth_utils.exceptions import ValidationError

from evm.block_keys import known_keys
from evm.proved_state import Keys
from nodeapi.upstreams import state
from nodeapi.upstreams.errors import (
    UnusableAnswer,
    UpstreamError,
    UpstreamUnavailable,
)
from nodeapi.upstreams.hints import OWN_LIST, listed_keys, most_keys, prestate_keys

if TYPE_CHECKING:
    from eth_typing import Address

    from evm.blocks import Block
    from nodeapi.upstreams.client import UpstreamClient
    from nodeapi.upstreams.state import Material


class Kind(Enum):
    """What an upstream may be asked, and the method by which it sends it."""

    LIST = OWN_LIST
    """An access list. From Amsterdam on, the header has its hash."""
    WITNESS = "debug_executionWitness"
    TRACE = "debug_traceBlockByHash"
    """A trace lacks what system calls and withdrawals access."""


@dataclass(frozen=True, slots=True)
class Hint:
    """What one upstream has named. keys: empty for a witness."""

    client: UpstreamClient
    kind: Kind
    keys: Keys = field(default_factory=Keys)
    witness: Material | None = None

    def refuse(self) -> None:
        """Don't ask the upstream for the like for some minutes, because it was useless."""
        self.client.note_refusal(self.kind.value)


class BlockHints:
    """Asks upstreams about one block. Each is asked once for each kind of answer."""

    def __init__(self, clients: Sequence[UpstreamClient], block: Block) -> None:
        """Set the upstreams in the order in which they are asked."""
        self._header = block.header
        self._limit = most_keys(block.header.gas_used)
        self._known = known_keys(block)
        self._left = {kind: list(clients) for kind in Kind}
        self._ask: dict[Kind, Callable[[UpstreamClient], Awaitable[Hint]]] = {
            Kind.LIST: self._list,
            Kind.WITNESS: self._witness,
            Kind.TRACE: self._trace,
        }
        self._senders: set[Address] = set()
        for transaction in block.transactions:
            with suppress(ValidationError):  # the execution reports it
                self._senders.add(transaction.sender)

    async def next(self, *kinds: Kind) -> Hint | None:
        """Return the next answer, None without one. kinds: in the order of preference."""
        for kind in kinds:
            while self._left[kind]:
                client = self._left[kind].pop(0)
                try:
                    return await self._ask[kind](client)
                except (UpstreamError, UpstreamUnavailable):
                    continue
        return None

    async def _list(self, client: UpstreamClient) -> Hint:
        header = self._header
        list_hash = header.block_access_list_hash
        keys = await listed_keys(client, header.hash, list_hash, self._limit)
        return self._checked(Hint(client, Kind.LIST, keys))

    async def _witness(self, client: UpstreamClient) -> Hint:
        found = await state.witness(client, self._header.number, self._header.hash)
        return Hint(client, Kind.WITNESS, witness=found)

    async def _trace(self, client: UpstreamClient) -> Hint:
        keys = await prestate_keys(client, self._header.hash, self._limit)
        return self._checked(Hint(client, Kind.TRACE, keys))

    def _checked(self, hint: Hint) -> Hint:
        """Add what the block itself names. Raises: UnusableAnswer without the senders."""
        if not hint.keys.accounts >= self._senders:
            hint.refuse()
            raise UnusableAnswer("the senders of the block's transactions are missing")
        hint.keys.update(self._known)
        return hint
