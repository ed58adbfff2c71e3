"""Addresses of Redis, with Sentinels and without."""

from __future__ import annotations

import asyncio
import gc
import socket
import subprocess
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from channels_redis.pubsub import RedisPubSubChannelLayer
from redis import Redis, RedisError

from config.embedded.redis import program
from keys.limiter.buckets import Buckets, RedisUnavailable
from keys.limiter.gcra import Limits
from outbox.redis_address import (
    channel_layer_host,
    connection_pool,
    parse_sentinel_url,
)
from tests.support.coroutines import scenario
from tests.support.waiting import in_time, until, wait_until


def test_addresses_without_sentinels_are_left_alone() -> None:
    for url in ("redis://cache:6380/1", "rediss://cache", "unix:///run/redis.sock"):
        assert parse_sentinel_url(url) is None
        assert channel_layer_host(url)["address"] == url


def test_address_with_sentinels_is_parsed() -> None:
    url = (
        "redis+sentinel://us%40er:p%3A%2F@a.example,b.example:26380,[::1]:1/my%2Fmaster/2"
        "?sentinel_username=watch&sentinel_password=s%26t"
    )
    found = parse_sentinel_url(url)
    assert found is not None
    assert found.sentinels == (("a.example", 26379), ("b.example", 26380), ("::1", 1))
    assert found.master == "my/master"
    assert found.options == {"db": 2, "username": "us@er", "password": "p:/"}
    assert found.sentinel_options == {"username": "watch", "password": "s&t"}
    assert "p:/" not in repr(found)
    assert "s&t" not in repr(found)
    secure = parse_sentinel_url("rediss+sentinel://a/m")
    assert secure is not None
    assert secure.options == {"db": 0, "ssl": True}
    assert secure.sentinel_options == {"ssl": True}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("redis+sentinel://u:secret@a:1", "must end with the name of a master"),
        ("redis+sentinel://u:secret@a:1/m/x", "must end with the name of a master"),
        ("redis+sentinel://u:secret@a:port/m", "must name Sentinels"),
        ("redis+sentinel://u:secret@/m", "must name Sentinels"),
        ("redis+sentinel://u:secret@a/m?color=red", "sentinel_password, not 'color'"),
    ],
)
def test_wrong_address_is_explained_without_its_password(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        parse_sentinel_url(url)
    assert "secret" not in str(caught.value)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        return int(opened.getsockname()[1])


@dataclass
class Watched:
    """A master and its replica, with a password, and the Sentinel that watches them.

    url: the address with the Sentinel.
    """

    url: str
    master: subprocess.Popen[bytes]
    replica: Redis


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """Run a master, a replica of it, and a Sentinel that knows both."""
    master, replica, watcher = free_port(), free_port(), free_port()
    config = tmp_path / "sentinel.conf"
    config.write_text(
        f"port {watcher}\nbind 127.0.0.1\ndir {tmp_path}\n"
        f"sentinel monitor main 127.0.0.1 {master} 1\n"
        "sentinel auth-pass main pass\n"
        "sentinel down-after-milliseconds main 1000\n"
    )
    binary = program()
    common = "--bind 127.0.0.1 --requirepass pass --masterauth pass --save"
    processes: list[subprocess.Popen[bytes]] = []

    def start(port: int, *command: str) -> None:
        processes.append(
            subprocess.Popen(
                [binary, *command], stdout=subprocess.DEVNULL, cwd=tmp_path
            )
        )
        wait_until(lambda: _answers(port))

    follower, observer = Redis(port=replica, password="pass"), Redis(port=watcher)
    try:
        start(master, "--port", f"{master}", *common.split(), "")
        replicates = ("--replicaof", "127.0.0.1", f"{master}")
        start(replica, "--port", f"{replica}", *replicates, *common.split(), "")
        wait_until(lambda: follower.info("replication")["master_link_status"] == "up")
        # Sentinel asks the master for its replicas at once, and later every ten seconds.
        start(watcher, str(config), "--sentinel")
        wait_until(lambda: observer.sentinel_slaves("main"))
        url = f"redis+sentinel://:pass@127.0.0.1:{watcher}/main/1"
        yield Watched(url, processes[0], follower)
    finally:
        follower.close()
        observer.close()
        for process in processes:
            process.terminate()
            process.wait()


@pytest.fixture
def sentinel(watched: Watched) -> str:
    """Return the address of a master with a Sentinel."""
    return watched.url


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@scenario
async def test_limiter_finds_the_master(sentinel: str) -> None:
    buckets = Buckets(sentinel)
    await buckets.check()
    await buckets.close()


def test_channel_layer_finds_the_master(sentinel: str) -> None:
    async def scenario() -> None:
        layer = RedisPubSubChannelLayer(hosts=[channel_layer_host(sentinel)])
        channel = await layer.new_channel()
        await layer.group_add("group", channel)
        await layer.group_send("group", {"type": "hello"})
        assert await in_time(layer.receive(channel)) == {"type": "hello"}
        await layer.flush()

    asyncio.run(scenario())
    # channels-redis does not close the connections to Sentinels.
    with warnings.catch_warnings(action="ignore"):
        gc.collect()


def test_limiter_and_channel_layer_continue_after_a_failover(watched: Watched) -> None:
    async def scenario() -> None:
        buckets = Buckets(watched.url)
        layer = RedisPubSubChannelLayer(hosts=[channel_layer_host(watched.url)])
        channel = await layer.new_channel()
        await layer.group_add("group", channel)
        await buckets.check()
        watched.master.kill()
        await until(lambda: watched.replica.info("replication")["role"] == "master")

        async def charges() -> bool:
            with suppress(RedisUnavailable):
                await buckets.take(1, Limits(10, 100), needed=1)
                return True
            return False

        async def delivers() -> bool:
            # Messages may be lost, because the outbox polls its table as well.
            with suppress(RedisError, OSError):
                await layer.group_send("group", {"type": "hello"})
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    return await layer.receive(channel) == {"type": "hello"}
            return False

        assert await until(charges)
        assert await until(delivers)
        await buckets.close()
        await layer.flush()

    asyncio.run(scenario())
    # channels-redis does not close the connections to Sentinels.
    with warnings.catch_warnings(action="ignore"):
        gc.collect()


@scenario
async def test_pool_is_bounded_with_sentinels_as_well(sentinel: str) -> None:
    pool = connection_pool(sentinel, max_connections=1, timeout=0.2)
    first = await pool.get_connection()
    began = time.monotonic()
    with pytest.raises(RedisError):
        await pool.get_connection()
    assert time.monotonic() - began >= 0.2
    await pool.release(first)
    await pool.release(await pool.get_connection())
    await pool.aclose()
