"""The call tree of a transaction, as lines for a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from abi.addresses import checksummed
from abi.selectors import function_name
from evm.frame_errors import REVERTED
from evm.tracers.frames import CREATIONS, CallFrame, FrameLog
from evm.tracers.revert_reason import revert_reason
from explorer.abis import Abis
from explorer.arguments import CallText, call_text, error_text
from explorer.logs import LogLine, ReceiptLog, log_line
from legible import words

MAX_CALLS = 500
"""Calls that a page shows; they make about 700 KB of HTML."""
MAX_LOGS = 500
"""Logs that a page shows."""
MAX_NESTING = 150
"""Levels of nested HTML elements; browsers stop at 512. Deeper calls follow in their
order on the last level."""
MAX_LINES = 20
"""Lines of arguments that are shown for a call. Those of the transaction are shown above."""
MAX_ERROR_LINES = 6
INDENTED = 10
"""Levels that are indented; a phone has no space for more."""


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
    call: CallText | None
    """The decoded input; None if the function is unknown."""
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


def call_lines(frames: list[CallFrame], abis: Abis) -> list[CallLine]:
    """Format calls as lines for the page.

    frames: in the order of their start. abis: has read the uploaded definitions.
    """
    nesting = [min(frame.depth, MAX_NESTING) for frame in frames]
    # A line at the same or a higher level closes a call; the end closes all.
    following = [*nesting[1:], 0]
    logs_left = MAX_LOGS
    lines = []
    for number, frame in enumerate(frames, 1):
        level, following_level = nesting[number - 1], following[number - 1]
        ends = max(0, level - following_level + 1)
        logs = [log_line(_log(log), abis) for log in frame.logs[:logs_left]]
        logs_left -= len(logs)
        lines.append(_line(number, frame, logs, "." * ends, abis))
    return lines


def keys_of(frames: Iterable[CallFrame]) -> set[bytes]:
    """Return the selectors and topics by which calls, errors and logs are looked up."""
    found: set[bytes] = set()
    for frame in frames:
        found.add(frame.input[:4])
        if frame.error is not None:
            found.add(frame.output[:4])
        found.update(log.topics[0] for log in frame.logs if log.topics)
    return found


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


def brief(address: bytes | None) -> str:
    """Return a shortened address such as `0x123456…abcd`, or "no address" for None."""
    return words.shortened(checksummed(address)) if address else "no address"


def selector(frame: CallFrame) -> str:
    """Return a call's function selector as `0x…`, "" for init code or short input."""
    return "" if frame.type in CREATIONS else words.selector(frame.input)


def function(frame: CallFrame) -> str:
    """Return the name of a call's well-known function, or else its selector."""
    text = selector(frame)
    return function_name(frame.input[:4]) or text if text else ""


def error(frame: CallFrame) -> str:
    """Return a call's error, "" if it succeeded."""
    return "" if frame.error is None else words.printable(frame.error)


def reason(frame: CallFrame, abis: Abis | None = None) -> str:
    """Return a call's revert reason: a text, or a custom error; else "".

    A custom error is its name with its first arguments, or its selector if it is unknown.
    """
    if frame.error != REVERTED or not frame.output:
        return ""
    text = revert_reason(frame.output)
    if text is not None:
        return f"“{words.printable(text)}”"
    abi = None if abis is None else abis.of(frame.to)
    found = error_text(frame.output, abi, MAX_ERROR_LINES)
    if found is not None:
        texts = [line.address or line.text for line in found.arguments.lines]
        return words.printable(f"{found.name}({', '.join(texts)})")
    own = words.selector(frame.output)
    return f"error {own}" if own else ""


def _line(
    number: int, frame: CallFrame, logs: list[LogLine], ends: str, abis: Abis
) -> CallLine:
    to = "" if frame.to is None else checksummed(frame.to)
    is_creation = frame.type in CREATIONS
    return CallLine(
        number=number,
        depth=frame.depth,
        kind=kind(frame),
        type=frame.type,
        sender=checksummed(frame.sender),
        to=to,
        to_label=brief(frame.to),
        selector=selector(frame),
        call=None
        if is_creation
        else call_text(frame.input, frame.to, abis.of, MAX_LINES),
        value=words.ether(frame.value) if frame.value else "",
        gas=words.number(frame.gas),
        gas_used=words.number(frame.gas_used),
        input=words.hexadecimal(frame.input),
        input_size=words.count(len(frame.input), "byte"),
        output=words.hexadecimal(frame.output),
        output_size=words.count(len(frame.output), "byte"),
        error=error(frame),
        reason=reason(frame, abis),
        logs=logs,
        call_count=words.count(len(frame.calls), "call") if frame.calls else "",
        is_indented=frame.depth <= INDENTED,
        ends=ends,
    )


def _log(log: FrameLog) -> ReceiptLog:
    return ReceiptLog(log.address, log.topics, log.data, log.index)
