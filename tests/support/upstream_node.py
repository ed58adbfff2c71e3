"""A simulated node that accepts transactions: an HTTP server without a chain."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from eth_account import Account as Signer
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes
from sha3 import keccak_256

PATH = "/secret-path"


class UpstreamNode:
    """The state and the behaviour of the simulated node.

    calls: the methods that were called. raw: the accepted transactions.
    headers: of the last request.
    base_fee: None on a chain without.
    answers: by method, a result that replaces the node's own, or a function of the
        parameters, which may raise `Refused`.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.chain_id = 1
        self.base_fee: int | None = 7 * 10**9
        self.calls: list[str] = []
        self.raw: list[bytes] = []
        self.headers = Message()
        self.answers: dict[str, Any] = {}

    def answer(self, method: str, params: list[Any]) -> Any:
        """Return a call's result. Raises: Refused."""
        self.calls.append(method)
        if method in self.answers:
            given = self.answers[method]
            return given(*params) if isinstance(given, Callable) else given
        return getattr(self, f"_{method}")(*params)

    def sent(self) -> list[dict[str, Any]]:
        """Return the fields of the accepted typed transactions."""
        return [
            TypedTransaction.from_bytes(HexBytes(raw)).as_dict() for raw in self.raw
        ]

    def _eth_chainId(self) -> str:
        return hex(self.chain_id)

    def _eth_getBlockByNumber(self, *_: Any) -> dict[str, Any]:
        fee = self.base_fee
        return {"number": "0x5"} | ({} if fee is None else {"baseFeePerGas": hex(fee)})

    def _eth_maxPriorityFeePerGas(self) -> str:
        return hex(10**9)

    def _eth_gasPrice(self) -> str:
        return hex(8 * 10**9)

    def _eth_estimateGas(self, call: dict[str, Any]) -> str:
        return hex(21_000 if "data" not in call else 40_000)

    def _eth_getTransactionCount(self, address: str, _: str) -> str:
        senders = [Signer.recover_transaction(raw).lower() for raw in self.raw]
        return hex(senders.count(address))

    def _eth_sendRawTransaction(self, raw: str) -> str:
        self.raw.append(bytes.fromhex(raw[2:]))
        return "0x" + keccak_256(self.raw[-1]).hexdigest()

    def _eth_getTransactionByHash(self, wanted: str) -> dict[str, str] | None:
        hashes = ["0x" + keccak_256(raw).hexdigest() for raw in self.raw]
        return {"hash": wanted} if wanted in hashes else None


class Refused(Exception):
    """Raised to answer with an error object."""


class HangUp(Exception):
    """Raised to close the connection without an answer."""


@contextmanager
def running_node() -> Iterator[UpstreamNode]:
    """Run a node on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            call = json.loads(body)
            node.headers = self.headers
            answer: dict[str, Any] = {"jsonrpc": "2.0", "id": call["id"]}
            try:
                if self.path != PATH:
                    raise Refused({"code": -32000, "message": "who are you"})
                answer["result"] = node.answer(call["method"], call["params"])
            except Refused as error:
                answer["error"] = error.args[0]
            except HangUp:
                self.close_connection = True
                return
            text = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Log nothing, because clients may disconnect."""

    with Server(("127.0.0.1", 0), Handler) as server:
        node = UpstreamNode(f"http://127.0.0.1:{server.server_port}{PATH}")
        thread = Thread(target=server.serve_forever, args=[0.02])
        thread.start()
        try:
            yield node
        finally:
            server.shutdown()
            thread.join()


def refuse(code: int, message: str, data: object = None) -> Callable[..., Any]:
    """Return a method that answers with an error object."""

    def answer(*_: object) -> Any:
        raise Refused({"code": code, "message": message, "data": data})

    return answer


def hang_up(*_: object) -> Any:
    """Close the connection without an answer."""
    raise HangUp


def sleep(*_: object) -> Any:
    """Answer too late for a client with a timeout of 0.2 s."""
    time.sleep(0.6)
    raise HangUp
