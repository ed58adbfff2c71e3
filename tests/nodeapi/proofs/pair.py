"""The sample chain twice: complete, and from a checkpoint on, whose upstream proves values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import psycopg
from eth_typing import Address

from evm.state_trie import decode_account_leaf
from jsonrpc.answers import Reply
from jsonrpc.departure import stay
from jsonrpc.dispatch import Limits
from keys.grants import Grant
from keys.permits import Permit
from networks.directory import NetworkView
from networks.models import Network
from networks.services import add_upstream
from nodeapi.chain.database import importer_connection
from nodeapi.chain.importers import FollowingImporter
from nodeapi.chain.networks import stored_config
from nodeapi.chain.trie_at import TriesAt, trie_at
from nodeapi.endpoint.calls import Calls
from nodeapi.methods import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.node import database_conninfo
from nodeapi.results.proofs import proof_document
from samples.node import Refused
from tests.support import chains, copies, sample, sparse
from tests.support.serving import Serving, serving
from tests.support.upstream_server import UpstreamServer, running_upstream

FULL, SPARSE = "full", "sparse"
CHECKPOINT = 75


def import_pair() -> None:
    """Store both networks. What the blocks since the checkpoint read is known."""
    chains.import_blocks(FULL, sample.genesis(), sample.raw_blocks())
    chains.import_blocks(SPARSE, sample.genesis(), sample.raw_blocks()[:CHECKPOINT])
    sparse.forget_state(SPARSE)
    full, network = (Network.objects.get(slug=slug) for slug in (FULL, SPARSE))
    with importer_connection() as connection:
        prover = sparse.FullProver(connection, network.pk, full.pk)
        importer = FollowingImporter(
            connection, network.pk, stored_config(network.pk), prover=prover
        )
        for raw in sample.raw_blocks()[CHECKPOINT:]:
            importer.add(raw)
        importer.close()


class FullUpstream:
    """Proofs and codes of the complete network, as an upstream sends them.

    lowest, highest: the blocks whose state it has.
    """

    def __init__(
        self,
        server: UpstreamServer,
        connection: psycopg.Connection[Any],
        network_id: int,
    ) -> None:
        self.server = server
        self.lowest, self.highest = 0, sample.head()
        self._connection = connection
        self._network_id = network_id
        self._tries: dict[str, TriesAt] = {}
        self.honest = {"eth_getProof": self._proof, "eth_getCode": self._code}
        server.methods |= self.honest

    def keys(self) -> list[tuple[str, str | None]]:
        """Return each account and each of its slots that was asked for, in any order."""
        found: list[tuple[str, str | None]] = []
        for method, params in self.server.calls:
            if method == "eth_getCode":
                found.append((params[0], None))
            elif method == "eth_getProof":
                found += [(params[0], slot) for slot in params[1]]
        return found

    def _at(self, block: Any) -> TriesAt:
        name = block["blockHash"]
        row = self._connection.execute(
            "SELECT number FROM nodeapi_block WHERE network_id = %s AND hash = %s",
            (self._network_id, bytes.fromhex(name[2:])),
        ).fetchone()
        if row is None or not self.lowest <= row[0] <= self.highest:
            raise Refused(-32000, "missing trie node")
        if name not in self._tries:
            self._tries[name] = trie_at(
                self._connection, self._network_id, bytes.fromhex(name[2:])
            )
        return self._tries[name]

    def _proof(self, name: str, keys: list[str], block: Any) -> Any:
        tries, address = self._at(block), Address(bytes.fromhex(name[2:]))
        (account,) = tries.prove_accounts([address])
        slots = tries.prove_slots(address, [int(key, 16) for key in keys])
        return orjson.loads(proof_document(address, account, keys, slots))

    def _code(self, name: str, block: Any) -> str:
        (proof,) = self._at(block).prove_accounts([Address(bytes.fromhex(name[2:]))])
        if not proof.value:
            return "0x"
        row = self._connection.execute(
            "SELECT code FROM nodeapi_code WHERE hash = %s",
            (decode_account_leaf(proof.value).code_hash,),
        ).fetchone()
        return "0x" + (row[0].hex() if row else "")


class Pair:
    """A service with both networks, and the upstream of the sparse one."""

    def __init__(self, running: Serving, upstream: FullUpstream) -> None:
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
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        (found,) = read(self.running.ask(self.start, slug, body))
        return found

    def agree(self, *calls: tuple[Any, ...]) -> list[Any]:
        """Check that both networks give the same answers, and return them."""
        found = self.ask(SPARSE, *calls)
        expected = self.ask(FULL, *calls)
        for call, one, other in zip(calls, found, expected, strict=True):
            assert one == other, call
        return found


@contextmanager
def running_pair() -> Iterator[Pair]:
    """Serve both networks, which are imported first if this is a new database."""
    copies.once("sparse pair", import_pair)
    full = Network.objects.get(slug=FULL)
    with (
        running_upstream() as server,
        psycopg.connect(database_conninfo(), autocommit=True) as connection,
    ):
        upstream = FullUpstream(server, connection, full.pk)
        network = Network.objects.get(slug=SPARSE)
        add_upstream(network=network, url=server.http_url)
        with serving() as running:
            yield Pair(running, upstream)


def read(answer: Any) -> list[Any]:
    """Return results, and error objects, of an answer."""
    body = answer.body if isinstance(answer, Reply) else answer
    found = orjson.loads(body)
    answers = found if isinstance(found, list) else [found]
    return [one.get("result", one.get("error")) for one in answers]
