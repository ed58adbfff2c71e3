"""`trace_block` releases its resources when one of its parts fails."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from jsonrpc.later import DONE, Later
from jsonrpc.stream import Stream
from keys.grants import Grant
from keys.permits import TRACE, Permit
from nodeapi.encoding import BlockReference
from nodeapi.methods.context import Context
from nodeapi.methods.trace import trace_block
from nodeapi.results.spool import Spool, SpoolCount
from postgres.errors import Unavailable
from tests.support import edge

NETWORK = replace(edge.HIVE, tracers=frozenset({"flatCallTracer"}))
GRANT = Grant(1, "", None, {(NETWORK.id, TRACE): Permit()}, None)


class Store(edge.Store):
    """A store whose first result is in a file, and whose next read fails.

    fails: the read that raises Unavailable. Otherwise, the block was removed.
    """

    def __init__(self, fails: str) -> None:
        self._fails = fails
        self.file: Any = None

    def is_untraced(self, *asked: Any, **named: Any) -> Later[bool]:
        return Later(False)

    def cached_derived_trace(self, *asked: Any) -> None:
        return None

    def derived_block_trace(self, *asked: Any, **named: Any) -> Later[bytes | Stream]:
        spool = Spool(memory_bytes=0, count=SpoolCount())
        self.file = spool.file
        spool.write(b'[{"result":[]}]')
        return Later(spool.answer(""))

    def raw_block(self, *asked: Any) -> Later[None]:
        return self._nothing("raw_block")

    def trace_sizes(self, *asked: Any) -> Later[None]:
        return self._nothing("trace_sizes")

    def _nothing(self, read: str) -> Later[None]:
        if read == self._fails and self.file is not None:
            return Later.failed(Unavailable("no database"))
        return DONE


@pytest.mark.parametrize("fails", ["raw_block", "trace_sizes", ""])
def test_answer_is_closed_when_another_part_does_not_come(fails: str) -> None:
    store: Any = Store(fails)
    asked = trace_block(
        Context(b"1", GRANT, NETWORK, store), BlockReference(hash=edge.BLOCK_HASH)
    )
    if not fails:
        assert asyncio.run(asked) is None
    else:
        with pytest.raises(Unavailable) as caught:
            asyncio.run(asked)
        assert caught.traceback  # the traceback refers to all local variables
    assert store.file.closed


def test_spool_is_closed_with_a_stream_that_was_never_read() -> None:
    spool = Spool(memory_bytes=0, count=SpoolCount())
    file = spool.file
    spool.write(b"12")
    stream = spool.answer("")
    assert isinstance(stream, Stream)
    del spool
    asyncio.run(stream.aclose())
    assert file.closed
