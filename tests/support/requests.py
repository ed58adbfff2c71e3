"""Node requests that do not come from a connection."""

from __future__ import annotations

from asyncio import Future, get_running_loop

from server.request import Request


class WholeRequest(Request):
    """A POST whose body has arrived. Its client never disconnects."""

    def __init__(self, path: str, headers: dict[bytes, bytes], body: bytes) -> None:
        super().__init__("POST", path, headers, "1.1", None)
        self.body = body

    def claim(self, key: int, client: str | None) -> bool:
        return True

    def read_body(self, limit: int, seconds: float) -> Future[bytes]:
        read: Future[bytes] = get_running_loop().create_future()
        read.set_result(self.body or b"")
        return read

    def disconnected(self) -> Future[None]:
        return get_running_loop().create_future()
