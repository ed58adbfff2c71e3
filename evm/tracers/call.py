"""callTracer: the call tree as JSON, and the parser of this JSON.

Source: go-ethereum, eth/tracers/native/call.go
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from evm.frame_errors import REVERTED
from evm.tracers.frames import CREATIONS, CallFrame, FrameLog
from evm.tracers.record import FROM_AND_GAS, INPUT, TO_AND_INPUT, VALUE
from evm.tracers.revert_reason import revert_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class CallConfig:
    """The tracer's `tracerConfig`."""

    only_top_call: bool = False
    with_log: bool = False


_DEFAULT = CallConfig()


def call_json(top: CallFrame, config: CallConfig = _DEFAULT) -> str:
    """Return the tracer's result as JSON. top: the outermost call frame."""
    return _tree(top, _head(top), _tail(top), config)


def recorded_call_json(top: CallFrame) -> tuple[str, int]:
    """Return the default result with placeholders, and the complete result's length."""
    gas_used = f'"gasUsed":"{top.gas_used:#x}"'
    size = len(f'"from":"0x","gas":"{top.gas:#x}",') + 40
    if top.type in CREATIONS:
        to = "" if top.error is not None else f'"to":"{_data(top.to)}",'
        head = f"{{{_FROM_AND_GAS}{gas_used},{to}{_INPUT}"
    else:
        head = f"{{{_FROM_AND_GAS}{gas_used},{_TO_AND_INPUT}"
        size += len('"to":"0x",') + 40
    size += len('"input":"0x"') + 2 * len(top.input) + len(f'"value":"{top.value:#x}"')
    tail = f',{_VALUE},"type":"{top.type}"}}'
    text = _tree(top, head + _ending(top), tail, _DEFAULT)
    return text, len(text) + size - 3


_FROM_AND_GAS, _TO_AND_INPUT = FROM_AND_GAS.decode(), TO_AND_INPUT.decode()
_INPUT, _VALUE = INPUT.decode(), VALUE.decode()


def _tree(top: CallFrame, head: str, tail: str, config: CallConfig) -> str:
    """Return the JSON of a frame and all frames below it.

    head, tail: the beginning and the end of the frame's own JSON.
    """
    if config.only_top_call or not top.calls:
        return head + _logs(top, config, top.error is not None) + tail
    parts = [head, ',"calls":[']
    # (frame, end of its JSON, whether its logs are reverted, iterator of its calls)
    failed = top.error is not None
    waiting = [(top, tail, failed, iter(top.calls))]
    comma = ""
    while waiting:
        parent, end, is_void, calls = waiting[-1]
        frame = next(calls, None)
        if frame is None:
            waiting.pop()
            parts.append("]" + _logs(parent, config, is_void) + end)
            comma = ","
            continue
        is_void = is_void or frame.error is not None
        parts.append(comma + _head(frame))
        if frame.calls:
            parts.append(',"calls":[')
            waiting.append((frame, _tail(frame), is_void, iter(frame.calls)))
            comma = ""
        else:
            parts.append(_logs(frame, config, is_void) + _tail(frame))
            comma = ","
    return "".join(parts)


def _data(value: bytes | None) -> str:
    return "0x" if value is None else f"0x{value.hex()}"


def _head(frame: CallFrame) -> str:
    """Return the members before `calls`, the brace included."""
    has_to = frame.error is None or frame.type not in CREATIONS
    to = f',"to":"{_data(frame.to)}"' if has_to else ""
    return (
        f'{{"from":"0x{frame.sender.hex()}","gas":"{frame.gas:#x}"'
        f',"gasUsed":"{frame.gas_used:#x}"{to},"input":"0x{frame.input.hex()}"'
        f"{_ending(frame)}"
    )


def _ending(frame: CallFrame) -> str:
    """Return `output`, `error` and `revertReason`, if present."""
    output = frame.output
    if frame.error is None:
        return f',"output":"0x{output.hex()}"' if output else ""
    error = f',"error":{json.dumps(frame.error)}'
    if frame.error != REVERTED or not output:
        return error
    reason = revert_reason(output)
    if reason:
        error += f',"revertReason":{json.dumps(reason)}'
    return f',"output":"0x{output.hex()}"{error}'


