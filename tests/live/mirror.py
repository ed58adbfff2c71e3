"""A customer whose copy of the chain comes only from the notifications of a socket."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.support.waiting import PATIENCE_SECONDS

_KINDS = (("newHeads",), ("logs", {}), ("newPendingTransactions",))


class Mirror:
    """Heads, logs and pending transactions as notifications on /ws/v3 announce them.

    hashes: number → hash of the canonical blocks. logs: those of these blocks. removed:
    all logs that were announced as removed, in order. pending: hashes of transactions.
    mistakes: notifications that contradict earlier ones.
    """

    def __init__(self, url: str) -> None:
        self.hashes: dict[int, str] = {}
        self.logs: list[dict[str, Any]] = []
        self.removed: list[dict[str, Any]] = []
        self.pending: set[str] = set()
        self.mistakes: list[str] = []
        self.lock = threading.Lock()
        self._kinds: dict[str, str] = {}
        self._stack = ExitStack()
        self._socket = self._stack.enter_context(
            connect(url, max_size=None, compression=None, open_timeout=PATIENCE_SECONDS)
        )
        early = []
        for number, params in enumerate(_KINDS):
            message = {"jsonrpc": "2.0", "id": number, "method": "eth_subscribe"}
            self._socket.send(json.dumps({**message, "params": params}))
            while "id" not in (found := json.loads(self._socket.recv())):
                early.append(found)
            self._kinds[found["result"]] = params[0]
        for found in early:
            self._take(found["params"])
        self._thread = threading.Thread(target=self._read, name="mirror")
        self._thread.start()

    def close(self) -> None:
        """Close the socket."""
        self._stack.close()
        self._thread.join()

    def has_log_of(self, transaction_hash: str) -> bool:
        """Return whether a log of a transaction was received; it follows the new head."""
        with self.lock:
            return any(log["transactionHash"] == transaction_hash for log in self.logs)

    def head(self) -> tuple[int, str]:
        """Return number and hash of the newest block; (-1, "") before the first."""
        with self.lock:
            number = max(self.hashes, default=-1)
            return number, self.hashes.get(number, "")

    def announced(self) -> set[str]:
        """Return the hashes of all transactions that were announced as pending.

        Raises: AssertionError if there are mistakes, after which some may be missing.
        """
        with self.lock:
            assert self.mistakes == []
            return set(self.pending)

    def _read(self) -> None:
        try:
            for message in self._socket:
                with self.lock:
                    self._take(json.loads(message)["params"])
        except ConnectionClosed as error:
            with self.lock:
                self.mistakes.append(f"the socket was closed: {error}")

    def _take(self, params: dict[str, Any]) -> None:
        kind, result = self._kinds[params["subscription"]], params["result"]
        if kind == "newHeads":
            self._take_head(result)
        elif kind == "logs":
            self._take_log(result)
        else:
            # A node announces it again if a reorganisation brings it back to the pool.
            self.pending.add(result)

    def _take_head(self, head: dict[str, Any]) -> None:
        number = int(head["number"], 16)
        parent = self.hashes.get(number - 1)
        if self.hashes and parent != head["parentHash"]:
            self.mistakes.append(f"{number} does not extend {parent}")
        self.hashes = {n: h for n, h in self.hashes.items() if n < number}
        self.hashes[number] = head["hash"]

    def _take_log(self, log: dict[str, Any]) -> None:
        if not log["removed"]:
            self.logs.append(log)
            return
        self.removed.append(log)
        known = {**log, "removed": False}
        if known in self.logs:
            self.logs.remove(known)
        else:
            self.mistakes.append(f"removed, but never added: {log}")
