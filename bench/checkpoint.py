"""A network that starts at a checkpoint: time to follow, unknown values, and growth.

The upstream is our own service with the complete network, in a process of its own on this
machine. Both networks are in one database, and another process serves both, so that reads
can be compared.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from django.db import connection as django_connection
from eth_typing import Address, Hash32

from bench.keys import new_key
from bench.live import follower, wait_for_head
from bench.loadgen import Job, Loadgen, loadgen
from bench.questions import call, http_request
from bench.racers import racer
from bench.round_trips import ACCESS_LIST, WITNESS, Proxy, proxy
from bench.rows import Row
from bench.servers import SERVICE, Target, in_turn, rate_rows, serving, split_cores
from bench.sparse_heads import add_heads, heads
from bench.storage import SPREADER, TRANSACTIONS, add_block_of_load, genesis_of_load
from bench.token_chain import holders_of, write_chain
from bench.turns import Say, rounds
from bench.upstream import free_port
from evm.proof_nodes import ProofNodes
from evm.proved_state import Keys, ProvedState
from evm.signatures import keccak
from keys.limiter.gcra import MAX_RATE
from networks.models import Network
from networks.services import Checkpoint, add_upstream, replace_upstreams
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import open_network
from nodeapi.chain.trie_at import trie_at
from nodeapi.models import StorageVersion
from samples.builder import ChainBuilder

CONTRACT = f"0x{SPREADER.hex()}"
FULL, SPARSE = "bench-complete", "bench-checkpoint"
HISTORY = 256
"""Blocks before the checkpoint that are stored."""
GROUPS = 3
"""Groups of accounts and slots. Each is unknown until the block of the group."""
GROUP_HOLDERS, GROUP_BLOCKS = 1_500, 4
"""Accounts of a group, and blocks that use them before the checkpoint."""
EMPTY_BLOCKS = HISTORY - GROUPS * GROUP_BLOCKS
GROWTH_BLOCKS = 6

DELAY_SECONDS = 0.1
"""Delay of requests whose round trips are counted."""
UNKNOWN_READS, BATCH_READS = 60, 200
PROVED_SLOTS = 2_000
READ_ROUNDS, READ_SECONDS, READ_CONNECTIONS = 9, 0.4, 16
MOST_SECONDS, MOST_MS, MOST_BATCH_TRIPS, MOST_BLOCK_TRIPS = 60, 2, 3, 4
LEAST_KNOWN, LEAST_NODES = 0.95, 20_000
KILOBYTE = 1_000

_GROWTH = {
    "versions of accounts": "accountversion WHERE block_number > %(checkpoint)s",
    "versions of slots": "storageversion WHERE block_number > %(checkpoint)s",
    "proved accounts": "accountversion WHERE block_number = %(checkpoint)s",
    "proved slots": "storageversion WHERE block_number = %(checkpoint)s",
    "trie nodes": "trienode WHERE true",
}
"""What is stored of the state → the rows' table and condition."""


def checkpoint(folder: Path, say: Say) -> list[Row]:
    """Measure everything that a sparse state costs."""
    say("checkpoint: builds blocks")
    genesis, blocks = _write_chain(folder)
    trusted = Checkpoint(HISTORY, blocks[HISTORY - 1], HISTORY)
    server_core, client_core = split_cores()
    port = free_port()
    with ExitStack() as stack:
        importer = stack.enter_context(racer("bench.import_ours", folder / FULL))
        importer.run(HISTORY)
        full = stack.enter_context(serving("complete", SERVICE))
        key = new_key(may_trace=True, credits_per_second=MAX_RATE)
        node = stack.enter_context(
            proxy(f"http://127.0.0.1:{full.port}/{FULL}/v3/{key}", port)
        )
        url = f"http://127.0.0.1:{port}"
        say("checkpoint: follows")
        began = time.monotonic()
        with importer_connection() as connection:
            network_id = open_network(
                connection, SPARSE, genesis=genesis, checkpoint=trusted
            )
        network = Network.objects.get(pk=network_id)
        add_upstream(network=network, url=url)
        process = stack.enter_context(follower(SPARSE))
        seconds = wait_for_head(SPARSE, trusted.hash) - began
        case = f"from an empty network to the head, {HISTORY} blocks of history"
        rows = [_row(case, seconds, "s", f"<= {MOST_SECONDS}")]
        hashes = iter(blocks[HISTORY:])

        def import_next(count: int = 1) -> None:
            importer.run(count)
            wait_for_head(SPARSE, list(islice(hashes, count))[-1])

        rows += _blocks(node, import_next, say)
        target = stack.enter_context(serving("edge", SERVICE, cores=server_core))
        edge = f"http://127.0.0.1:{target.port}/{SPARSE}/v3/{key}"
        rows += _unknown(node, url, edge, say)
        rows += _known(stack.enter_context(loadgen(client_core)), target, key, say)
        before = _stored(network_id)
        import_next(GROWTH_BLOCKS)
        rows += _growth(before, _stored(network_id))
        socket = f"ws://127.0.0.1:{full.port}/{FULL}/ws/v3/{key}"
        replace_upstreams(network=network, urls=[socket])
        rows += heads(
            (FULL, SPARSE),
            (full.port, target.port),
            (full.pids, [process.pid, *target.pids]),
            (server_core, client_core),
            import_next,
            say,
        )
    return [*rows, _verification(say)]


