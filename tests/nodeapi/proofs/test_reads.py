"""Reads of a sparse network: proved by its upstream, and equal to those of a complete one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection
from eth_typing import Address

from evm.proved_state import Keys
from jsonrpc.errors import ServiceUnavailable
from networks.models import Network
from nodeapi.methods.context import CREDITS_PER_VALUE
from nodeapi.node import database_conninfo
from nodeapi.proofs import allowance, reads
from tests.nodeapi.proofs.pair import (
    CHECKPOINT,
    FULL,
    SPARSE,
    Pair,
    read,
    running_pair,
)
from tests.support import sample
from tests.support.upstream_server import hang_up, hold, status
from tests.support.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

HEAD = sample.head()


@pytest.fixture
def pair() -> Iterator[Pair]:
    with running_pair() as running:
        yield running


def places() -> tuple[list[str], list[tuple[str, int]]]:
    """Return all accounts and slots of the complete network, and some that do not exist."""
    with connection.cursor() as cursor:
        found = []
        for columns, table in (
            ("address", "account"),
            ("address, slot", "storage"),
        ):
            cursor.execute(
                f"SELECT DISTINCT {columns} FROM nodeapi_{table}version v"
                " JOIN networks_network n ON n.id = network_id WHERE n.slug = %s",
                [FULL],
            )
            found.append(cursor.fetchall())
    accounts = [f"0x{bytes(address).hex()}" for (address,) in found[0]]
    slots = [
        (f"0x{bytes(address).hex()}", int.from_bytes(bytes(slot)))
        for address, slot in found[1]
    ]
    accounts += [f"0x{number:040x}" for number in range(2**90, 2**90 + 20)]
    slots += [(address, 2**200 + 7) for address in accounts[::5]]
    return accounts, slots


def block_names(pair: Pair, chosen: random.Random) -> list[Any]:
    """Return parameters for blocks since the checkpoint."""
    numbers = [CHECKPOINT, HEAD, *chosen.sample(range(CHECKPOINT, HEAD), 3)]
    calls = [("eth_getBlockByNumber", hex(number), False) for number in numbers]
    hashes = [block["hash"] for block in pair.ask(FULL, *calls)]
    return [
        *map(hex, numbers),
        *hashes,
        *({"blockHash": each, "requireCanonical": True} for each in hashes),
        "latest",
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_reads_equal_those_of_a_complete_network(pair: Pair, seed: int) -> None:
    chosen = random.Random(seed)
    accounts, slots = places()
    blocks = block_names(pair, chosen)
    methods = (
        *("eth_getBalance", "eth_getCode", "eth_getTransactionCount"),
        *("eth_getAccount", "eth_getAccountInfo"),
    )
    for _ in range(4):
        calls: list[tuple[Any, ...]] = [
            (chosen.choice(methods), chosen.choice(accounts), chosen.choice(blocks))
            for _ in range(60)
        ]
        for _ in range(60):
            address, slot = chosen.choice(slots)
            calls.append(
                ("eth_getStorageAt", address, hex(slot), chosen.choice(blocks))
            )
        many = chosen.sample(slots, 20)
        positions: dict[str, list[str]] = {}
        for address, slot in many:
            positions.setdefault(address, []).append(hex(slot))
        calls.append(("eth_getStorageValues", positions, chosen.choice(blocks)))
        pair.agree(*calls)
    # Everything that was asked for is known now, for all blocks.
    asked = len(pair.upstream.server.calls)
    assert asked
    pair.agree(*calls)
    assert len(pair.upstream.server.calls) == asked
    fetched = pair.upstream.keys()
    assert len(fetched) == len(set(fetched))


def unknown_contracts(pair: Pair) -> list[str]:
    """Return accounts with code that the sparse network does not know."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT address FROM nodeapi_accountversion v"
            " JOIN networks_network n ON n.id = network_id"
            " WHERE n.slug = %s AND code_hash IS NOT NULL AND NOT EXISTS ("
            "  SELECT FROM nodeapi_accountversion s JOIN networks_network o"
            "  ON o.id = s.network_id WHERE o.slug = %s AND s.address = v.address)",
            [FULL, SPARSE],
        )
        return [f"0x{bytes(address).hex()}" for (address,) in cursor]


