"""JavaScript tracers for single transactions, as in a trace worker."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from evm.blocks import Block
from evm.tracers.javascript import JavaScriptTracer, tracer_source
from nodeapi.chain.replay import Origin, Replay
from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis
from samples.signers import Signer
from tests.support.geth_tracers import Case

ALICE = Signer("alice")
CONTRACT = b"\x77" * 20
OTHER = b"\x88" * 20
PRICE = 10**11
"""Wei per gas."""
SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class _Config:
    """The members of a chain config that the execution of a block reads."""

    chain_id: int

    def is_dao_fork(self, number: int) -> bool:
        return False


def run_program(case: Case, tracer: str) -> Any:
    """Return the result of a bundled tracer or a program for a recorded case."""
    # The state is that before the transaction, so that no system calls are executed.
    fork = replace(case.fork, has_history_contract=False)
    header = replace(case.header, parent_beacon_root=None)
    block = Block(header, [case.transaction], [], None)
    config: Any = _Config(case.chain_id)
    origin = Origin(block, fork, config, case.state, case.ancestor_hashes())
    return _run(origin, tracer, json.dumps(dict(case.tracer_config)), SECONDS)


def trace_call(
    tracer: str,
    code: str = "",
    *,
    config: str = "{}",
    seconds: float = SECONDS,
    **call: Any,
) -> Any:
    """Return a tracer's result for the transaction of `call_origin`."""
    return _run(call_origin(code, **call), tracer, config, seconds)


def call_origin(
    code: str = "",
    *,
    codes: Mapping[bytes, str] | None = None,
    to: bytes = CONTRACT,
    data: bytes = b"",
    fork: str = "london",
    **options: Any,
) -> Origin:
    """Return a block with one transaction.

    code, codes: hexadecimal, of the contract that is called and of others.
    fork: the newest one that the chain has. options: of the transaction, as
    `ChainBuilder.send` takes them.
    """
    alloc: dict[str, Any] = {ALICE.address.hex(): {"balance": hex(10**24)}}
    for address, text in {CONTRACT: code, **(codes or {})}.items():
        plain = "0x" + text.replace(" ", "")
        alloc[address.hex()] = {"balance": "0x64", "code": plain}
    genesis = make_genesis(chain_id=1337, first_blocks=from_genesis(fork), alloc=alloc)
    chain = ChainBuilder(genesis | {"gasLimit": hex(2**25)})
    state, rules = chain.state.copy(), chain.next_fork()
    options.setdefault("gas_price", PRICE)
    chain.send(ALICE, to, data, **options)  # type: ignore[misc]
    hashes = [chain.head.hash]
    return Origin(chain.block(), rules, chain.config, state, hashes)


def _run(origin: Origin, tracer: str, config: str, seconds: float) -> Any:
    replay = Replay(origin)
    program = JavaScriptTracer(
        tracer_source(tracer), config, time.monotonic() + seconds
    )
    replay.trace(program, seconds)
    return json.loads(program.result())


@contextmanager
def cpu_time_within(seconds: float) -> Iterator[None]:
    """Check that the `with` block uses at most this processor time."""
    start = time.process_time()
    yield
    assert time.process_time() - start < seconds
