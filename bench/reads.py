"""Reads that a node answers by executing calls or by searching, beside geth.

The servers are pinned to one core and get their load in turn. The load generator has the
other core. A ratio compares requests per second of processor time, that of the worker
processes included, so that other load on the machine matters little. PostgreSQL's time is
not included. Without geth, there are no ratios.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import median

from django.core.management import call_command
from eth_typing import Address

from bench import proofs, serving_geth
from bench.endpoint import SERVICE, Target, processor_seconds, serving, split_cores
from bench.keys import new_key
from bench.loadgen import Job, Loadgen, loadgen
from bench.logs import logs
from bench.questions import http_request
from bench.rows import Row, median_ratio
from bench.serving_geth import GETH
from bench.token_chain import TOKEN, TokenChain, genesis_of, holders_of, in_folder
from evm.signatures import keccak
from keys.limiter.gcra import MAX_RATE
from nodeapi.chain.abi import call_data, mapping_slot
from samples.builder import ChainBuilder

SLUG = "bench-reads"
OURS = "portcullis"
SENDERS = 16
HOLDERS = 120_000
"""Accounts with tokens. Each request of a round names another one."""
BLOCKS = 8

ROUNDS = 5
SECONDS = 1.0
CONNECTIONS = 32
REQUESTS = 12_000
"""Requests of one round; more than are answered in it."""

STORAGE = "eth_getStorageAt"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReadCase:
    """One kind of request.

    bodies: returns the JSON-RPC requests of the next round.
    required: of the ratio to geth.
    """

    name: str
    bodies: Callable[[], Sequence[bytes]]
    required: str


def reads(folder: Path, say: Say) -> list[Row]:
    """Measure all cases."""
    chain, path = prepare(folder, say)
    server_core, generator_core = split_cores()
    with ExitStack() as stack:
        generator = stack.enter_context(loadgen(generator_core))
        ours = serving(OURS, SERVICE, cores=server_core)
        targets = {path: stack.enter_context(ours)}
        program = serving_geth.find()
        if program is None:
            say("reads: without geth, which is neither on the PATH nor named by GETH")
        else:
            rival = serving_geth.serving_geth(
                program, chain, folder / "reads-geth", server_core
            )
            targets["/"] = stack.enter_context(rival)
        rows = [
            row
            for case in [*state_cases(), *call_cases()]
            for row in measured_rows(case, targets, generator, say)
        ]
    return [*rows, *proofs.proofs(folder, say), *logs(folder, say)]


def prepare(folder: Path, say: Say) -> tuple[TokenChain, str]:
    """Build and import the chain. Return it, and a URL path with a new key."""
    chain = in_folder(folder / SLUG)
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
    chain.genesis_path.parent.mkdir(parents=True, exist_ok=True)
    chain.genesis_path.write_text(json.dumps(genesis))
    chain.chain_path.write_bytes(built.rlp())
    call_command(
        "import_chain",
        str(chain.chain_path),
        network=SLUG,
        genesis=chain.genesis_path,
    )
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
        # Other accounts than those that the method before has left in the cache.
        cold = map(partial(state_call, method), count(place * 10**6))
        yield ReadCase(f"{method}, hot", partial(list, hot), ">= 1")
        yield ReadCase(f"{method}, cold", partial(_next_requests, cold), ">= 1")


def _next_requests(bodies: Iterator[bytes]) -> list[bytes]:
    return list(islice(bodies, REQUESTS))


def state_call(method: str, number: int) -> bytes:
    """Return the request for a holder's slot of the token, or for their account."""
    address = f"0x{holder(number).hex()}"
    named = [address]
    if method == STORAGE:
        named = [f"0x{TOKEN.hex()}", f"0x{mapping_slot(holder(number), 0):064x}"]
    body = {
        **{"jsonrpc": "2.0", "id": 1, "method": method},
        "params": [*named, "latest"],
    }
    return json.dumps(body).encode()


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
    call = {"to": f"0x{TOKEN.hex()}", "data": f"0x{data.hex()}"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [call, "latest"]}
    return json.dumps(body).encode()


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one round."""

    rate: float
    """Requests per second."""
    p99_ms: float
    per_core: float
    """Requests per second of processor time."""


def measured_rows(
    case: ReadCase, targets: dict[str, Target], generator: Loadgen, say: Say
) -> list[Row]:
    """Return the rows of a case. targets: by URL path."""
    say(f"reads: {case.name}")
    found: dict[str, list[Round]] = defaultdict(list)
    for number in range(ROUNDS + 1):
        bodies = case.bodies()
        for path, target in targets.items():
            requests = [http_request(path, body) for body in bodies]
            job = Job(target.port, requests, CONNECTIONS, SECONDS, probed=1)
            measured = _round(target, generator, job)
            if number:  # the first round warms up
                found[target.name].append(measured)
    rows = []
    for name, series in found.items():
        ratio = required = None
        if name == OURS and GETH in found:
            ours, others = ([one.per_core for one in found[n]] for n in (OURS, GETH))
            ratio, required = median_ratio(ours, others), case.required
        rows += [
            Row("reads", f"{case.name}, {name}", median(values), unit, *compared)
            for unit, values, compared in (
                (
                    "requests/s per core",
                    [one.per_core for one in series],
                    (ratio, None if ratio is None else GETH, required),
                ),
                ("requests/s", [one.rate for one in series], ()),
                ("ms p99", [one.p99_ms for one in series], ()),
            )
        ]
    return rows


def _round(target: Target, generator: Loadgen, job: Job) -> Round:
    """Run a load on a server."""
    before = sum(processor_seconds(pid) for pid in _family(target.pids))
    load = generator.load(job)
    spent = sum(processor_seconds(pid) for pid in _family(target.pids)) - before
    return Round(load.rate, load.p99_ms, load.requests / spent)


def _family(pids: Sequence[int]) -> list[int]:
    """Return processes with their children, which are worker processes."""
    found = list(pids)
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found
