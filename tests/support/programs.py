"""JavaScript tracers over single transactions, as a trace worker runs them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from nodeapi.chain.builder import ChainBuilder
from nodeapi.chain.replay import Origin, Replay
from nodeapi.chain.signers import Signer
from nodeapi.evm.blocks import Block
from nodeapi.tracers.javascript import JavaScriptTracer, tracer_source
from tests.support.geth_tracers import Case

ALICE = Signer("alice")
CONTRACT = b"\x77" * 20
OTHER = b"\x88" * 20
PRICE = 10**11
"""Wei per gas."""
SECONDS = 60.0

FORKS = (
    *("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople"),
    *("petersburg", "istanbul", "berlin", "london"),
)


@dataclass(frozen=True, slots=True)
class _Config:
    """What the execution of a block asks of a chain's config."""

    chain_id: int

    def is_dao_fork(self, number: int) -> bool:
        return False


def run_program(case: Case, tracer: str) -> Any:
    """Return what a bundled tracer, or a program, says of a recorded case."""
    # The state is that right before the transaction: no system calls come before it.
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
    codes: Mapping[bytes, str] | None = None,
    to: bytes = CONTRACT,
    data: bytes = b"",
    **options: Any,
) -> Any:
    """Return what a tracer says of a transaction.

    code, codes: hexadecimal, of the contract that is called and of others.
    options: of the transaction, as `ChainBuilder.send` takes them.
    """
    alloc: dict[str, Any] = {ALICE.address.hex(): {"balance": hex(10**24)}}
    for address, text in {CONTRACT: code, **(codes or {})}.items():
        plain = "0x" + text.replace(" ", "")
        alloc[address.hex()] = {"balance": "0x64", "code": plain}
    rules = {f"{name}Block": 0 for name in FORKS}
    chain = ChainBuilder(
        {
            "config": {"chainId": 1337, **rules},
            "difficulty": "0x20000",
            "gasLimit": hex(2**25),
            "alloc": alloc,
        }
    )
    state, fork = chain.state.copy(), chain.next_fork()
    chain.send(ALICE, to, data, gas_price=PRICE, **options)  # type: ignore[misc]
    hashes = [chain.head.hash]
    return _run(
        Origin(chain.block(), fork, chain.config, state, hashes),
        tracer,
        config,
        seconds,
    )


def _run(origin: Origin, tracer: str, config: str, seconds: float) -> Any:
    replay = Replay(origin)
    program = JavaScriptTracer(
        tracer_source(tracer), config, time.monotonic() + seconds
    )
    replay.trace(program, seconds)
    return json.loads(program.result())


@contextmanager
def cpu_time_within(seconds: float) -> Iterator[None]:
    """See that no more of the process's time is used."""
    start = time.process_time()
    yield
    assert time.process_time() - start < seconds