def unknown_slots(pair: Pair) -> list[tuple[str, int]]:
    """Return slots with a value that the sparse network does not know."""
    _, slots = places()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT address, slot FROM nodeapi_storageversion v"
            " JOIN networks_network n ON n.id = network_id WHERE n.slug = %s",
            [SPARSE],
        )
        known = {
            (f"0x{bytes(address).hex()}", int.from_bytes(bytes(slot)))
            for address, slot in cursor
        }
    return [each for each in slots if each not in known]


def test_readers_of_one_unknown_slot_share_a_request(pair: Pair) -> None:
    address, slot = unknown_slots(pair)[0]
    server, service = pair.upstream.server, pair.running.service
    assert service.values is not None
    first, second = pair.ask_twice("eth_getStorageAt", address, hex(slot), "latest")
    assert first == second
    assert len(server.calls) <= 2  # with the account, of which nothing was known
    assert pair.one(FULL, "eth_getStorageAt", address, hex(slot), "latest")


def test_a_batch_of_unknown_slots_takes_few_round_trips(pair: Pair) -> None:
    slots = unknown_slots(pair)
    calls = [("eth_getStorageAt", address, hex(slot)) for address, slot in slots[:90]]
    pair.agree(*calls)
    # Most of them are sent at the same time.
    assert len(pair.upstream.server.requests) <= reads.BATCHES + 1


def test_a_proved_value_answers_before_it_is_stored(pair: Pair) -> None:
    address, slot = unknown_slots(pair)[0]
    asked = {"jsonrpc": "2.0", "id": 1, "method": "eth_getStorageAt"}
    at_head = asked | {"params": [address, hex(slot), "latest"]}
    before = asked | {"params": [address, hex(slot), hex(HEAD - 1)]}

    async def ask(writer: psycopg.Connection[Any]) -> Any:
        found = await pair.start(SPARSE, at_head)
        older = asyncio.ensure_future(_awaited(pair.start(SPARSE, before)))
        for _ in range(5):
            await pair.start(SPARSE, at_head)
        assert not older.done()
        writer.rollback()
        return read(found), read(await older)

    with psycopg.connect(database_conninfo()) as writer:
        writer.execute("LOCK TABLE nodeapi_storageversion IN EXCLUSIVE MODE")
        [found], [older] = pair.running.ask(ask, writer)
    assert pair.upstream.server.count("eth_getProof") <= 2
    for answer, block in ((found, "latest"), (older, hex(HEAD - 1))):
        assert answer == pair.one(FULL, "eth_getStorageAt", address, hex(slot), block)


async def _awaited(answer: Any) -> Any:
    return await answer


def altered(text: str) -> str:
    """Return hexadecimal digits of which one is another one."""
    place = len(text) // 2
    digit = "1" if text[place] == "0" else "0"
    return text[:place] + digit + text[place + 1 :]


def alter_nodes(found: dict[str, Any]) -> dict[str, Any]:
    nodes = [altered(node) for node in found["accountProof"]]
    return found | {"accountProof": nodes}


def alter_slots(found: dict[str, Any]) -> dict[str, Any]:
    for one in found["storageProof"]:
        one["proof"] = [altered(node) for node in one["proof"]]
    return found


def claim_absence(found: dict[str, Any]) -> dict[str, Any]:
    """Claim that the account is empty, and prove nothing."""
    return found | {
        **{"balance": "0x0", "nonce": "0x0", "accountProof": []},
        "storageProof": [
            {"key": one["key"], "value": "0x0", "proof": []}
            for one in found["storageProof"]
        ],
    }


@pytest.mark.parametrize("lie", [alter_nodes, alter_slots, claim_absence, "code"])
def test_a_lying_upstream_gives_no_answer(pair: Pair, lie: Any) -> None:
    address, slot = unknown_slots(pair)[0]
    calls: list[tuple[Any, ...]] = [("eth_getStorageAt", address, hex(slot))]
    server, honest = pair.upstream.server, pair.upstream.honest
    other = unknown_contracts(pair)[0]
    if lie == "code":
        calls = [("eth_getCode", other), ("eth_getBalance", other)]
        server.methods["eth_getCode"] = lambda *_: "0x6000"
    else:
        proof = honest["eth_getProof"]
        server.methods["eth_getProof"] = lambda *params: lie(proof(*params))
    if lie is alter_nodes:
        calls.append(("eth_getBalance", other))
    for error in pair.ask(SPARSE, *calls):
        assert error["code"] == 4444
        assert error["message"] == "pruned history unavailable"
        assert error["data"]["reason"] == "no_proof"
    server.methods |= honest
    pair.agree(*calls)


