"""A service with a followed network, whose upstreams are simulated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from jsonrpc.answers import Reply
from jsonrpc.dispatch import Dispatcher, Limits
from keys.grants import Grant
from keys.permits import NO_PERMITS
from networks.models import Network
from networks.services import add_upstream
from nodeapi.methods import registry
from nodeapi.methods.context import Context
from nodeapi.sending.decoding import decode_submission
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.nodeapi.sending.cases import CHAIN_ID, VALID
from tests.support.serving import Serving, serving
from tests.support.upstream_server import UpstreamServer, running_upstream

ALICE = Signer("alice")
SEND = "eth_sendRawTransaction"
RAW = VALID["dynamic fee"]
HASH = "0x" + decode_submission(RAW).transaction.hash.hex()
GRANT = Grant(1, "customer", None, NO_PERMITS, None)
UNKNOWN = "0x" + "12" * 32

PENDING_TRANSACTION = {
    **{"hash": HASH, "type": "0x2", "nonce": "0x0", "from": "0x" + "a1" * 20},
    **{"blockHash": None, "blockNumber": None, "transactionIndex": None},
    "blockTimestamp": None,
}
"""A pending transaction as this service returns it. In geth's, members name a block."""
PENDING_BLOCK = {
    **{"number": "0x3", "hash": "0x" + "aa" * 32, "nonce": None, "miner": None},
    **{"logsBloom": "0x" + "00" * 256, "difficulty": "0x0", "uncles": []},
    "transactions": [
        {
            **PENDING_TRANSACTION,
            **{"blockHash": "0x" + "aa" * 32, "blockNumber": "0x3"},
            "transactionIndex": "0x0",
        }
    ],
    "size": "0x300",
}


class Node:
    """A service with a followed network `live`, and a network `files`."""

    def __init__(self, running: Serving, upstreams: list[UpstreamServer]) -> None:
        self.running = running
        self.upstreams = upstreams
        self.dispatcher = Dispatcher(registry, Limits(), {})

    grant = GRANT

    def start(self, method: str, *params: Any, network: str = "live") -> Any:
        """Return the response to a call, as an awaitable."""
        service = self.running.service
        view = service.directory.by_slug(network)
        assert view is not None
        context = Context(b"1", self.grant, view, service.store, relay=service.relay)
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.dispatcher.respond(orjson.dumps(call), context)

    def answer(self, method: str, *params: Any, network: str = "live") -> Any:
        found = self.running.ask(lambda: self.start(method, *params, network=network))
        return read(found)

    def result(self, method: str, *params: Any, network: str = "live") -> Any:
        return self.answer(method, *params, network=network)["result"]

    def error(self, method: str, *params: Any, network: str = "live") -> Any:
        return self.answer(method, *params, network=network)["error"]

    def send(self, raw: bytes = RAW) -> Any:
        """Return the response to a sent transaction."""
        return self.answer(SEND, "0x" + raw.hex())

    def sent(self) -> list[int]:
        """Return the number of transactions that each upstream has received."""
        return [upstream.count(SEND) for upstream in self.upstreams]

    def all_methods(self, **methods: Any) -> None:
        """Make all upstreams return the same result."""
        for upstream in self.upstreams:
            upstream.methods.update(methods)


def read(found: Any) -> Any:
    """Return the decoded JSON of a response."""
    return orjson.loads(found.body if isinstance(found, Reply) else bytes(found))


GENESIS = fork_genesis("osaka", ALICE, chain_id=CHAIN_ID)


@contextmanager
def followed() -> Iterator[Node]:
    """Yield a service with two upstreams, over HTTP and over a WebSocket."""
    with running_upstream() as first, running_upstream() as second:
        network = Network.objects.get(slug="live")
        add_upstream(network=network, url=first.url("http"))
        add_upstream(network=network, url=second.url("ws"))
        with serving() as running:
            yield Node(running, [first, second])