def _row(case: str, value: float, unit: str, required: str | None = None) -> Row:
    return Row("checkpoint", case, value, unit, required=required)


def _write_chain(folder: Path) -> tuple[dict[str, Any], list[bytes]]:
    """Write the chain of the complete network. Return its genesis, and blocks' hashes."""
    chance = random.Random(SPARSE)
    holders = holders_of(GROUPS * GROUP_HOLDERS)
    groups = [holders[place::GROUPS] for place in range(GROUPS)]
    written = [[chance.getrandbits(256)] for _ in groups]
    genesis = genesis_of_load(holders)
    chain = ChainBuilder(genesis)
    for _ in range(EMPTY_BLOCKS):
        chain.block()
    for count in (GROUP_BLOCKS, 1):
        for group, slots in zip(groups, written, strict=True):
            for _ in range(count):
                add_block_of_load(chain, group, chance, slots)
    known = [slot for slots in written for slot in slots]
    for _ in range(GROWTH_BLOCKS):
        add_block_of_load(chain, holders, chance, known)
    add_heads(chain, holders, chance)
    write_chain(folder / FULL, genesis, chain)
    return genesis, [block.header.hash for block in chain.blocks]


# Blocks


def _blocks(node: Proxy, import_next: Callable[[], None], say: Say) -> Iterator[Row]:
    """Count the round trips of blocks whose accounts and slots are all unknown."""
    node.delay = DELAY_SECONDS
    for hint, refused, most in (
        ("an access list", None, MOST_BLOCK_TRIPS),
        ("a witness", ACCESS_LIST, MOST_BLOCK_TRIPS),
        ("a trace", WITNESS, None),
    ):
        if refused is not None:
            node.refused.add(refused)
        say(f"checkpoint: a block with {hint}")
        node.take_round_trips()
        import_next()
        yield _row(
            f"block of {TRANSACTIONS} transactions, all unknown, with {hint}",
            node.take_round_trips(),
            "round trips",
            most and f"<= {most}",
        )
    node.delay = 0


def _stored(network_id: int) -> dict[str, tuple[int, int]]:
    """Return number and bytes of the network's rows, by `_GROWTH`, without indexes."""
    found = {}
    with django_connection.cursor() as cursor:
        for name, rows in _GROWTH.items():
            cursor.execute(
                "SELECT count(*), coalesce(sum(pg_column_size(found.*)), 0) FROM ("
                f"SELECT * FROM nodeapi_{rows} AND network_id = %(network)s) AS found",
                {"checkpoint": HISTORY, "network": network_id},
            )
            count, size = cursor.fetchone()
            found[name] = count, int(size)
    return found


def _growth(
    before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]
) -> Iterator[Row]:
    """Yield what each block like mainnet's has added."""
    for name, (count, size) in after.items():
        rows = (count - before[name][0]) / GROWTH_BLOCKS
        kilobytes = (size - before[name][1]) / GROWTH_BLOCKS / KILOBYTE
        case = f"{name}, block of {TRANSACTIONS} transactions"
        yield _row(case, rows, "rows/block")
        yield _row(case, kilobytes, "kB/block")


# Reads