def frame_members(
    frame: CallFrame, config: CallConfig, is_void: bool
) -> tuple[str, str, str, str]:
    """Return parts of a frame's JSON, for tracers that add members of their own.

    The parts are: the opening brace and the members up to `revertReason`; `logs`, with
    a comma, or ""; `value`, with a comma, or ""; the type.

    is_void: whether the frame's logs were reverted.
    """
    value = "" if frame.value is None else f',"value":"{frame.value:#x}"'
    return _head(frame), _logs(frame, config, is_void), value, frame.type


def _tail(frame: CallFrame) -> str:
    value = "" if frame.value is None else f',"value":"{frame.value:#x}"'
    return f'{value},"type":"{frame.type}"}}'


def _logs(frame: CallFrame, config: CallConfig, is_void: bool) -> str:
    """Return `logs`, or "" for a failed frame and all frames below it."""
    if not config.with_log or is_void or not frame.logs:
        return ""
    # Without calls in the result, a log's position is 0.
    logs = [
        _log(log, 0 if config.only_top_call else log.position) for log in frame.logs
    ]
    return f',"logs":[{",".join(logs)}]'


def _log(log: FrameLog, position: int) -> str:
    topics = ",".join([f'"0x{topic.hex()}"' for topic in log.topics])
    return (
        f'{{"address":"0x{log.address.hex()}","topics":[{topics}]'
        f',"data":"0x{log.data.hex()}","index":"{log.index:#x}"'
        f',"position":"{position:#x}"}}'
    )


# Reading

_STRING = r'"((?:[^"\\]|\\.)*)"'
_HEAD = re.compile(
    r'\{"from":"0x(?P<sender>\w{40})","gas":"(?P<gas>\w+)","gasUsed":"(?P<used>\w+)"'
    r'(?:,"to":"0x(?P<to>\w{40})")?,"input":"0x(?P<input>\w*)"'
    r'(?:,"output":"0x(?P<output>\w+)")?'
    rf'(?:,"error":(?P<error>{_STRING}))?(?:,"revertReason":{_STRING})?'
)
_TAIL = re.compile(r'(?:,"value":"(?P<value>\w+)")?,"type":"(?P<type>\w+)"\}')


class Unreadable(ValueError):
    """Raised when a text is not a result of `call_json`."""


def read_call(text: bytes) -> CallFrame:
    """Parse a default result into a call tree, without logs.

    It does not use a JSON parser, because parsers limit the nesting. A call tree may
    have 1024 levels, which are 2048 levels in JSON.

    Raises: Unreadable if the text is not a result of `call_json`.
    """
    tree, position = text.decode(), 0
    opened: list[CallFrame] = []
    while True:
        head = _HEAD.match(tree, position)
        if head is None:
            raise Unreadable(f"no call begins at {position}")
        frame = _frame(head, len(opened))
        if opened:
            opened[-1].add_call(frame)
        opened.append(frame)
        position = head.end()
        if tree.startswith(_CALLS, position):
            position += len(_CALLS)
            continue
        while True:
            tail = _TAIL.match(tree, position)
            if tail is None:
                raise Unreadable(f"no call ends at {position}")
            frame = opened.pop()
            frame.type = tail["type"]
            frame.value = None if tail["value"] is None else int(tail["value"], 16)
            position = tail.end() + 1
            if not opened:
                return frame
            if tree[position - 1] == ",":
                break


_CALLS = ',"calls":['


def _frame(head: re.Match[str], depth: int) -> CallFrame:
    """Return a frame without its type and value, which are at the end of the JSON."""
    error = head["error"]
    return CallFrame(
        type="",
        sender=bytes.fromhex(head["sender"]),
        to=None if head["to"] is None else bytes.fromhex(head["to"]),
        gas=int(head["gas"], 16),
        gas_used=int(head["used"], 16),
        input=bytes.fromhex(head["input"]),
        output=bytes.fromhex(head["output"] or ""),
        error=None if error is None else json.loads(error),
        value=None,
        depth=depth,
    )
