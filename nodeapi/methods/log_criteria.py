"""The criteria of eth_getLogs, eth_newFilter and eth_subscribe: blocks, addresses, topics.

Source: go-ethereum eth/filters/api.go, FilterCriteria.UnmarshalJSON
"""

from __future__ import annotations

from binascii import unhexlify
from dataclasses import dataclass
from typing import Any

from jsonrpc.errors import InvalidParams
from jsonrpc.text import kind
from nodeapi.encoding import (
    BAD_DIGIT,
    EMPTY,
    MISSING_PREFIX,
    ODD_LENGTH,
    block_number,
    hash32,
)
from nodeapi.errors.logs import TooManyAlternatives
from nodeapi.go.decoding import Field, struct
from nodeapi.logs.filter import MAX_ALTERNATIVES, LogFilter, LogSelection
from nodeapi.logs.keys import MAX_TOPICS

_FIELDS = {
    "blockHash": Field("input.blockHash"),
    "fromBlock": Field("input.fromBlock"),
    "toBlock": Field("input.toBlock"),
    "address": Field("input.address"),
    "topics": Field("input.topics"),
}

Block = int | str
"""A block number, or a tag such as `latest`."""


@dataclass(frozen=True, slots=True)
class LogCriteria:
    """The blocks and the filter of a search for logs.

    block_hash: the only block to search. from_block and to_block are None then.
    from_block, to_block: None if they are absent.
    largest: the highest number of addresses, or of alternatives for a topic, as sent.
    """

    wanted: LogFilter
    block_hash: bytes | None = None
    from_block: Block | None = None
    to_block: Block | None = None
    largest: int = 0

    def encode(self) -> dict[str, Any]:
        """Return the JSON object that `log_criteria` decodes to equal criteria."""
        found: dict[str, Any] = {
            "topics": [
                None if topic is None else sorted(topic) for topic in self.wanted.topics
            ]
        }
        if self.wanted.addresses is not None:
            found["address"] = sorted(self.wanted.addresses)
        if self.block_hash is not None:
            found["blockHash"] = "0x" + self.block_hash.hex()
        for name, block in (("fromBlock", self.from_block), ("toBlock", self.to_block)):
            if block is not None:
                found[name] = block if isinstance(block, str) else hex(block)
        return found

    def new_logs(self) -> LogSelection:
        """Return the selection of logs in new blocks.

        Raises: TooManyAlternatives; InvalidParams if the criteria select no new blocks.

        Source: go-ethereum eth/filters/filter_system.go, SubscribeLogs
        """
        self.require_few_alternatives()
        begin = "latest" if self.from_block is None else self.from_block
        end = "latest" if self.to_block is None else self.to_block
        if "pending" in (begin, end):
            raise InvalidParams("pending logs are not supported")
        first = 0 if begin == "earliest" else begin
        if first == end == "latest":
            return LogSelection(self.wanted)
        if isinstance(first, int):
            if end == "latest":
                return LogSelection(self.wanted, first)
            if isinstance(end, int) and first <= end:
                return LogSelection(self.wanted, first, end)
        raise InvalidParams("invalid block range params")

    def require_few_alternatives(self) -> None:
        """Check the number of addresses, and of alternatives for each topic.

        Raises: TooManyAlternatives.
        """
        if self.largest > MAX_ALTERNATIVES:
            raise TooManyAlternatives


def log_criteria(value: Any) -> LogCriteria:
    """Decode criteria. Raises: ValueError with geth's text."""
    given = struct(value, "filters.input", _FIELDS)
    block_hash = from_block = to_block = None
    # geth decodes the members in the order in which they were sent.
    for name, member in given.items():
        if name == "blockHash":
            block_hash = _block_hash(member)
        elif name == "fromBlock":
            from_block = block_number(member)
        elif name == "toBlock":
            to_block = block_number(member)
    # Go continues after a value of a wrong type, and reports a malformed one first.
    topics = given.get("topics", [])
    if not isinstance(topics, list):
        raise ValueError(
            f"json: cannot unmarshal {kind(topics)} into Go struct field input.topics "
            "of type []interface {}"
        )
    if block_hash is not None and not (from_block is None and to_block is None):
        raise ValueError(
            "cannot specify both BlockHash and FromBlock/ToBlock, "
            "choose one or the other"
        )
    addresses = _addresses(given.get("address"))
    alternatives = _topics(topics)
    return LogCriteria(
        LogFilter(
            frozenset(addresses) if addresses else None,
            tuple(frozenset(topic) if topic else None for topic in alternatives),
        ),
        block_hash,
        from_block,
        to_block,
        max(map(len, [addresses, *alternatives])),
    )


def _block_hash(value: Any) -> bytes:
    try:
        return hash32(value)
    except ValueError as error:
        fault = str(error)
        raise ValueError(
            fault.replace("Go value of type", "Go struct field input.blockHash of type")
        ) from error


def _addresses(value: Any) -> list[str]:
    """Return addresses as `0x…`; an empty list stands for any address."""
    if value is None:
        return []
    if isinstance(value, str):
        try:
            return [_fixed(value, 20, "address")]
        except ValueError as error:
            raise ValueError(f"invalid address: {error}") from error
    if not isinstance(value, list):
        raise ValueError("invalid addresses in query")
    found = []
    for place, one in enumerate(value):
        if not isinstance(one, str):
            raise ValueError(f"non-string address at index {place}")
        try:
            found.append(_fixed(one, 20, "address"))
        except ValueError as error:
            raise ValueError(f"invalid address at index {place}: {error}") from error
    return found


def _topics(value: list[Any]) -> list[list[str]]:
    """Return the alternatives of each topic; an empty list stands for any topic."""
    if len(value) > MAX_TOPICS:
        raise ValueError("exceed max topics")
    return [_alternatives(topic) for topic in value]


def _alternatives(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [_fixed(value, 32, "topic")]
    if not isinstance(value, list):
        raise ValueError("invalid topic(s)")
    if len(value) > MAX_ALTERNATIVES:
        raise ValueError("exceed max topics")
    found = []
    for one in value:
        if one is None:
            return []  # matches any topic; geth does not read the others
        if not isinstance(one, str):
            raise ValueError("invalid topic(s)")
        found.append(_fixed(one, 32, "topic"))
    return found


def _fixed(value: str, size: int, name: str) -> str:
    """Return hexadecimal data of a fixed size in lower case.

    Raises: ValueError with the text of geth's hexutil.Decode, or with the length.
    """
    if not value:
        raise ValueError(EMPTY)
    if value[:2] not in ("0x", "0X"):
        raise ValueError(MISSING_PREFIX)
    digits = value[2:].encode("utf-8", "surrogatepass")
    try:
        data = unhexlify(digits)
    except ValueError:
        # Go reads from the beginning, and finds a bad digit before the odd end.
        is_hex = all(digit in b"0123456789abcdefABCDEF" for digit in digits)
        raise ValueError(ODD_LENGTH if is_hex else BAD_DIGIT) from None
    if len(data) != size:
        raise ValueError(
            f"hex has invalid length {len(data)} after decoding; "
            f"expected {size} for {name}"
        )
    return "0x" + data.hex()
