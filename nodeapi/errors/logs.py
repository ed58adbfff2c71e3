"""Searches for logs, and filters."""

from __future__ import annotations

from jsonrpc.errors import RpcError


class TooManyAlternatives(RpcError):
    """Raised when a filter has more addresses or topics per position than allowed."""

    remedy = "Send several filters with fewer addresses or topics each."
    text = "exceed max addresses or topics per search position"


class TooManyLogs(RpcError):
    """Raised when a search finds more logs than one answer may contain.

    limit: maximum number of logs of an answer.
    first, last: a range of blocks with at most that many, or the first block of the
        search alone.

    The text and the data are Infura's, which clients parse.
    """

    form = (
        "query returned more than <limit> results. Try with this block range [<first>, "
        "<last>]."
    )
    remedy = "Search the range of blocks that the message names, then the next one."
    code = -32005
    costs_full_price = True

    def __init__(self, limit: int, first: int, last: int) -> None:
        self.last = last
        self._data = {"from": hex(first), "limit": limit, "to": hex(last)}
        super().__init__(
            f"query returned more than {limit} results. "
            f"Try with this block range [{first:#x}, {last:#x}]."
        )

    @property
    def data(self) -> object:
        """The suggested range and the limit."""
        return self._data


class LogSearchTimedOut(RpcError):
    """Raised when a search for logs exceeds its time limit in the database."""

    remedy = "Search fewer blocks, or name addresses and topics."
    code = -32005
    reason = "log_search_timed_out"
    text = "query timeout exceeded. Consider reducing your block range."
    costs_full_price = True


class FilterNotFound(RpcError):
    """Raised when the key has no such filter, or it was not used for 5 minutes."""

    remedy = "Create the filter again, and poll it at least every 5 minutes."
    text = "filter not found"


class TooManyFilters(RpcError):
    """Raised when an API key has reached the maximum number or size of its filters.

    limit: number of filters. If is_size is true, bytes that all of them have together.
    """

    remedy = "Uninstall filters that you no longer need."
    http_status = 429
    code = -32005
    reason = "too_many_filters"

    def __init__(self, limit: int, *, is_size: bool = False) -> None:
        unit = " bytes" if is_size else ""
        text = f"too many filters of this API key: at most {limit}{unit}"
        super().__init__(text, limit=limit)
