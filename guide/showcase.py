"""Public data of the home page: heads of networks, plans, and one trace.

The data is computed at most once in a few seconds, for any number of visitors.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.db.models import Q

from explorer.abis import Abis
from explorer.flame import Flame
from explorer.recorded import Busy, room, shown_calls
from explorer.rows import find_transaction
from guide.computed import Computed
from keys.models import Plan
from legible import words
from networks.models import Network
from nodeapi.encoding import quantity
from nodeapi.models import Block, Transaction, TransactionRecord

HEAD_SECONDS = 2.0
"""Seconds for which heads and plans are kept."""

TRACE_SECONDS = 300.0
"""Seconds for which the trace is kept."""

MAX_NETWORKS = 20
"""Most networks on the page; the page of the documentation lists all of them."""

SEARCHED_BLOCKS = 30
"""Newest blocks with transactions in which a transaction is chosen."""

MAX_CANDIDATES = 12
"""Transactions whose calls are read, those with the longest traces first."""

MAX_CALLS_BYTES = 2**15
"""Size of the longest trace that is chosen, as bytes of callTracer's result."""


@dataclass(frozen=True, slots=True)
class Head:
    """A network with its newest block.

    number, timestamp (Unix seconds) and the texts are None and "" without blocks.
    """

    network: Network
    number: int | None = None
    timestamp: int | None = None
    moment: str = ""

    @property
    def result(self) -> str:
        """The result of eth_blockNumber, such as `0x1e`."""
        return "" if self.number is None else quantity(self.number).decode().strip('"')


@dataclass(frozen=True, slots=True)
class Trace:
    """The gas of the calls of a transaction.

    hash: `0x…`. gas_used, calls: as text, with thousands separated.
    """

    network: Network
    hash: str
    block: int
    gas_used: str
    calls: str
    flame: Flame


def public_networks() -> list[Network]:
    """Return the networks that the documentation names to everyone."""
    return list(Network.objects.visible()[:MAX_NETWORKS])


def _heads() -> list[Head]:
    networks = public_networks()
    wanted = Q()
    for network in networks:
        if network.head_hash is not None:
            wanted |= Q(network=network, hash=bytes(network.head_hash))
    blocks = Block.objects.filter(wanted) if wanted else Block.objects.none()
    found = {one.network_id: one for one in blocks.only("network", "number", "header")}
    return [_head(network, found.get(network.pk)) for network in networks]


def _head(network: Network, block: Block | None) -> Head:
    if block is None:
        return Head(network)
    moment = datetime.fromtimestamp(block.timestamp, UTC)
    return Head(
        network, block.number, block.timestamp, f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    )


def _trace() -> Trace | None:
    """Return a trace with many calls of the first network that shows one to everyone."""
    for network in public_networks():
        if network.head_number is not None and _shows_trace(network):
            found = _longest_trace(network)
            if found is not None:
                return found
    return None


def _longest_trace(network: Network) -> Trace | None:
    inhabited = Block.objects.filter(
        network=network, is_canonical=True, transaction_count__gt=0
    ).order_by("-number")
    blocks = list(inhabited.values_list("pk", flat=True)[:SEARCHED_BLOCKS])
    records = TransactionRecord.objects.filter(
        block__in=blocks, calls_size__lte=MAX_CALLS_BYTES
    ).order_by("-calls_size", "-block_id", "index")
    places = records.values_list("block_id", "index")[:MAX_CANDIDATES]
    traces = [_read(network, *place) for place in places]
    found = [trace for trace in traces if trace is not None]
    return max(found, key=lambda trace: len(trace.flame.bars), default=None)


def _shows_trace(network: Network) -> bool:
    """Return whether everyone may see one of a network's traces."""
    return network.public_explorer or settings.DEMO


def _read(network: Network, block_id: int, index: int) -> Trace | None:
    """Return the trace of a transaction, or None if it is too long for a page."""
    one = Transaction.objects.only("hash").get(block=block_id, index=index)
    found = find_transaction(network, bytes(one.hash), None)
    if found is None:
        return None
    try:
        with room():
            abis = Abis(network, None)
            calls = shown_calls(found.recorded, found.calls_size, abis)
    except Busy:
        return None
    if calls.absence:
        return None
    return Trace(
        network=network,
        hash=found.summary.hash,
        block=found.block.number,
        gas_used=found.summary.gas_used,
        calls=words.count(len(calls.lines), "call"),
        flame=calls.flame,
    )


heads = Computed(_heads, HEAD_SECONDS)
plans = Computed(lambda: list(Plan.objects.all()), HEAD_SECONDS)
trace = Computed(_trace, TRACE_SECONDS)
