"""Values of a state, proved with what untrusted upstreams send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from evm.proof_nodes import ProofNodes
from evm.proved_state import Keys, ProvedState, ProvedValues
from nodeapi.proofs.values import Anchor, NoProof
from nodeapi.upstreams import state
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable

if TYPE_CHECKING:
    from eth_typing import Hash32

    from nodeapi.upstreams.state import Material

ATTEMPTS = 8
"""How often one upstream is asked, as long as it proves a part of the keys each time. Nodes
answer only a part of a batch if the responses become too large."""

_INLINE_NODES = 300
"""Number of nodes that are verified in the event loop: about 2 ms. More are verified in a
thread."""

_MAX_REASON = 200
"""Characters of an upstream's error that are repeated."""

Report: TypeAlias = Callable[[UpstreamClient, str], None]
"""Gets an upstream that was unavailable or sent something useless, and the reason."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Proved values, and nodes that prove them. There may be other nodes as well."""

    values: ProvedValues
    nodes: ProofNodes


async def fetch(
    clients: Sequence[UpstreamClient],
    anchor: Anchor,
    keys: Keys,
    report: Report | None = None,
) -> Fetched:
    """Return the values of keys in the state after a block.

    The upstreams are asked in their order, each for what those before it did not prove.
    An account is proved together with its code.

    report: for upstreams to avoid. An upstream that only answers with errors, such as for
        a state that it has deleted, is not reported.

    Raises: NoProof with the keys that no upstream proves.
    """
    proving = Proving(anchor, keys)
    reasons = []
    for place, client in enumerate(clients, 1):
        if not proving.missing:
            break
        reason, is_fault = await _ask(client, anchor, proving)
        if not reason:
            continue
        reasons.append(f"upstream {place}: {reason[:_MAX_REASON]}")
        if is_fault and report is not None:
            report(client, reason[:_MAX_REASON])
    if proving.missing:
        count = len(proving.missing)
        text = "; ".join(reasons) or "there is no upstream"
        raise NoProof(
            f"{count} of {len(keys)} values at block {anchor.number} are not proved:"
            f" {text}",
            proving.missing,
        )
    return Fetched(proving.values, proving.nodes)


class Proving:
    """The values of keys that are proved so far, and the keys that are missing."""

    def __init__(self, anchor: Anchor, keys: Keys) -> None:
        """Begin without any node."""
        self.values = ProvedValues()
        self.nodes = ProofNodes()
        self.missing = keys
        self._codes: dict[Hash32, bytes] = {}
        self._state = ProvedState(anchor.state_root, self.nodes, self._codes)

    async def add(self, material: Material) -> None:
        """Add what an upstream has sent."""
        if len(material.nodes) > _INLINE_NODES:
            await asyncio.to_thread(self._add, material)
        else:
            self._add(material)

    def _add(self, material: Material) -> None:
        self.nodes.add(material.nodes)
        self._codes.update(material.codes)
        values, self.missing = self._state.values(self.missing)
        self.values.accounts |= values.accounts
        self.values.slots |= values.slots
        self.values.codes |= values.codes


async def _ask(
    client: UpstreamClient, anchor: Anchor, proving: Proving
) -> tuple[str, bool]:
    """Ask one upstream for what is missing.

    Return why something is still missing, otherwise "", and whether that is a fault.
    """
    for _ in range(ATTEMPTS):
        before = len(proving.missing)
        try:
            material = await state.proofs(
                client, anchor.number, anchor.hash, proving.missing
            )
        except UpstreamUnavailable as error:
            return error.reason, True
        except UpstreamError as error:
            return str(error), False
        await proving.add(material)
        if not proving.missing:
            break
        if len(proving.missing) == before:
            if material.is_by_number and not await state.has_block(
                client, anchor.number, anchor.hash
            ):
                return f"it has another block {anchor.number}", False
            return _reason(material)
    else:
        return f"{len(proving.missing)} are missing after {ATTEMPTS} requests", False
    return "", False


def _reason(material: Material) -> tuple[str, bool]:
    """Return why an answer has proved nothing, and whether that is a fault."""
    failure = material.failure
    if failure is None:
        return "its nodes and codes are not those of the block's state", True
    return str(failure), isinstance(failure, UpstreamUnavailable)
