"""Where this service's responses differ from geth's on purpose.

`DIFFERENCES` makes this service's response from geth's. `MASKS` removes texts from both
sides that depend on the JavaScript engine. Apart from both, the networks are set up to
leave `totalDifficulty` out of blocks, as geth does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evm.signatures import keccak
from tests.golden.recording import Call, Recording

Response = dict[str, Any]
Find = Callable[..., Response]
"""Takes a method and its parameters; returns geth's response to that recorded call."""

_NO_CODE_HASH = "0x" + keccak(b"").hex()
_TOO_LONG = "max code size exceeded: code size 24577 limit 24576"
_UNPAID = ("0x9", "0x8")
"""A block of the chain `tracing`, and its parent: code in the block is too long, and too
long to be paid for."""
_ZERO_HASH = "0x" + "00" * 32
_PRINTED_BLOCK = re.compile(
    r"block \{<nil> (0x[0-9a-f]{64}) (?:true|false)\} not found"
)
"""Go's form of a block parameter's fields."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference on purpose.

    change: returns this service's response to a call, made from geth's; geth's own if
      the difference does not concern the call.
    """

    reason: str
    change: Callable[[Call, Response, Find], Response]


def expected(
    call: Call, response: Response, recording: Recording
) -> tuple[Response, list[Difference]]:
    """Return this service's response to a call, and the differences that were used."""
    used = []
    for difference in DIFFERENCES:
        changed = difference.change(call, response, recording.find)
        if changed != response:
            response = changed
            used.append(difference)
    return response, used


def _tags(call: Call, response: Response, find: Find) -> Response:
    is_raw = call.method.startswith("eth_getRawTransactionByBlockNumber")
    is_unknown = is_raw and call.params[:1] in (["safe"], ["finalized"])
    texts = ("safe block not found", "finalized block not found")
    if _message(response) not in texts and not is_unknown:
        return response
    latest = ["latest" if p in ("safe", "finalized") else p for p in call.params]
    return find(call.method, *latest)


def _default_block(call: Call, response: Response, find: Find) -> Response:
    place = {
        "eth_getStorageAt": 2,
        "eth_getStorageValues": 1,
        "eth_getProof": 2,
        "eth_getBalance": 1,
        "eth_getCode": 1,
        "eth_getTransactionCount": 1,
        "eth_getBlockReceipts": 0,
        "debug_getRawBlock": 0,
        "debug_getRawHeader": 0,
        "debug_getRawReceipts": 0,
    }.get(call.method)
    if place is None:
        return response
    may_be_absent = place > 0
    if call.params[place:] == [None] or (may_be_absent and len(call.params) == place):
        return find(call.method, *call.params[:place], "latest")
    return response


def _no_block(call: Call, response: Response, find: Find) -> Response:
    if _message(response) != "invalid arguments; neither block nor hash specified":
        return response
    text = "must specify either BlockHash or BlockNumber"
    place = len(call.params) - 1
    return _error(-32602, f"invalid argument {place}: {text}")


def _unknown_block(call: Call, response: Response, find: Find) -> Response:
    found = _PRINTED_BLOCK.fullmatch(_message(response))
    return response if found is None else _error(-32000, f"block {found[1]} not found")


def _prefixes(call: Call, response: Response, find: Find) -> Response:
    def prefixed(node: Any) -> Any:
        if not isinstance(node, dict) or "pc" not in node:
            return node
        node = dict(node)
        if "memory" in node:
            node["memory"] = ["0x" + word for word in node["memory"]]
        if "storage" in node:
            storage = node["storage"].items()
            node["storage"] = {f"0x{slot}": f"0x{value}" for slot, value in storage}
        return node

    return _edit(response, prefixed) if _tracer(call) is None else response


def _limit(call: Call, response: Response, find: Find) -> Response:
    limit = _options(call).get("limit")
    if _tracer(call) is not None or not isinstance(limit, int) or limit <= 0:
        return response
    if "error" in response:
        return response

    def cut(node: Any) -> Any:
        if not isinstance(node, dict) or "structLogs" not in node:
            return node
        return {**node, "structLogs": node["structLogs"][:limit]}

    return _edit(find(call.method, call.params[0], {}), cut)


