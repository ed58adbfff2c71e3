"""A transaction's calls as the lines of a tree that can be folded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nodeapi.explore import words
from nodeapi.tracers.frames import CREATIONS, REVERTED, CallFrame, FrameLog
from nodeapi.tracers.revert_reason import revert_reason

MAX_CALLS = 500
"""Calls that a page shows: some 700 KB of HTML."""
MAX_LOGS = 500
"""Logs that a page shows."""
MAX_NESTING = 150
"""Levels that lie within each other in the HTML; browsers give up at 512. Deeper calls
follow in their order, on the last level."""
INDENTED = 10
"""Levels that are indented; a phone has no room for more."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A log, in words."""

    index: str
    address: str
    topics: list[str]
    data: str
    size: str


@dataclass(frozen=True, slots=True)
class CallLine:
    """A call, in words. `number` counts from 1, in the order in which calls began."""

    number: int
    depth: int
    kind: str
    """What kind of bar and badge it has: `call`, `delegate`, `static`, …"""
    type: str
    sender: str
    to: str
    to_label: str
    selector: str
    value: str
    """Empty where nothing is paid."""
    gas: str
    gas_used: str
    input: str
    input_size: str
    output: str
    output_size: str
    error: str
    """Empty when it went well."""
    reason: str
    """What a revert says, decoded; empty when it says nothing that can be read."""
    logs: list[LogLine]
    call_count: str
    is_indented: bool
    ends: str
    """As many characters as there are calls that end behind this one."""


def in_order(top: CallFrame) -> Iterator[CallFrame]:
    """Yield the calls in the order in which they began."""
    waiting = [top]
    while waiting:
        frame = waiting.pop()
        yield frame
        waiting.extend(reversed(frame.calls))


def call_lines(frames: list[CallFrame]) -> list[CallLine]:
    """Return the lines of calls, given in the order in which they began."""
    nesting = [min(frame.depth, MAX_NESTING) for frame in frames]
    # What follows at its own level or above it closes a call; the end closes all.
    following = [*nesting[1:], 0]
    logs_left = MAX_LOGS
    lines = []
    for number, frame in enumerate(frames, 1):
        level, following_level = nesting[number - 1], following[number - 1]
        ends = max(0, level - following_level + 1)
        logs = [_log_line(log) for log in frame.logs[:logs_left]]
        logs_left -= len(logs)
        lines.append(_line(number, frame, logs, "." * ends))
    return lines


def kind(frame: CallFrame) -> str:
    """Return the word by which pages colour a call."""
    if frame.error is not None:
        return "failed"
    if frame.type in CREATIONS:
        return "create"
    return {
        "CALLCODE": "delegate",
        "DELEGATECALL": "delegate",
        "STATICCALL": "static",
        "SELFDESTRUCT": "destroy",
    }.get(frame.type, "call")


def selector(frame: CallFrame) -> str:
    """Return the four bytes that name a called function; init code names none."""
    return "" if frame.type in CREATIONS else words.selector(frame.input)


def error(frame: CallFrame) -> str:
    """Return why a call failed; empty when it did not."""
    return "" if frame.error is None else words.printable(frame.error)


def reason(frame: CallFrame) -> str:
    """Return what a revert says: a text, or the four bytes of an error of its own."""
    if frame.error != REVERTED or not frame.output:
        return ""
    text = revert_reason(frame.output)
    if text is not None:
        return f"“{words.printable(text)}”"
    own = words.selector(frame.output)
    return f"error {own}" if own else ""


def _line(number: int, frame: CallFrame, logs: list[LogLine], ends: str) -> CallLine:
    to = "–" if frame.to is None else "0x" + frame.to.hex()
    return CallLine(
        number=number,
        depth=frame.depth,
        kind=kind(frame),
        type=frame.type,
        sender="0x" + frame.sender.hex(),
        to=to,
        to_label=words.brief(frame.to),
        selector=selector(frame),
        value=words.ether(frame.value) if frame.value else "",
        gas=words.number(frame.gas),
        gas_used=words.number(frame.gas_used),
        input=words.hexadecimal(frame.input),
        input_size=words.count(len(frame.input), "byte"),
        output=words.hexadecimal(frame.output),
        output_size=words.count(len(frame.output), "byte"),
        error=error(frame),
        reason=reason(frame),
        logs=logs,
        call_count=words.count(len(frame.calls), "call") if frame.calls else "",
        is_indented=frame.depth <= INDENTED,
        ends=ends,
    )


def _log_line(log: FrameLog) -> LogLine:
    return LogLine(
        index=words.number(log.index),
        address="0x" + log.address.hex(),
        topics=["0x" + topic.hex() for topic in log.topics],
        data=words.hexadecimal(log.data),
        size=words.count(len(log.data), "byte"),
    )