def test_an_upstream_that_is_down_or_has_pruned_the_state(pair: Pair) -> None:
    (address, slot), other = unknown_slots(pair)[0], unknown_contracts(pair)[0]
    calls = ("eth_getStorageAt", address, hex(slot)), ("eth_getBalance", other)
    server = pair.upstream.server
    for fault in (hang_up, status(503)):
        server.fault = fault
        for error in pair.ask(SPARSE, *calls):
            assert (error["code"], error["data"]["reason"]) == (4444, "no_proof")
    server.fault = None
    pair.upstream.lowest = HEAD + 1
    for error in pair.ask(SPARSE, *calls):
        assert (error["code"], error["data"]["reason"]) == (4444, "no_proof")
    pair.upstream.lowest = 0
    pair.agree(*calls)


def test_an_upstream_that_lags_behind_proves_against_an_older_block(
    pair: Pair,
) -> None:
    address, slot = unknown_slots(pair)[0]
    pair.upstream.highest = HEAD - 3
    pair.agree(("eth_getStorageAt", address, hex(slot)), ("eth_getCode", address))


def test_a_lost_value_is_not_replaced_by_a_later_one(pair: Pair) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM nodeapi_accountversion v USING networks_network n"
            " WHERE n.slug = %s AND v.network_id = n.id AND block_number = %s AND EXISTS ("
            "SELECT FROM nodeapi_accountversion later WHERE later.address = v.address"
            " AND later.network_id = n.id AND later.block_number > %s + 1)"
            " AND NOT EXISTS ("
            "SELECT FROM nodeapi_accountversion next WHERE next.address = v.address"
            " AND next.network_id = n.id AND next.block_number = %s + 1)"
            " RETURNING address",
            [SPARSE, *[CHECKPOINT] * 3],
        )
        address = f"0x{bytes(cursor.fetchall()[0][0]).hex()}"
    for number in (CHECKPOINT, CHECKPOINT + 1):
        error = pair.one(SPARSE, "eth_getBalance", address, hex(number))
        assert (error["code"], error["data"]["reason"]) == (4444, "no_proof")
    assert len(pair.upstream.server.requests) < 10
    pair.agree(("eth_getBalance", address, "latest"))


def test_unknown_values_are_charged_once(pair: Pair) -> None:
    address, slot = unknown_slots(pair)[0]
    call = "eth_getStorageAt", address, hex(slot)
    pair.one(SPARSE, *call)
    first = pair.context.spent
    pair.one(SPARSE, *call)
    assert pair.context.spent == 1
    assert first - 1 in (CREDITS_PER_VALUE, 2 * CREDITS_PER_VALUE)


def test_a_scan_of_unknown_slots_is_bounded_and_delays_nobody(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "MAX_KEYS", 40)
    monkeypatch.setattr(reads, "BATCH_KEYS", 10)
    monkeypatch.setattr(reads, "KEYS_AT_ONCE", 20)
    monkeypatch.setattr(reads, "KEYS_PER_SECOND", 1)
    address, slot = unknown_slots(pair)[0]
    pair.one(SPARSE, "eth_getBalance", address)
    scan = [
        {
            **{"jsonrpc": "2.0", "id": number, "method": "eth_getStorageAt"},
            "params": [address, hex(2**250 + number)],
        }
        for number in range(100)
    ]
    other = scan[0] | {"params": [address, hex(slot)]}

    known = other | {"method": "eth_getBalance", "params": [address, "latest"]}
    server = pair.upstream.server

    async def ask() -> Any:
        scanning = pair.start(SPARSE, scan)
        await until(
            lambda: server.calls[1:]
        )  # as many batches as are fetched at a time
        asked = pair.start(SPARSE, other, key=2)
        for _ in range(3):  # until the unknown slot is queued as well
            await pair.start(SPARSE, known, key=2)
        server.release()
        (found,) = read(await asked)
        return found, read(await scanning)

    server.calls.clear()
    server.faults += [hold, hold]
    found, answers = pair.running.ask(ask)
    slots = [set(params[1]) for method, params in server.calls if params[1:2]]
    mine = {f"0x{slot:064x}"}
    assert [mine <= each for each in slots].index(True) < len(slots) - 1
    assert found == pair.one(FULL, "eth_getStorageAt", address, hex(slot))
    refused = [one for one in answers if isinstance(one, dict)]
    assert {one["data"]["reason"] for one in refused} == {"too_many_unknown_values"}
    assert all(one == "0x" + 64 * "0" for one in answers if one not in refused)
    assert 20 <= len(refused) <= 70


