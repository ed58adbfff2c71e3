"""Trace options: every tracer with every option that geth and this service share."""

from __future__ import annotations

import json
from typing import Any

Options = dict[str, Any]

STEPS = """{
    steps: [],
    setup: function(config) { this.steps.push(config) },
    step: function(log, db) {
        if (log.getError()) { this.steps.push(log.getError()) }
        this.steps.push([log.op.toString(), log.op.toNumber(), log.op.isPush(),
            log.getPC(), log.getGas(), log.getCost(), log.getDepth(), log.getRefund(),
            log.stack.length(), log.memory.length(),
            log.stack.length() ? log.stack.peek(0).toString(16) : "",
            log.memory.length() ? toHex(log.memory.slice(0, 4)) : "",
            toHex(log.contract.getAddress()), toHex(log.contract.getCaller()),
            log.contract.getValue().toString(), toHex(log.contract.getInput()),
            db.getBalance(log.contract.getAddress()).toString(),
            db.getNonce(log.contract.getAddress()),
            db.exists(log.contract.getCaller())])
    },
    fault: function(log) { this.steps.push([log.getError(), log.getPC()]) },
    enter: function(frame) {
        this.steps.push([frame.getType(), toHex(frame.getFrom()), toHex(frame.getTo()),
            toHex(frame.getInput()), frame.getGas(), "" + frame.getValue()])
    },
    exit: function(result) {
        this.steps.push([result.getGasUsed(), toHex(result.getOutput()),
            result.getError() || ""])
    },
    result: function(context) {
        var found = {}, fields = ["type", "gas", "gasUsed", "gasPrice", "intrinsicGas",
            "block", "txIndex", "error", "time"]
        for (var i = 0; i < fields.length; i++) {
            found[fields[i]] = context[fields[i]]
        }
        found.from = toHex(context.from)
        found.to = toHex(context.to)
        found.input = toHex(context.input)
        found.output = toHex(context.output)
        found.value = context.value.toString()
        found.blockHash = toHex(context.blockHash)
        found.txHash = toHex(context.txHash)
        return [found, this.steps]
    }
}"""
"""A JavaScript tracer that reads all data that tracers can access."""

HELPERS = """{
    step: function() {}, fault: function() {},
    result: function(context, db) {
        var sender = context.from, word = "0x" + Array(65).join("1")
        return [toHex(toAddress("12")), toHex(toWord("0x34")),
            toHex(toContract(sender, 7)),
            toHex(toContract2(sender, word, "0x00")), isPrecompiled(toAddress("0x9")),
            isPrecompiled(sender), toHex(slice([1, 2, 3, 4], 1, 3)), bigInt(12).pow(30),
            bigInt("ff", 16).toString(), db.getNonce(sender),
            db.getBalance(sender).toString(), toHex(db.getCode(context.to)),
            toHex(db.getState(context.to, toWord("0x0"))), db.exists(sender)]
    }
}"""
"""A program that calls every global function."""


def _with(tracer: str, **config: Any) -> Options:
    return {"tracer": tracer, "tracerConfig": config}


def _named(*many: Options) -> dict[str, Options]:
    return {_name(options): options for options in many}


def _name(options: Options) -> str:
    """Return a group's name: the tracer and its options."""
    words = [name for name in options if not name.startswith("tracer")]
    config = options.get("tracerConfig") or {}
    return " ".join([str(options.get("tracer", "structLog")), *words, *config])


CHEAP = _named(
    {"tracer": "callTracer"},
    _with("callTracer", onlyTopCall=True),
    _with("callTracer", withLog=True),
    _with("callTracer", onlyTopCall=True, withLog=True),
    {"tracer": "flatCallTracer"},
    _with("flatCallTracer", convertParityErrors=True),
    _with("flatCallTracer", includePrecompiles=True),
    _with("flatCallTracer", convertParityErrors=True, includePrecompiles=True),
    {"tracer": "prestateTracer"},
    _with("prestateTracer", disableCode=True),
    _with("prestateTracer", disableStorage=True),
    _with("prestateTracer", disableCode=True, disableStorage=True),
    _with("prestateTracer", includeEmpty=True),
    _with("prestateTracer", diffMode=True),
    _with("prestateTracer", diffMode=True, disableCode=True),
    _with("prestateTracer", diffMode=True, disableStorage=True),
    {"tracer": "4byteTracer"},
    {"tracer": "noopTracer"},
    _with("muxTracer", callTracer={"withLog": True}, **{"4byteTracer": None}),
)
"""Options for which this service executes nothing again."""

