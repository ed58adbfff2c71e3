"""States of blocks on pages: pending, latest, canonical, safe, finalized, orphaned."""

from __future__ import annotations

from dataclasses import dataclass

from networks.models import Network
from nodeapi.models import Block

STATES = {
    "pending": "Not in a block yet.",
    "latest": "The newest block of the canonical chain.",
    "canonical": "In the canonical chain, not safe yet.",
    "safe": "Unlikely to be reverted.",
    "finalized": "Final: it is never reverted.",
    "orphaned": "A side block: it is not in the canonical chain.",
}
"""Each state with its meaning, which pages show as a tooltip."""


@dataclass(frozen=True, slots=True)
class Tags:
    """Numbers of the blocks that the tags name, None while a block is unknown."""

    head: int
    safe: int | None
    finalized: int | None

    def state(self, number: int, *, is_canonical: bool) -> State:
        """Return the state of a stored block. Of several states, the strongest one counts."""
        if not is_canonical:
            return State("orphaned")
        if self.finalized is not None and number <= self.finalized:
            return State("finalized")
        if self.safe is not None and number <= self.safe:
            return State("safe")
        return State("latest" if number >= self.head else "canonical")


@dataclass(frozen=True, slots=True)
class State:
    """A state, for `templates/explore/state.html`."""

    name: str

    @property
    def meaning(self) -> str:
        """The state's meaning in one sentence."""
        return STATES[self.name]


def tags_of(network: Network) -> Tags:
    """Return the network's tags. Block 0 has to be stored.

    A network without upstreams has no forkchoice of its own while it is imported from
    files, so that its head is safe and finalized as well.
    """
    head = network.head_number or 0
    named = (network.safe_hash, network.finalized_hash)
    wanted = [bytes(one) for one in named if one is not None]
    found = Block.objects.filter(network=network, hash__in=wanted, is_canonical=True)
    numbers = {
        bytes(block_hash): number
        for block_hash, number in found.values_list("hash", "number")
    }
    unknown = None if network.upstreams.filter(is_enabled=True).exists() else head
    safe, finalized = (
        unknown if one is None else numbers.get(bytes(one)) for one in named
    )
    return Tags(head, safe, finalized)
