"""`manage.py network_status`: a network's head, follower and upstreams."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from networks.models import Network
from nodeapi.forks.check import date
from nodeapi.status.following import network_state

LOOK_SECONDS = 0.2
"""Interval at which the head is read while waiting."""


class Command(BaseCommand):
    help = "Show a network's head, its follower and its upstreams."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="slug of the network")
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument(
            "--wait",
            type=int,
            metavar="NUMBER",
            help="wait until the head has at least this number",
        )
        parser.add_argument(
            "--timeout",
            type=float,
            default=60.0,
            metavar="SECONDS",
            help="seconds to wait (default: %(default)g)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["slug"]
        network = Network.objects.filter(slug=slug).first()
        if network is None:
            raise CommandError(f"there is no network {slug!r}")
        if options["wait"] is not None:
            _wait(network, options["wait"], options["timeout"])
        state = network_state(network)
        if options["json"]:
            self.stdout.write(json.dumps(state))
            return
        for line in _lines(state):
            self.stdout.write(line)


def _wait(network: Network, number: int, seconds: float) -> None:
    """Wait until the head has at least a given number.

    Raises: CommandError after the time limit.
    """
    until = time.monotonic() + seconds
    while network.head_number is None or network.head_number < number:
        left = until - time.monotonic()
        if left <= 0:
            head = "no block" if network.head_number is None else network.head_number
            raise CommandError(
                f"{network.slug}: the head is {head} after {seconds:g} s, not {number}"
            )
        time.sleep(min(LOOK_SECONDS, left))
        network.refresh_from_db()


def _lines(state: dict[str, Any]) -> list[str]:
    """Return the state as lines for people."""
    lines = [
        f"{state['network']}: {state['name']}, chain id {state['chain_id']}, "
        f"{state['following']}{', preparing' if state['preparing'] else ''}"
    ]
    for tag in ("head", "safe", "finalized"):
        block = state[tag]
        if block is not None:
            lines.append(f"  {tag:<10} {block['number']}  {block['hash']}")
    checkpoint = state["checkpoint"]
    if checkpoint is not None:
        lines.append(f"  checkpoint {checkpoint['number']}  {checkpoint['hash']}")
        for name, blocks in (("oldest", "oldest"), ("by proofs", "by_proofs")):
            kinds = (f"{kind} {number}" for kind, number in checkpoint[blocks].items())
            lines.append(f"  {name:<10} {', '.join(kinds)}")
    follower = state["follower"]
    if follower is not None:
        lines.append(
            f"  follower   {_behind(follower['blocks_behind'])}, "
            f"running since {follower['started_at']}, "
            f"reported at {follower['updated_at']}"
        )
        if follower["alarm"]:
            lines.append(f"  alarm      {follower['alarm']}")
    for fork in state["unsupported_forks"]:
        place = date(fork["time"]) if fork["time"] else f"block {fork['block']}"
        lines.append(f"  fork       {fork['name']} at {place} is not supported")
    for upstream in state["upstreams"]:
        lines.append(f"  upstream   {_upstream(upstream)}")
        warnings = (upstream["status"] or {}).get("fork_warnings", [])
        lines += [
            f"  fork       upstream {upstream['id']}: {text}" for text in warnings
        ]
    return lines


def _behind(blocks: int | None) -> str:
    return "unknown blocks behind" if blocks is None else f"{blocks} blocks behind"


def _upstream(upstream: dict[str, Any]) -> str:
    words = [f"{upstream['id']}  {upstream['url']}"]
    if upstream["note"]:
        words.append(f"({upstream['note']})")
    if not upstream["enabled"]:
        words.append("disabled")
    status = upstream["status"]
    if status is not None:
        latency = status["latency_ms"]
        head = status["head_number"]
        words.append(f"head {'unknown' if head is None else head},")
        words.append("" if latency is None else f"{latency:.0f} ms,")
        words.append(f"{status['errors']} of {status['requests']} requests failed")
        if status["last_error"]:
            words.append(f"(last: {status['last_error']})")
    return " ".join(filter(None, words))