EXECUTED = _named(
    {},
    {"disableStack": True},
    {"enableMemory": True},
    {"disableStorage": True},
    {"enableReturnData": True, "enableMemory": True, "disableStack": True},
    {"limit": 7},
    {"tracer": "keccak256PreimageTracer"},
    {"tracer": "erc7562Tracer"},
    _with("erc7562Tracer", withLog=True, stackTopItemsSize=2),
    _with("erc7562Tracer", ignoredOpcodes=["0x60", "0x52"]),
    _with("muxTracer", erc7562Tracer={}, prestateTracer={"diffMode": True}),
    _with("muxTracer", muxTracer={"opcountTracer": {}}, flatCallTracer=None),
    {"tracer": "4byteTracerLegacy"},
    {"tracer": "bigramTracer"},
    {"tracer": "callTracerLegacy"},
    {"tracer": "evmdisTracer"},
    {"tracer": "noopTracerLegacy"},
    {"tracer": "opcountTracer"},
    {"tracer": "prestateTracerLegacy"},
    {"tracer": "trigramTracer"},
    {"tracer": "unigramTracer"},
) | {
    "JavaScript steps": {"tracer": STEPS, "tracerConfig": {"b": [1, 2.50], "a": None}},
    "JavaScript helpers": {"tracer": HELPERS},
}
"""Options for which this service executes the block again."""

SHORTENED = frozenset(
    {
        *("structLog disableStack", "structLog disableStorage", "structLog limit"),
        *("erc7562Tracer ignoredOpcodes", "erc7562Tracer withLog stackTopItemsSize"),
    }
)
"""Groups whose results differ little from those of another group."""


def _program(**functions: str) -> Options:
    """Return a JavaScript tracer, some of whose functions are replaced."""
    source = {"step": "function() {}", "fault": "function() {}", **functions}
    source.setdefault("result", "function() { return 1 }")
    members = (f"{json.dumps(name)}: {text}" for name, text in source.items() if text)
    return {"tracer": "{" + ", ".join(members) + "}"}


INVALID: list[Any] = [
    *(None, [], "callTracer", 1, True),
    *({"tracer": name} for name in ("", "callTrace", "calltracer", "{", "1", "{}")),
    *({"tracer": value} for value in (None, 1, [], {})),
    *({"limit": value} for value in ("1", 1.5, -1, 10**20, None)),
    *({name: 1} for name in ("disableStack", "disableStorage", "enableMemory")),
    *({"enableReturnData": "true"}, {"ENABLERETURNDATA": "true"}, {"unknown": 1}),
    *({"tracer": "noopTracer", "timeout": t} for t in ("", "5", "5x", "1.h", 5, None)),
    *({"tracer": "callTracer", "tracerConfig": c} for c in (None, [], "", 1, True)),
    *({"tracer": "noopTracer", "tracerConfig": c} for c in (None, [], "", 1, True)),
    *({"tracer": "muxTracer", "tracerConfig": c} for c in (None, [], "", {}, {"": {}})),
    *({"tracer": "muxTracer"}, _with("muxTracer", noTracer={})),
    *(_with("muxTracer", callTracer=[]), _with("muxTracer", muxTracer={})),
    *(_with("callTracer", onlyTopCall=value) for value in (1, "true", None)),
    *(_with("callTracer", withLog=0), _with("callTracer", unknown=0)),
    *(_with("flatCallTracer", convertParityErrors=1), _with("flatCallTracer", a=1)),
    *(_with("prestateTracer", diffMode="1"), _with("prestateTracer", includeEmpty=2)),
    _with("prestateTracer", diffMode=True, includeEmpty=True),
    *(_with("erc7562Tracer", ignoredOpcodes=v) for v in ("0x1", [1], ["1"], ["0x01"])),
    *(_with("erc7562Tracer", stackTopItemsSize=v) for v in ("1", 1.5)),
    *(_with("erc7562Tracer", withLog=1), _with("keccak256PreimageTracer", a=1)),
    *(_program(result=""), _program(step=""), _program(fault="1"), _program(exit="1")),
    *(_program(enter="function() {}"), _program(setup="function() { throw 'no' }")),
    _program(result="function() { throw 'no' }"),
    _program(result="function() { throw new Error('no') }"),
    _program(result="function() { return undefined }"),
    _program(result="function() { return this.missing.member }"),
    _program(step="function() { throw 'no' }"),
    _program(step="function(log) { log.stack.peek(2000) }"),
    _program(step="function(log) { log.memory.slice(-1, 2) }"),
    _program(step="function(log) { log.memory.slice(0, 1e9) }"),
    _program(step="function(log) { log.memory.getUint(1e9) }"),
    _program(result="function() { return toAddress(1) }"),
    _program(result="function() { return bigInt('1x') }"),
]
"""Invalid options, and valid ones that are similar."""
