"""Traces of the blocks up to a checkpoint, executed with what upstreams prove.

An upstream's witness has all that a block reads. Without one, an access list or a trace by
an upstream says what to fetch from an upstream that proves old states, an archive. All of it
is proved by the state root of the block's parent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from django.conf import settings

from evm.errors import InvalidBlock
from evm.proof_nodes import ProofNodes
from evm.proved_state import ProvedState
from evm.trie_rows import CorruptTrieNode, MissingTrieNode
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import stored_config
from nodeapi.chain.proved_traces import ProvedTraces, UnknownAncestor
from nodeapi.follower.block_hints import BlockHints, Hint, Kind
from nodeapi.follower.stored import read_settings
from nodeapi.follower.thread import LoopThread
from nodeapi.proofs.fetch import Fetched, fetch
from nodeapi.proofs.past_state import FetchedState
from nodeapi.proofs.values import Anchor, NoProof
from nodeapi.upstreams import state
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable
from nodeapi.upstreams.state import Material

if TYPE_CHECKING:
    import threading

    from eth_typing import Hash32

    from evm.blocks import Block
    from evm.headers import Header
    from evm.proved_state import Keys

FAILURES = 8
"""Number of blocks in succession without a trace after which `store_traces` gives up."""


class TracesUnavailable(Exception):
    """Raised if several blocks in succession can't be executed."""


class _Upstreams:
    """Asks upstreams for the state before and after one block; a `PastProver`."""

    def __init__(
        self,
        clients: Sequence[UpstreamClient],
        loop: LoopThread,
        stop: threading.Event,
        block: Block,
        parent: Anchor,
        hints: BlockHints,
        headers: dict[Hash32, Header],
    ) -> None:
        """Set the block. headers: to which those of further witnesses are added."""
        self._clients = clients
        self._loop = loop
        self._stop = stop
        self._header = block.header
        self._parent = parent
        self._hints = hints
        self._headers = headers

    def before(self, keys: Keys) -> Fetched:
        """Return values in the state before the block, proved.

        They come from the witness of an upstream that was not asked for it yet, or from
        proofs. Raises: NoProof, Stopped.
        """
        nodes = ProofNodes()
        codes: dict[Hash32, bytes] = {}
        while (found := self._next(Kind.WITNESS)) and found.witness is not None:
            nodes.add(found.witness.nodes)
            codes |= found.witness.codes
            self._headers |= found.witness.headers
            proved = ProvedState(self._parent.state_root, nodes, codes)
            values, missing = proved.values(keys)
            if not missing:
                return Fetched(values, nodes)
        return self._loop.run(fetch(self._clients, self._parent, keys), self._stop)

    def after(self, keys: Keys) -> ProofNodes:
        """Return nodes that may prove keys in the state after the block.

        Every upstream is asked, because one may omit what another one sends.
        """
        header, nodes = self._header, ProofNodes()

        async def ask(client: UpstreamClient) -> None:
            with suppress(UpstreamError, UpstreamUnavailable):
                found = await state.proofs(client, header.number, header.hash, keys)
                nodes.add(found.nodes)

        for client in self._clients:
            self._loop.run(ask(client), self._stop)
        return nodes

    def hint(self) -> Keys | None:
        """Return what the block probably reads, None if no upstream tells it."""
        found = self._next(Kind.LIST, Kind.TRACE)
        return None if found is None else found.keys

    def _next(self, *kinds: Kind) -> Hint | None:
        return self._loop.run(self._hints.next(*kinds), self._stop)


class TraceBackfill:
    """Executes proved blocks, and stores their traces."""

    def __init__(
        self,
        traces: ProvedTraces,
        clients: Sequence[UpstreamClient],
        loop: LoopThread,
        stop: threading.Event,
    ) -> None:
        self._traces = traces
        self._clients = clients
        self._loop = loop
        self._stop = stop

    def add(self, block_hash: Hash32) -> str:
        """Execute a block and store its traces. Return why that is impossible, "" if done.

        Raises: LookupError if the network was deleted; Stopped; psycopg.Error.
        """
        try:
            self._add(block_hash)
        except NoProof as error:
            return error.reason
        except UnknownAncestor as error:
            return str(error)
        except (MissingTrieNode, CorruptTrieNode, InvalidBlock) as error:
            return f"its state root can't be computed: {error}"
        return ""

    def _add(self, block_hash: Hash32) -> None:
        stored = self._traces.find(block_hash)
        hints = BlockHints(self._clients, stored.block())
        headers: dict[Hash32, Header] = {}
        while True:
            hint = self._loop.run(hints.next(Kind.WITNESS), self._stop)
            witness = Material() if hint is None or not hint.witness else hint.witness
            headers |= witness.headers
            try:
                untraced = self._traces.open(stored, headers)
                break
            except UnknownAncestor:
                if hint is None:
                    raise
        block, parent = untraced.block, untraced.parent
        anchor = Anchor(parent.number, parent.hash, parent.state_root)
        upstreams = _Upstreams(
            *(self._clients, self._loop, self._stop, block, anchor), hints, headers
        )
        known = FetchedState(upstreams, parent.state_root, block.header.state_root)
        nodes = ProofNodes(witness.nodes)
        if nodes.prove(parent.state_root, bytes(32)).nodes:
            known.add(nodes, witness.codes)
        elif (hinted := upstreams.hint()) is not None:
            known.fetch(hinted)
        verified = self._traces.execute(untraced, known)
        self._traces.store(untraced, verified)


def store_traces(
    network_id: int,
    first: int,
    last: int,
    stop: threading.Event,
    *,
    blocks_per_second: float,
    progress: Callable[[int, str], None],
) -> None:
    """Store the traces of the blocks first … last of a network, for a command.

    progress: is called with the number of each block, and why it has no trace, or "".

    Raises: TracesUnavailable; Stopped; psycopg.Error.
    """
    with ExitStack() as stack:
        connection = stack.enter_context(importer_connection())
        loop = stack.enter_context(LoopThread("traces"))
        clients = [
            UpstreamClient(each.url, each.headers)
            for each in read_settings(network_id).upstreams
        ]
        for client in clients:
            stack.callback(_close, loop, client)
        traces = ProvedTraces(
            connection,
            network_id,
            stored_config(network_id),
            record_limit_bytes=settings.NODEAPI_RECORD_LIMIT_BYTES,
        )
        backfill = TraceBackfill(traces, clients, loop, stop)
        failures = 0
        for number, block_hash in traces.missing(first, last):
            started = time.monotonic()
            reason = backfill.add(block_hash)
            progress(number, reason)
            failures = failures + 1 if reason else 0
            if failures == FAILURES:
                raise TracesUnavailable(
                    f"{failures} blocks down to block {number} could not be executed: "
                    f"{reason}"
                )
            stop.wait(max(1 / blocks_per_second - (time.monotonic() - started), 0.0))


def _close(loop: LoopThread, client: UpstreamClient) -> None:
    loop.run(client.close())