def _slots(slug: str) -> set[str]:
    """Return the slots of the load's contract that a network has rows of."""
    rows = StorageVersion.objects.filter(network__slug=slug, address=SPREADER)
    return {f"0x{bytes(slot).hex()}" for slot in rows.values_list("slot", flat=True)}


def _request(slot: str) -> bytes:
    """Return the request for a slot."""
    return call("eth_getStorageAt", CONTRACT, slot, "latest")


def _unknown(node: Proxy, url: str, edge: str, say: Say) -> Iterator[Row]:
    """Measure reads of slots that the sparse network does not know.

    url: of the proxy. edge: of the sparse network.
    """
    say("checkpoint: reads unknown slots")
    slots = iter(sorted(_slots(FULL) - _slots(SPARSE)))
    proofs, reads = [], []
    with httpx.Client(headers={"content-type": "application/json"}) as client:

        def send(to: str, body: bytes) -> float:
            """Return the milliseconds until the answer."""
            began = time.monotonic()
            response = client.post(to, content=body)
            seconds = time.monotonic() - began
            if b'"error"' in response.content:
                raise RuntimeError(response.text)
            return 1000 * seconds

        for slot, other in islice(zip(slots, slots, strict=False), UNKNOWN_READS):
            asked = call("eth_getProof", CONTRACT, [slot], "latest")
            proofs.append(send(url, asked))
            reads.append(send(edge, _request(other)))
        more = [read - proof for read, proof in zip(reads, proofs, strict=True)]
        yield _row("proof of a slot, by the upstream", median(proofs), "ms")
        case = "unknown slot, beyond that round trip"
        yield _row(case, median(more), "ms", f"<= {MOST_MS}")
        node.delay = DELAY_SECONDS
        names = list(islice(slots, BATCH_READS))
        one = call("eth_getStorageValues", {CONTRACT: names}, "latest")
        many = b",".join(map(_request, islice(slots, BATCH_READS)))
        for name, body in (("call", one), ("batch", b"[" + many + b"]")):
            node.take_round_trips()
            send(edge, body)
            trips, most = node.take_round_trips(), f"<= {MOST_BATCH_TRIPS}"
            case = f"{BATCH_READS} unknown slots in one {name}"
            yield _row(case, trips, "round trips", most)
        node.delay = 0


def _known(generator: Loadgen, target: Target, key: str, say: Say) -> list[Row]:
    """Compare reads of known slots with the same reads of the complete network."""
    say("checkpoint: reads known slots")
    bodies = [_request(slot) for slot in sorted(_slots(SPARSE))]
    jobs = {}
    for name, slug in (("complete network", FULL), ("sparse network", SPARSE)):
        requests = [http_request(f"/{slug}/v3/{key}", body) for body in bodies]
        job = Job(target.port, requests, READ_CONNECTIONS, READ_SECONDS)
        jobs[name] = target, job
    found = in_turn(generator, jobs, READ_ROUNDS)
    return rate_rows("checkpoint", "known slots", found, f">= {LEAST_KNOWN}")


# Proofs


def _verification(say: Say) -> Row:
    """Measure the verification of proofs of slots, from nodes to values."""
    say("checkpoint: verifies proofs")
    address = Address(SPREADER)
    slots = [int(slot, 16) for slot in sorted(_slots(FULL))[:PROVED_SLOTS]]
    with importer_connection() as connection:
        head = Network.objects.get(slug=FULL)
        assert head.head_hash is not None
        tries = trie_at(connection, head.pk, bytes(head.head_hash))
        proofs = [*tries.prove_accounts([address]), *tries.prove_slots(address, slots)]
    nodes = {node for proof in proofs for node in proof.nodes}
    root = Hash32(keccak(proofs[0].nodes[0]))
    wanted = Keys(slots={(address, slot) for slot in slots})
    rates = []
    for _ in rounds(READ_ROUNDS):
        began = time.perf_counter()
        state = ProvedState(root, ProofNodes(nodes), {})
        _, unknown = state.values(wanted)
        rates.append(len(nodes) / (time.perf_counter() - began))
        if unknown:
            raise RuntimeError(f"{len(unknown)} slots are not proved")
    case = f"verification of the proofs of {len(slots)} slots"
    return _row(case, median(rates), "nodes/s", f">= {LEAST_NODES}")
