"""The call tree of a transaction, as lines for a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evm.tracers.frames import CREATIONS, REVERTED, CallFrame, FrameLog
from evm.tracers.revert_reason import revert_reason
from nodeapi.explore import words

MAX_CALLS = 500
"""Calls that a page shows; they make about 700 KB of HTML."""
MAX_LOGS = 500
"""Logs that a page shows."""
MAX_NESTING = 150
"""Levels of nested HTML elements; browsers stop at 512. Deeper calls follow in their
order on the last level."""
INDENTED = 10
"""Levels that are indented; a phone has no space for more."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A log, formatted as text."""

    index: str
    address: str
    topics: list[str]
    data: str
    size: str


@dataclass(frozen=True, slots=True)
class CallLine:
    """A call, formatted as text. `number` counts from 1, in the order of start."""

    number: int
    depth: int
    kind: str
    """The CSS class of its bar and badge: `call`, `delegate`, `static`, …"""
    type: str
    sender: str
    to: str
    to_label: str
    selector: str
    value: str
    """Empty if no ether is sent."""
    gas: str
    gas_used: str
    input: str
    input_size: str
    output: str
    output_size: str
    error: str
    """Empty if the call succeeded."""
    reason: str
    """The decoded revert reason; empty without one."""
    logs: list[LogLine]
    call_count: str
    is_indented: bool
    ends: str
    """One character for each call that ends after this line; the template closes an
    HTML element for each."""


def in_order(top: CallFrame) -> Iterator[CallFrame]:
    """Yield a call and all calls within it, in the order of their start."""
    waiting = [top]
    while waiting:
        frame = waiting.pop()
        yield frame
        waiting.extend(reversed(frame.calls))


def call_lines(frames: list[CallFrame]) -> list[CallLine]:
    """Format calls as lines for the page. frames: in the order of their start."""
    nesting = [min(frame.depth, MAX_NESTING) for frame in frames]
    # A line at the same or a higher level closes a call; the end closes all.
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
    """Return the CSS class of a call."""
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
    """Return a call's function selector as `0x…`, "" for init code or short input."""
    return "" if frame.type in CREATIONS else words.selector(frame.input)


def error(frame: CallFrame) -> str:
    """Return a call's error, "" if it succeeded."""
    return "" if frame.error is None else words.printable(frame.error)


def reason(frame: CallFrame) -> str:
    """Return a call's revert reason: a text or a custom error's selector, else ""."""
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
