"""Requests that execute calls: the chain's own transactions, and random contracts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from evm.blocks import Block
from evm.transactions import BLOB, CREATE_ADDRESS, SET_CODE, Transaction
from tests.golden.calls import Kinds, by_tag, malformed
from tests.golden.chains import Chain
from tests.golden.recording import Call
from tests.support.random_arguments import RandomArguments

GROUPS = ("calls", "random calls", "traced calls", "traced blocks")

_EXECUTING = ("eth_call", "eth_estimateGas", "eth_createAccessList")

_KINDS: Kinds = {
    "eth_call": "call block",
    "eth_estimateGas": "call block",
    "eth_createAccessList": "call block",
}
"""The kinds of parameters of each method that both sides have."""

_TRANSACTIONS_PER_BLOCK = 2
_EXECUTED_GAS = 3_000_000
"""Transactions of blocks with more gas are not executed here, because that takes long."""
_TRACED_GAS = 500_000
"""Blocks with more gas are not traced here, because their traces are long."""
_RANDOM_CALLS = 150
_SEED = 14
_TRACERS: tuple[dict[str, Any], ...] = (
    {"tracer": "callTracer", "tracerConfig": {"withLog": True}},
    {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}},
    {"tracer": "flatCallTracer"},
)


def calls_to(chain: Chain) -> Iterator[Call]:
    """Yield every request to a chain, in an order that is always the same."""
    for block, raw in zip(chain.blocks, chain.raw, strict=True):
        if block.header.gas_used <= _EXECUTED_GAS:
            yield from _transactions(block)
        if block.header.gas_used <= _TRACED_GAS:
            tracer = _TRACERS[block.header.number % len(_TRACERS)]
            params = ["0x" + raw.hex(), tracer]
            yield Call("traced blocks", "debug_traceBlock", params)
    yield from _random_calls(chain)
    if chain.is_general:
        yield from _early_calls()
        yield from by_tag(_KINDS, len(chain.blocks))
        yield from malformed(_KINDS, chain.blocks)


def _early_calls() -> Iterator[Call]:
    """Yield calls at block 0, whose fork has no fees, access lists and blobs yet."""
    to = {"to": "0x" + "12" * 20, "gas": "0x7530"}
    for given in (
        {"maxFeePerGas": "0x0"},
        {"maxPriorityFeePerGas": "0x1"},
        {"accessList": []},
        {"maxFeePerBlobGas": "0x1"},
        {"blobVersionedHashes": ["0x01" + "22" * 31]},
        {"authorizationList": []},
    ):
        for method in (*_EXECUTING, "debug_traceCall"):
            yield Call("calls", method, [{**to, **given}, "0x0"])


def _transactions(block: Block) -> Iterator[Call]:
    """Yield calls with the arguments of a block's transactions, before and after it."""
    number = block.header.number
    for transaction in block.transactions[:_TRANSACTIONS_PER_BLOCK]:
        arguments = _arguments(transaction)
        for place in (hex(number - 1), {"blockHash": "0x" + block.header.hash.hex()}):
            for method in _EXECUTING:
                yield Call("calls", method, [arguments, place])
        tracer = _TRACERS[number % len(_TRACERS)]
        params = [arguments, hex(number - 1), tracer]
        yield Call("traced calls", "debug_traceCall", params)


def _arguments(transaction: Transaction) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "from": "0x" + transaction.sender.hex(),
        "value": hex(transaction.value),
        "input": "0x" + transaction.data.hex(),
    }
    if transaction.to != CREATE_ADDRESS:
        arguments["to"] = "0x" + transaction.to.hex()
    if transaction.type == BLOB:
        hashes = ["0x" + each.hex() for each in transaction.blob_versioned_hashes]
        arguments["blobVersionedHashes"] = hashes
    if transaction.type != SET_CODE:
        arguments["gas"] = hex(transaction.gas)
    return arguments


def _random_calls(chain: Chain) -> Iterator[Call]:
    """Yield calls of random contracts, which state overrides create."""
    height = len(chain.blocks)
    choose, arguments = random.Random(_SEED), RandomArguments(_SEED, chain.fork)
    for _ in range(_RANDOM_CALLS):
        call, state = arguments.call(), arguments.state()
        # The contracts have instructions that the first forks lack.
        number = choose.randrange(height // 2, height + 1)
        block = arguments.block(number) if choose.random() < 0.3 else {}
        block.pop("beaconRoot", None)  # of simulated blocks only
        if not chain.is_general and "gas" not in call:
            continue  # its contracts call each other with all gas
        for method in _EXECUTING:
            if not chain.is_general and method == "eth_createAccessList":
                continue  # what its contracts access depends on the gas, so it may not end
            params = [call, hex(number), state, *([block] if block else [])]
            if method == "eth_createAccessList":
                params = params[:3]
            yield Call("random calls", method, params)
