"""A network of the test database, and a follower in a thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection as django_connection

from evm.blocks import Block
from networks.models import Network, Upstream
from networks.services import Checkpoint, add_upstream
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import open_network
from nodeapi.follower.run import run_follower
from nodeapi.models import (
    FollowerStatus,
    QuarantinedBlock,
    Reorganisation,
    UpstreamStatus,
)
from samples.builder import ChainBuilder
from server import forking
from server.forking import Forked
from tests.support import chains
from tests.support.service import test_database_url
from tests.support.simulator import Simulator, genesis_of
from tests.support.waiting import wait_until

SLUG = "net"


class Net:
    """A network that follows simulators."""

    def __init__(
        self,
        *nodes: Simulator,
        slug: str = SLUG,
        scheme: str = "http",
        genesis: dict[str, Any] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Create the network, with these upstreams in this order."""
        self.slug = slug
        with importer_connection() as opened:
            self.id = open_network(
                opened, slug, genesis=genesis or genesis_of(), checkpoint=checkpoint
            )
        self.upstreams = [self.add(node, scheme) for node in nodes]

    def add(self, node: Simulator, scheme: str = "http") -> Upstream:
        """Add an upstream as the last one."""
        return add_upstream(network=self.row(), url=node.server.url(scheme))

    def row(self) -> Network:
        """Return the network's row as it is now."""
        return Network.objects.get(pk=self.id)

    def set(self, **fields: Any) -> None:
        """Change fields of the network."""
        Network.objects.filter(pk=self.id).update(**fields)

    def set_upstream(self, index: int, **fields: Any) -> None:
        """Change fields of an upstream."""
        Upstream.objects.filter(pk=self.upstreams[index].pk).update(**fields)

    def import_blocks(self, chain: ChainBuilder) -> None:
        """Import a chain before it is followed."""
        chains.import_blocks(SLUG, genesis_of(), chain.blocks)

    # What the follower has done

    def head(self) -> tuple[int, bytes]:
        """Return number and hash of the head."""
        return chains.head(self.slug)

    def tags(self) -> tuple[bytes | None, bytes | None]:
        """Return the hashes of the safe and finalized blocks."""
        row = self.row()
        return (
            row.safe_hash and bytes(row.safe_hash),
            row.finalized_hash and bytes(row.finalized_hash),
        )

    def wait_for(self, block: Block) -> None:
        """Wait until a block is the head."""
        wanted = block.header.number, block.header.hash
        self.wait(lambda: self.head() == wanted, lambda: self.head())

    def wait_for_tags(self, safe: Block | None, finalized: Block | None) -> None:
        """Wait until blocks are safe and finalized."""
        wanted = tuple(
            None if block is None else bytes(block.header.hash)
            for block in (safe, finalized)
        )
        self.wait(lambda: self.tags() == wanted, lambda: self.tags())

    def wait(
        self, condition: Callable[[], Any], found: Callable[[], Any] | None = None
    ) -> Any:
        """Wait for a condition. found: shown if the condition does not become true."""
        try:
            return wait_until(condition)
        except AssertionError as error:
            shown = found() if found else ""
            raise AssertionError(f"{shown} {self.report()}") from error

    def status(self) -> FollowerStatus | None:
        """Return the follower's status."""
        return FollowerStatus.objects.filter(network_id=self.id).first()

    def wait_for_alarm(self, text: str) -> None:
        """Wait for an alarm that contains a text; "" for the end of all alarms."""

        def is_raised() -> bool:
            status = self.status()
            if status is None:
                return False
            return text in status.alarm if text else status.alarm == ""

        self.wait(is_raised)

    def upstream_status(self, index: int) -> UpstreamStatus | None:
        """Return the status of an upstream."""
        return UpstreamStatus.objects.filter(upstream=self.upstreams[index]).first()

    def wait_for_error(self, index: int, text: str) -> UpstreamStatus:
        """Wait until the status of an upstream has an error that contains a text."""

        def found() -> UpstreamStatus | None:
            status = self.upstream_status(index)
            return status if status and text in status.last_error else None

        result: UpstreamStatus = self.wait(found)
        return result

    def wait_for_looks(self, node: Simulator, count: int) -> None:
        """Wait until a simulator was asked for its head some more times."""
        calls = node.server.calls
        before = calls.count(("eth_getBlockByNumber", ["latest", False]))
        self.wait(
            lambda: (
                calls.count(("eth_getBlockByNumber", ["latest", False]))
                >= before + count
            )
        )

    def reorganisations(self) -> list[tuple[int, int, int]]:
        """Return fork number, depth and number of added blocks of each, in order."""
        rows = Reorganisation.objects.filter(network_id=self.id).order_by("id")
        return list(rows.values_list("fork_number", "depth", "added"))

    def quarantined(self) -> list[tuple[bytes, int | None, str]]:
        """Return hash, upstream and reason of the quarantined blocks."""
        rows = QuarantinedBlock.objects.filter(network_id=self.id).order_by("id")
        return [
            (bytes(block_hash), upstream, reason)
            for block_hash, upstream, reason in rows.values_list(
                "hash", "upstream_id", "reason"
            )
        ]

    def report(self) -> str:
        """Return the status rows as text, for the message of a failed test."""
        status = self.status()
        upstreams = [
            (row.head_number, row.errors, row.last_error)
            for row in UpstreamStatus.objects.filter(upstream__network_id=self.id)
        ]
        return f"alarm: {status and status.alarm!r}, upstreams: {upstreams}"

    # The follower

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Run the follower in a thread. Its exceptions are raised at the end."""
        stop = threading.Event()
        errors: list[BaseException] = []

        def run() -> None:
            try:
                run_follower(self.id, stop)
            except BaseException as error:
                errors.append(error)
            finally:
                django_connection.close()

        thread = threading.Thread(target=run, name="follower")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            if errors:
                raise errors[0]


def start_follower(net: Net) -> Forked:
    """Run a follower in a separate process."""
    return forking.shared.start(
        "tests.support.forked:run_follower",
        net.id,
        environ={**os.environ, "DATABASE_URL": test_database_url()},
    )