def _cleared_code(call: Call, response: Response, find: Find) -> Response:
    def hashed(node: Any) -> Any:
        if not isinstance(node, dict) or node.get("codeHash") != _ZERO_HASH:
            return node
        code = {} if "disableCode" in config else {"code": "0x"}
        return {**node, **code, "codeHash": _NO_CODE_HASH}

    config = json.dumps(_options(call).get("tracerConfig"))
    is_diff = "diffMode" in config
    return _edit(response, hashed) if is_diff else response


def _unpaid_code(call: Call, response: Response, find: Find) -> Response:
    place = 1 if call.method == "debug_traceCall" else 0
    is_unpaid = call.params[place : place + 1] == [_UNPAID[place]]
    if not is_unpaid or _TOO_LONG not in (text := json.dumps(response)):
        return response
    is_parity = "convertParityErrors" in json.dumps(_options(call))
    ours = "Out of gas" if is_parity else "contract creation code storage out of gas"

    def reported(node: Any) -> Any:
        if isinstance(node, dict) and node.get("error") == ours and "outOfGas" in node:
            return {**node, "outOfGas": True}
        return node

    changed: Response = _edit(json.loads(text.replace(_TOO_LONG, ours)), reported)
    return changed


def _fee_cap(call: Call, response: Response, find: Find) -> Response:
    text = _message(response)
    is_low = "max fee per gas less than block base fee" in text
    if call.method != "eth_simulateV1" or not is_low:
        return response
    return _error(-38012, text)


DIFFERENCES = [
    Difference("safe and finalized are the head without a forkchoice", _tags),
    Difference(
        "a missing block parameter means latest, as in geth since June 2026",
        _default_block,
    ),
    Difference("an empty block parameter is an invalid argument", _no_block),
    Difference("an unknown block is named by its hash alone", _unknown_block),
    Difference("the struct logger's limit counts entries", _limit),
    Difference(
        "the struct logger writes 0x before words, as in geth since March 2026",
        _prefixes,
    ),
    Difference(
        "cleared code is 0x and has the hash of no code, as in geth since April 2026",
        _cleared_code,
    ),
    Difference(
        "code that can't be paid for is reported before its excessive length, as in geth"
        " after 1.17.2",
        _unpaid_code,
    ),
    Difference(
        "a fee cap below the base fee has a code of its own, as in geth after 1.17.2",
        _fee_cap,
    ),
]

MASKS = {
    "places in a program": re.compile(r" at (?:\w+ )?\(?(?:<eval>|bigInt):[\d:()]+"),
    "texts of syntax errors": re.compile(r"SyntaxError: .*"),
    "texts of type errors": re.compile(r"(?<=TypeError: )[^']*'.*"),
}
"""Patterns of error texts that differ between goja and QuickJS."""


def masked(response: Response) -> Response:
    """Return a response without the texts that `MASKS` names."""

    def mask(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        names = [
            name for name in ("error", "message") if isinstance(node.get(name), str)
        ]
        for name in names:
            for pattern in MASKS.values():
                node = {**node, name: pattern.sub("", node[name])}
        return node

    return _edit(response, mask)


def _edit(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return a JSON value with each object replaced by what `change` returns for it."""
    if isinstance(node, dict):
        return change({name: _edit(member, change) for name, member in node.items()})
    if isinstance(node, list):
        return [
            _edit(member, change) if isinstance(member, dict | list) else member
            for member in node
        ]
    return node


def _options(call: Call) -> dict[str, Any]:
    """Return the trace options of a call, empty if it has none."""
    found = (
        call.params[1]
        if call.method.startswith("debug_trace") and len(call.params) > 1
        else {}
    )
    return found if isinstance(found, dict) else {}


def _tracer(call: Call) -> Any:
    return _options(call).get("tracer")


def _message(response: Response) -> str:
    error: dict[str, str] = response.get("error", {})
    return error.get("message", "")


def _error(code: int, message: str) -> Response:
    return {"error": {"code": code, "message": message}}
