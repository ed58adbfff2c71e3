"""The sample chain twice: complete, and from a checkpoint on, whose upstream proves values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import psycopg

from jsonrpc.answers import Reply
from jsonrpc.departure import stay
from jsonrpc.dispatch import Limits
from keys.grants import Grant
from keys.permits import Permit
from networks.directory import NetworkView
from networks.models import Network
from networks.services import add_upstream, finish_preparing
from nodeapi.chain.database import importer_connection
from nodeapi.endpoint.calls import Calls
from nodeapi.methods import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.node import database_conninfo
from nodeapi.tracing.context import TaskContext, TaskResult
from nodeapi.tracing.states import StateCache
from nodeapi.tracing.tasks.access_lists import access_list
from samples.node import Refused
from tests.support import chains, copies, sample, sparse
from tests.support.full_node import FullNode
from tests.support.proved import start_at_checkpoint
from tests.support.serving import Serving, serving
from tests.support.upstream_server import UpstreamServer, hold, running_upstream
from tests.support.waiting import until

FULL, SPARSE = "full", "sparse"
CHECKPOINT = 68
"""A block of Cancun. The chain goes on to Amsterdam."""


def import_pair() -> None:
    """Store both networks. What the blocks since the checkpoint read is known."""
    chains.import_blocks(FULL, sample.genesis(), sample.raw_blocks())
    add_sparse(SPARSE, CHECKPOINT)
    with importer_connection() as connection:
        methods = FullNode(connection, FULL).methods
        with sparse.sparse_importer(SPARSE, methods) as importer:
            for raw in sample.raw_blocks()[CHECKPOINT:]:
                importer.add(raw)


class Upstream:
    """Proofs and codes of the complete network, as an upstream sends them.

    lowest, highest: the blocks whose state it has.
    """

    def __init__(
        self, server: UpstreamServer, connection: psycopg.Connection[Any]
    ) -> None:
        self.server = server
        self.lowest, self.highest = 0, sample.head()
        self._connection = connection
        self._network_id = Network.objects.get(slug=FULL).pk
        node = self.node = FullNode(connection, FULL)
        self.honest = {
            name: self._bounded(node.methods[name])
            for name in ("eth_getProof", "eth_getCode")
        }
        server.methods |= self.honest

    def _bounded(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def bounded(*params: Any) -> Any:
            (number,) = self._connection.execute(
                "SELECT number FROM nodeapi_block WHERE network_id = %s AND hash = %s",
                (self._network_id, bytes.fromhex(params[-1]["blockHash"][2:])),
            ).fetchone() or (-1,)
            if not self.lowest <= number <= self.highest:
                raise Refused(-32000, "missing trie node")
            return method(*params)

        return bounded

    def name_keys(self) -> None:
        """Serve eth_createAccessList."""
        self.server.methods["eth_createAccessList"] = self._access_list

    def _access_list(self, call: Any, block: Any, overrides: Any = None) -> Any:
        context = TaskContext(
            *(self._connection, self._network_id),
            *(bytes.fromhex(block["blockHash"][2:]), math.inf, StateCache(), len, int),
        )
        arguments = {"call": call, "gas_cap": 0, "tip": 0, "state": overrides}
        result = access_list(context, arguments)
        assert isinstance(result, TaskResult)
        return orjson.loads(result.result)

    def keys(self) -> list[tuple[str, str | None]]:
        """Return each account and each of its slots that was asked for, in any order."""
        found: list[tuple[str, str | None]] = []
        for method, params in self.server.calls:
            if method == "eth_getCode":
                found.append((params[0], None))
            elif method == "eth_getProof":
                found += [(params[0], slot) for slot in params[1]]
        return found


class Pair:
    """A service with both networks, and the upstream of the sparse one."""

    def __init__(self, running: Serving, upstream: Upstream) -> None:
        self.running = running
        self.upstream = upstream
        self.calls = Calls(registry, Limits())
        self.context: Context

    def view(self, slug: str) -> NetworkView:
        view = self.running.service.directory.by_slug(slug)
        assert view is not None
        return view

    def start(self, slug: str, body: Any, key: int = 1) -> Any:
        """Return the answer to a request, as an awaitable."""
        service, view = self.running.service, self.view(slug)
        permits = {(view.id, TRACE): Permit()}
        grant = Grant(key, "customer", None, permits, None, owner_id=key)
        self.context = Context(
            *(b"1", grant, view, service.store, service.tracing),
            relay=service.relay,
            values=service.values,
        )
        return self.calls.respond(orjson.dumps(body), self.context, stay)

    def ask(self, slug: str, *calls: tuple[Any, ...]) -> list[Any]:
        """Return the results or errors of calls, in one batch."""
        body = [
            {"jsonrpc": "2.0", "id": index, "method": method, "params": params}
            for index, (method, *params) in enumerate(calls)
        ]
        return read(self.running.ask(self.start, slug, body))

    def one(self, slug: str, method: str, *params: Any) -> Any:
        """Return the result or the error of a call."""
        (found,) = self.ask(slug, (method, *params))
        return found

    def ask_twice(self, method: str, *params: Any) -> tuple[Any, Any]:
        """Return the answers to two customers whose equal calls wait for the upstream."""
        server = self.upstream.server
        server.faults.append(hold)
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

        async def ask() -> Any:
            first = self.start(SPARSE, call)
            second = self.start(SPARSE, call, key=2)
            await until(lambda: server.calls)
            server.release()
            return await first, await second

        answers: tuple[Any, Any] = self.running.ask(ask)
        return answers

    def agree(self, *calls: tuple[Any, ...]) -> list[Any]:
        """Check that both networks give the same answers, and return them."""
        found = self.ask(SPARSE, *calls)
        expected = self.ask(FULL, *calls)
        for call, one, other in zip(calls, found, expected, strict=True):
            assert one == other, f"{call}: {one}, not {other}"
        return found


def add_sparse(slug: str, checkpoint: int, oldest: int = 1) -> None:
    """Store the proved blocks of a network that has no other ones."""
    genesis = sample.genesis()
    network = start_at_checkpoint(slug, FULL, genesis, checkpoint, oldest=oldest)
    finish_preparing(network.pk)


@contextmanager
def running_pair(*others: tuple[str, int, int]) -> Iterator[Pair]:
    """Serve both networks, which are imported first if this is a new database.

    others: arguments of `add_sparse`, for networks with the same upstream.
    """
    copies.once("sparse pair", import_pair)
    with (
        running_upstream() as server,
        psycopg.connect(database_conninfo(), autocommit=True) as connection,
    ):
        upstream = Upstream(server, connection)
        for other in others:
            add_sparse(*other)
        for slug in (SPARSE, *(slug for slug, *_ in others)):
            add_upstream(network=Network.objects.get(slug=slug), url=server.http_url)
        with serving() as running:
            yield Pair(running, upstream)


def read(answer: Any) -> list[Any]:
    """Return results, and error objects, of an answer."""
    body = answer.body if isinstance(answer, Reply) else answer
    found = orjson.loads(body)
    answers = found if isinstance(found, list) else [found]
    return [one.get("result", one.get("error")) for one in answers]
