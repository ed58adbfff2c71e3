"""A separate Redis, which a test can stop and start."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.embedded import places, redis


class OwnRedis:
    """A server in a folder of its own; see `url`."""

    def __init__(self, var_dir: Path) -> None:
        self.server = redis.RedisServer(var_dir)
        self.url = redis.address(var_dir)

    def start(self) -> None:
        self.server.start()

    def stop(self) -> None:
        self.server.stop()


@contextmanager
def own_redis() -> Iterator[OwnRedis]:
    """Run a Redis for the time of a `with` block."""
    with tempfile.TemporaryDirectory(prefix="portcullis-redis-") as folder:
        server = OwnRedis(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
            places.forget_socket_dir(Path(folder))
