"""Reads that a node answers by executing calls or by searching, compared with geth."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path

from eth_typing import Address

from abi.encoding import call_data, mapping_slot
from bench import proofs
from bench.keys import new_key
from bench.loadgen import loadgen
from bench.logs import logs
from bench.per_core import ReadCase, beside_geth, measured_rows
from bench.questions import call
from bench.rows import Row
from bench.servers import split_cores
from bench.token_chain import (
    TOKEN,
    TokenChain,
    genesis_of,
    holders_of,
    import_chain,
    write_chain,
)
from bench.turns import Say
from evm.signatures import keccak
from keys.limiter.gcra import MAX_RATE
from samples.builder import ChainBuilder

SLUG = "bench-reads"
SENDERS = 16
HOLDERS = 120_000
"""Accounts with tokens. Each request of a round names another one."""
BLOCKS = 8

REQUESTS = 12_000
"""Requests of one round, more than can be answered in it."""

STORAGE = "eth_getStorageAt"


def reads(folder: Path, say: Say) -> list[Row]:
    """Measure all cases."""
    chain, path = prepare(folder, say)
    _, generator_core = split_cores()
    with (
        loadgen(generator_core) as generator,
        beside_geth(chain, path, folder / "reads-geth", say) as targets,
    ):
        rows = [
            row
            for case in [*state_cases(), *call_cases()]
            for row in measured_rows(case, targets, generator, say)
        ]
    return [*rows, *proofs.proofs(folder, say), *logs(folder, say)]


def prepare(folder: Path, say: Say) -> tuple[TokenChain, str]:
    """Build and import the chain. Return it, and a URL path with a new key."""
    say("reads: builds and imports its chain")
    signers = holders_of(SENDERS)
    genesis = genesis_of(signers)
    storage = genesis["alloc"][f"0x{TOKEN.hex()}"]["storage"]
    for number in range(HOLDERS):
        slot = mapping_slot(holder(number), 0)
        storage[f"0x{slot:064x}"] = f"0x{number + 1:064x}"
    built = ChainBuilder(genesis)
    for _ in range(BLOCKS):
        built.send(signers[0], signers[1].address, value=1)
        built.block()
    chain = write_chain(folder / SLUG, genesis, built)
    import_chain(chain, SLUG)
    return chain, f"/{SLUG}/v3/{new_key(credits_per_second=MAX_RATE)}"


def holder(number: int) -> Address:
    """Return the address of a holder of tokens."""
    return Address(keccak(b"holder %d" % number)[:20])


def state_cases() -> Iterator[ReadCase]:
    """Yield the reads of slots, balances, code and nonces, hot and cold.

    Hot requests are for one account, cold ones for another account each time.
    """
    methods = (STORAGE, "eth_getBalance", "eth_getCode", "eth_getTransactionCount")
    for place, method in enumerate(methods):
        hot = [state_call(method, 0)]
        # Other accounts than those of the previous method, which are cached.
        cold = map(partial(state_call, method), count(place * 10**6))
        yield ReadCase(f"{method}, hot", partial(list, hot), ">= 1")
        yield ReadCase(f"{method}, cold", partial(_next_requests, cold), ">= 1")


def _next_requests(bodies: Iterator[bytes]) -> list[bytes]:
    return list(islice(bodies, REQUESTS))


def state_call(method: str, number: int) -> bytes:
    """Return a JSON-RPC request for a holder's slot of the token, or for their account.

    number: the holder's.
    """
    address = f"0x{holder(number).hex()}"
    named = [address]
    if method == STORAGE:
        named = [f"0x{TOKEN.hex()}", f"0x{mapping_slot(holder(number), 0):064x}"]
    return call(method, *named, "latest")


def call_cases() -> Iterator[ReadCase]:
    """Yield the cases of eth_call."""
    same = [balance_call(0)]
    yield ReadCase("eth_call balanceOf, the same holder", lambda: same, ">= 3")
    numbers = count()

    def different() -> list[bytes]:
        return [balance_call(next(numbers) % HOLDERS) for _ in range(REQUESTS)]

    yield ReadCase("eth_call balanceOf, different holders", different, ">= 0.3")


def balance_call(number: int) -> bytes:
    """Return the request for a holder's balance."""
    data = call_data("balanceOf(address)", holder(number))
    message = {"to": f"0x{TOKEN.hex()}", "data": f"0x{data.hex()}"}
    return call("eth_call", message, "latest")