def test_proofs_for_customers_take_turns(pair: Pair) -> None:
    server = pair.upstream.server
    names = [f"0x{number:040x}" for number in range(2**90, 2**90 + 8)]
    server.faults += [hold, hold]

    def proof(account: str, key: int) -> asyncio.Future[Any]:
        call = {"jsonrpc": "2.0", "id": 1, "method": "eth_getProof"}
        asked = call | {"params": [account, ["0x1"], hex(HEAD - 1)]}
        return asyncio.ensure_future(_awaited(pair.start(SPARSE, asked, key)))

    async def ask() -> list[Any]:
        scan = [proof(account, 1) for account in names[:-1]]
        await until(lambda: server.calls[1:])  # as many as are fetched at a time
        other = proof(names[-1], 2)
        known = {"jsonrpc": "2.0", "id": 1, "method": "eth_getBalance"}
        for number in range(3):  # until it waits for its turn
            block = hex(HEAD - number)
            asked = known | {"params": [f"0x{0:040x}", block]}
            await pair.start(FULL, asked)
        server.release()
        return await asyncio.gather(*scan, other)

    server.calls.clear()
    pair.running.ask(ask)
    asked = [params[0] for method, params in server.calls if method == "eth_getProof"]
    assert sorted(asked) == names
    assert asked.index(names[-1]) < len(asked) - 2


def test_a_request_fetches_a_limited_number_of_values(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowance, "REQUEST_KEYS", 30)
    address, _ = unknown_slots(pair)[0]
    pair.one(SPARSE, "eth_getBalance", address)
    scan = [
        ("eth_getStorageAt", address, hex(2**250 + number)) for number in range(100)
    ]
    for known in (30, 60):
        pair.upstream.server.calls.clear()
        answers = pair.ask(SPARSE, *scan)
        assert len(pair.upstream.keys()) == 30
        refused = [one for one in answers if isinstance(one, dict)]
        assert {one["data"]["reason"] for one in refused} == {"too_much_to_prove"}
        assert len(refused) == 100 - known
    many = {address: [f"0x{2**251 + number:064x}" for number in range(31)]}
    error = pair.one(SPARSE, "eth_getStorageValues", many, "latest")
    assert (error["code"], error["data"]["reason"]) == (-32005, "too_much_to_prove")
    monkeypatch.setattr(allowance, "REQUEST_SECONDS", 0.01)
    pair.upstream.server.faults.append(hold)
    error = pair.one(SPARSE, "eth_getStorageAt", address, hex(2**250 + 99))
    assert error["data"]["reason"] == "too_much_to_prove"
    pair.upstream.server.release()


def test_keys_in_the_queue_are_not_fetched_after_the_end(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "BATCH_KEYS", 4)
    values, view = pair.running.service.values, pair.view(SPARSE)
    unknown = Keys(
        {Address(number.to_bytes(20)) for number in range(2**90, 2**90 + 40)}
    )

    async def ask() -> set[asyncio.Task[Any]]:
        before = asyncio.all_tasks()
        proving = asyncio.create_task(values.prove(view.id, unknown, "customer"))
        await until(lambda: pair.upstream.server.calls)
        await values.close()
        left = asyncio.all_tasks() - before - {proving}
        with pytest.raises(ServiceUnavailable):
            await proving
        return left

    pair.upstream.server.calls.clear()
    pair.upstream.server.fault = hold
    assert not pair.running.ask(ask)


def test_without_an_upstream_no_transaction_is_accepted(pair: Pair) -> None:
    Network.objects.get(slug=SPARSE).upstreams.all().delete()
    service = pair.running.service
    pair.running.ask(service.directory.refresh)
    calls = [
        ("eth_getBlockByNumber", hex(number), False) for number in range(HEAD - 9, HEAD)
    ]
    names = [name for block in pair.ask(FULL, *calls) for name in block["transactions"]]
    raw = pair.one(FULL, "eth_getRawTransactionByHash", names[-1])
    error = pair.one(SPARSE, "eth_sendRawTransaction", raw)
    assert error["data"]["reason"] == "upstreams_unavailable"
