"""Symbols and decimals of tokens on pages, read from the contracts after the newest block.

Pages run in threads, and worker processes are asked from the event loop. `with_tokens` puts
a `TokenReader` into the scope of the pages' ASGI application. Without it, as in tests of
single views, no token is known.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import orjson
from django.http import HttpRequest

from abi.erc20 import DECIMALS, READ_GAS, SYMBOL, UNKNOWN, Token, read_token
from evm.proved_state import UnknownValues
from jsonrpc.errors import RpcError
from jsonrpc.stream import Stream
from networks.models import Network
from nodeapi.encoding import LATEST
from nodeapi.errors.execution import ExecutionFailed
from nodeapi.errors.proofs import TooManyRounds
from nodeapi.proofs.reads import ValueReader
from nodeapi.store import Store
from nodeapi.tracing.answers import TaskAnswer
from nodeapi.tracing.jobs import TaskJob
from nodeapi.tracing.pool import TracePool
from postgres.errors import Unavailable

SCOPE_KEY = "portcullis.tokens"

MAX_TOKENS = 20
"""Tokens of a page that are read. Amounts of others are shown in the smallest unit."""

PAGE_SECONDS = 0.5
"""How long a page waits. What is read later is shown by the next page."""

CALL_SECONDS = 1.0
"""Time limit of a call of a contract."""

KEPT_SECONDS = 3600.0
FAILED_SECONDS = 60.0
"""How long a token is known, and how long one that could not be read is unknown."""

_KEPT = 4096
"""Tokens that are known at a time."""

_READING = 64
"""Tokens that are read at a time, for all pages of the process."""

_ROUNDS = 20
"""Times that a call is executed while values that it reads are unknown."""

_TURN = "explorer"
"""Used instead of an API key's id: all pages of a process have one turn."""

_Place = tuple[int, bytes]
"""The id of a network, and the address of a contract."""


class TokenReader:
    """Reads tokens for code that runs in threads, and remembers them."""

    def __init__(
        self,
        store: Store,
        tracing: TracePool,
        loop: asyncio.AbstractEventLoop,
        values: ValueReader | None = None,
    ) -> None:
        """Set where to read. values: proves unknown values of sparse states."""
        self._store = store
        self._tracing = tracing
        self._loop = loop
        self._values = values
        self._known: OrderedDict[_Place, tuple[Token, float]] = OrderedDict()
        """Tokens, with the monotonic time until which they are known."""
        self._reading: dict[_Place, asyncio.Task[None]] = {}

    def read(self, network_id: int, addresses: Iterable[bytes]) -> dict[bytes, Token]:
        """Return the tokens that are known within PAGE_SECONDS, by address."""
        wanted = list(dict.fromkeys(addresses))[:MAX_TOKENS]
        reading = self._read([(network_id, address) for address in wanted])
        future = asyncio.run_coroutine_threadsafe(reading, self._loop)
        try:
            return future.result(2 * PAGE_SECONDS)
        except TimeoutError:  # the event loop itself is late
            future.cancel()
            return {}

    async def _read(self, places: list[_Place]) -> dict[bytes, Token]:
        now = time.monotonic()
        tasks = []
        for place in places:
            _, until = self._known.get(place, (UNKNOWN, 0.0))
            task = self._reading.get(place)
            if task is None and until <= now and len(self._reading) < _READING:
                task = asyncio.create_task(self._fetch(place))
                self._reading[place] = task
            if task is not None:
                tasks.append(task)
        if tasks:
            await asyncio.wait(tasks, timeout=PAGE_SECONDS)
        return {
            place[1]: self._known[place][0] for place in places if place in self._known
        }

    async def _fetch(self, place: _Place) -> None:
        """Read a token, and remember it."""
        token, seconds = UNKNOWN, FAILED_SECONDS
        try:
            with suppress(RpcError, Unavailable):
                network_id, address = place
                block_hash = await self._store.state_hash(network_id, LATEST)
                symbol, decimals = await asyncio.gather(
                    self._call(network_id, block_hash, address, SYMBOL),
                    self._call(network_id, block_hash, address, DECIMALS),
                )
                token, seconds = read_token(symbol, decimals), KEPT_SECONDS
            self._known[place] = token, time.monotonic() + seconds
            self._known.move_to_end(place)
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        finally:
            del self._reading[place]

    async def _call(
        self, network_id: int, block_hash: bytes, address: bytes, data: bytes
    ) -> bytes:
        """Call a contract, and return its return data, b"" if the call fails.

        Raises: RpcError if it could not be executed in time.
        """
        call = {
            "to": f"0x{address.hex()}",
            "input": f"0x{data.hex()}",
            "gas": hex(READ_GAS),
        }
        job = TaskJob(
            network_id=network_id,
            task="call",
            block_hash=block_hash,
            arguments={"call": call, "gas_cap": READ_GAS},
            timeout=CALL_SECONDS,
        )
        try:
            result = (await self._run(job)).result
        except ExecutionFailed as error:
            if not error.is_lasting:
                raise
            return b""
        if isinstance(result, Stream):
            await result.aclose()
            return b""
        return bytes.fromhex(orjson.loads(result)[2:])

    async def _run(self, job: TaskJob) -> TaskAnswer:
        """Return the result of a task, executed again after unknown values were proved.

        Raises: RpcError.
        """
        for _ in range(_ROUNDS):
            try:
                return await self._tracing.run(job, _TURN)
            except UnknownValues as error:
                if self._values is None:
                    break
                await self._values.prove(job.network_id, error.keys, _TURN)
        raise TooManyRounds(_ROUNDS)


def with_tokens(
    pages: Callable[..., Awaitable[None]],
    store: Store,
    tracing: TracePool,
    values: ValueReader,
) -> Callable[..., Awaitable[None]]:
    """Return an ASGI application whose pages can read tokens."""
    reader: TokenReader | None = None

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        nonlocal reader
        if reader is None:  # the event loop is known now
            loop = asyncio.get_running_loop()
            reader = TokenReader(store, tracing, loop, values)
        await pages({**scope, SCOPE_KEY: reader}, receive, send)

    return answer


def tokens_of(
    request: HttpRequest, network: Network, addresses: Iterable[bytes]
) -> dict[bytes, Token]:
    """Return the tokens that a page may name, by address."""
    scope: dict[str, Any] = getattr(request, "scope", {})
    reader: TokenReader | None = scope.get(SCOPE_KEY)
    wanted = list(addresses)
    return reader.read(network.pk, wanted) if reader is not None and wanted else {}
