"""Results too long to be held: JSON of a known size that is made while it is sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from jsonrpc.errors import RpcError

CHUNK_BYTES = 2**16
"""What a stream gives at once: enough that a chunk's way out costs little, few enough
that neither a slow reader nor one turn of the event loop holds much."""


class BrokenStream(Exception):
    """Raised when a stream does not give as many bytes as it said it would."""

    def __init__(self, missing: int) -> None:
        super().__init__(f"the result is {missing} bytes shorter than announced")


class ResultTooLarge(RpcError):
    """Raised when a result has no room in the response that it is to be a part of.

    size, left: bytes of the result, and of the room.
    advice: how to ask for less.
    """

    code = -32003
    reason = "response_too_large"
    costs_full_price = True

    def __init__(self, size: int, left: int, advice: str) -> None:
        super().__init__(
            f"response too large: the result has {size} bytes, "
            f"there is room for {left}; {advice}",
            size=size,
            limit=left,
        )


class Stream:
    """A result that a method returns in the place of finished JSON; it is read once.

    size: bytes of the JSON, which its chunks add up to exactly.
    chunks: the JSON in parts of at most CHUNK_BYTES. What they hold on to (a cursor,
        a file) is opened when the first one is asked for, and let go when the
        generator is closed.
    advice: how a caller asks for less; ends the error of a result that is too large.
    Whatever is raised before the first chunk is told as an error of the call. After
    that it breaks the answer off, and the transfer with it.
    """

    __slots__ = ("_before", "_behind", "_chunks", "_first", "advice", "size")

    def __init__(
        self,
        size: int,
        chunks: AsyncGenerator[bytes, None],
        advice: str = "make the call alone",
    ) -> None:
        self.size = size
        self.advice = advice
        self._chunks = chunks
        self._first = self._before = self._behind = b""

    async def begin(self) -> None:
        """Make the first chunk, as long as a failure can still be told."""
        self._first = await anext(self._chunks, b"")

    def enclose(self, before: bytes, behind: bytes) -> None:
        """Put bytes around the JSON, which count towards the size."""
        self._before, self._behind = before, behind
        self.size += len(before) + len(behind)

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """Yield all bytes, in parts of about CHUNK_BYTES: small chunks are joined.

        Raises: BrokenStream before the last part when the size was wrong, so that
        what came out is no JSON; whatever the chunks raise.
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
        """Return the whole, of a stream that is small enough for that."""
        return b"".join([part async for part in self])

    async def aclose(self) -> None:
        """Let go of what the chunks hold on to."""
        await self._chunks.aclose()
