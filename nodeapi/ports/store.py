"""The store: all reads of blocks, state, transactions, logs and trace records."""

from __future__ import annotations

from typing import Protocol

from nodeapi.ports.appearances import Appearances
from nodeapi.ports.blocks import Blocks
from nodeapi.ports.fees import Fees
from nodeapi.ports.logs import Logs
from nodeapi.ports.networks import Networks
from nodeapi.ports.states import States
from nodeapi.ports.tasks import TaskOutcomes
from nodeapi.ports.traces import Traces
from nodeapi.ports.transactions import Transactions


class Store(
    Blocks,
    Transactions,
    Logs,
    States,
    Traces,
    Appearances,
    Fees,
    Networks,
    TaskOutcomes,
    Protocol,
):
    """Reads everything that is stored; see `nodeapi.store`.

    Results are complete on a cache hit. They fail with Unavailable while the database
    is unavailable, and with ServiceUnavailable for a long result while too many bytes
    are spooled for other readers.
    """
