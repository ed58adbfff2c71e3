"""Long results: JSON of a known size, produced while it is sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from jsonrpc.errors import RpcError

CHUNK_BYTES = 2**16
"""Size of a chunk. It is large enough for a small overhead per chunk, and small enough
to bound the memory of slow readers and the time of one event loop iteration."""


class BrokenStream(Exception):
    """Raised when a stream does not produce as many bytes as declared."""

    def __init__(self, missing: int) -> None:
        super().__init__(f"the result is {missing} bytes shorter than announced")


class ResultTooLarge(RpcError):
    """Raised when a result exceeds the space left in a batch's response.

    size: bytes of the result. left: bytes left in the response.
    advice: how to request less.
    """

    remedy = (
        "Request less at a time, or make the call over HTTP instead of a WebSocket."
    )
    code = -32003
    reason = "response_too_large"
    costs_full_price = True

    def __init__(self, size: int, left: int, advice: str) -> None:
        super().__init__(
            f"response too large: the result has {size} bytes, "
            f"but at most {left} are possible; {advice}",
            size=size,
            limit=left,
        )


class Stream:
    """A result that is produced while it is sent, instead of complete JSON.

    It is read once.

    size: bytes of the JSON, equal to the sum of its chunks.
    chunks: the JSON in parts of at most CHUNK_BYTES. Their resources, such as a file,
        are opened for the first chunk and released when the generator is closed.
    is_begun: whether `begin` has succeeded.
    advice: how a caller can request less, for the error of a result that is too large.

    An exception before the first chunk is reported as the call's error. A later
    exception breaks off the response and the connection.
    """

    __slots__ = (
        "_before",
        "_behind",
        "_chunks",
        "_first",
        "advice",
        "is_begun",
        "size",
    )

    def __init__(
        self,
        size: int,
        chunks: AsyncGenerator[bytes, None],
        advice: str = "make the call alone",
    ) -> None:
        self.size = size
        self.advice = advice
        self.is_begun = False
        self._chunks = chunks
        self._first = self._before = self._behind = b""

    async def begin(self) -> None:
        """Produce the first chunk before the response starts.

        A failure can still be reported then.
        """
        self._first = await anext(self._chunks, b"")
        self.is_begun = True

    def enclose(self, before: bytes, behind: bytes) -> Stream:
        """Add bytes before and after the JSON. Their size is added.

        Returns this stream.
        """
        self._before, self._behind = before, behind
        self.size += len(before) + len(behind)
        return self

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """Yield all bytes in parts of about CHUNK_BYTES. Small chunks are joined.

        Raises: exceptions of the chunks; BrokenStream before the last part if the size
            was wrong, so that the output is not valid JSON.
        """
        parts = [self._before, self._first]
        held = len(self._before) + len(self._first)
        given = held
        async for chunk in self._chunks:
            if held >= CHUNK_BYTES:
                yield b"".join(parts)
                parts.clear()
                held = 0
            parts.append(chunk)
            held += len(chunk)
            given += len(chunk)
        missing = self.size - given - len(self._behind)
        if missing:
            raise BrokenStream(missing)
        parts.append(self._behind)
        yield b"".join(parts)

    async def read(self) -> bytes:
        """Return the whole JSON. Only for streams whose size fits into memory."""
        return b"".join([part async for part in self])

    async def aclose(self) -> None:
        """Release the resources of the chunks."""
        await self._chunks.aclose()
