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

from tests.golden.recording import Call, Recording

Response = dict[str, Any]
Find = Callable[..., Response]
"""Takes a method and its parameters; returns geth's response to that recorded call."""

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
    # geth answers null to these.
    names = ("eth_getRawTransactionByBlockNumberAndIndex", "eth_getHeaderByNumber")
    is_unknown = call.method in names and call.params[:1] in (["safe"], ["finalized"])
    texts = ("safe block not found", "finalized block not found")
    if _message(response) not in texts and not is_unknown:
        return response
    latest = ["latest" if p in ("safe", "finalized") else p for p in call.params]
    return find(call.method, *latest)


def _unknown_block(call: Call, response: Response, find: Find) -> Response:
    found = _PRINTED_BLOCK.fullmatch(_message(response))
    return response if found is None else _error(-32000, f"block {found[1]} not found")


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


def _unchanged(call: Call, response: Response, find: Find) -> Response:
    def without(node: Any) -> Any:
        if not isinstance(node, dict) or not {"pre", "post"} <= node.keys():
            return node
        unchanged = {
            account
            for account, found in node["post"].items()
            if found == {"codeHash": _ZERO_HASH}
        }
        return {
            side: {name: of for name, of in accounts.items() if name not in unchanged}
            for side, accounts in node.items()
        }

    is_diff = "diffMode" in json.dumps(_options(call).get("tracerConfig"))
    return _edit(response, without) if is_diff else response


DIFFERENCES = [
    Difference("safe and finalized are the head without a forkchoice", _tags),
    Difference("an unknown block is named by its hash alone", _unknown_block),
    Difference("the struct logger's limit counts entries", _limit),
    Difference("unchanged accounts are absent from differences of state", _unchanged),
]

MASKS = {
    "places in a program": re.compile(r" at (?:\w+ )?\(?(?:<eval>|bigInt):[\d:()]+"),
    "texts of syntax errors": re.compile(r"SyntaxError: .*"),
    "texts of type errors": re.compile(r"(?<=TypeError: )[^']*'.*"),
}
"""Patterns of error texts that differ between goja and QuickJS."""


WRAPPED_SECONDS = 1000
"""Timestamps below are those of simulated blocks after one with the last timestamp.
These blocks are before Amsterdam, where geth counts slots nevertheless if their parents
are not."""


def masked(response: Response) -> Response:
    """Return a response without the texts that `MASKS` names, and without wrapped slots."""

    def mask(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        if "parentHash" in node and int(node["timestamp"], 16) < WRAPPED_SECONDS:
            # Its transactions and logs have the hash, too.
            node = json.loads(json.dumps(node).replace(node["hash"], "0x"))
            node = {**node, "slotNumber": None, "size": None}
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
    place = 2 if call.method == "debug_traceCall" else 1
    has_options = call.method.startswith("debug_trace") and len(call.params) > place
    found = call.params[place] if has_options else {}
    return found if isinstance(found, dict) else {}


def _tracer(call: Call) -> Any:
    return _options(call).get("tracer")


def _message(response: Response) -> str:
    error: dict[str, str] = response.get("error", {})
    return error.get("message", "")


def _error(code: int, message: str) -> Response:
    return {"error": {"code": code, "message": message}}
