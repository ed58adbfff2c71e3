"""The local pool of a network without upstreams, through its methods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import orjson
import psycopg
import pytest
from django.utils import timezone
from eth_utils.address import to_checksum_address

from evm import kzg
from evm.signatures import address_of_key
from jsonrpc.answers import Reply
from jsonrpc.dispatch import Dispatcher, Limits
from keys.grants import Grant
from keys.permits import NO_PERMITS
from nodeapi.mempool import adding, writer
from nodeapi.methods import registry
from nodeapi.methods.context import Context
from nodeapi.models import PooledTransaction
from nodeapi.node import database_conninfo
from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis
from samples.signers import Signer
from tests.nodeapi.sending.cases import (
    BLOB,
    BLOB_HASH,
    CHAIN_ID,
    COMMITMENT,
    INVALID_CELL_PROOFS,
    KEY,
    TO,
    VALID,
    VALID_PROOFS,
    network_form,
    with_sidecar,
)
from tests.support import chains, copies
from tests.support.serving import Serving, serving
from tests.support.waiting import in_time, until

pytestmark = pytest.mark.django_db(transaction=True)

ALICE, BOB, POOR = Signer("alice"), Signer("bob"), Signer("poor")
GWEI = 10**9
GENESIS = make_genesis(
    chain_id=CHAIN_ID,
    first_blocks=from_genesis("osaka"),
    alloc={
        "0x" + ALICE.address.hex(): {"balance": hex(10**21)},
        "0x" + BOB.address.hex(): {"balance": hex(10**18)},
        "0x" + POOR.address.hex(): {"balance": hex(10**15)},
    },
)


class Node:
    """A service with one network, whose blocks come from files."""

    def __init__(self, running: Serving) -> None:
        self.running = running
        self._dispatcher = Dispatcher(registry, Limits(seconds=120), {})

    def start(self, method: str, *params: Any) -> Any:
        service = self.running.service
        view = service.directory.by_slug("files")
        assert view is not None
        grant = Grant(1, "customer", None, NO_PERMITS, None)
        context = Context(b"1", grant, view, service.store, relay=service.relay)
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self._dispatcher.respond(orjson.dumps(call), context)

    def answer(self, method: str, *params: Any) -> Any:
        return read(self.running.ask(lambda: self.start(method, *params)))

    def result(self, method: str, *params: Any) -> Any:
        answer = self.answer(method, *params)
        assert "result" in answer, answer
        return answer["result"]

    def send(self, raw: bytes) -> str:
        """Send a transaction that is accepted; return its hash."""
        return self.result("eth_sendRawTransaction", "0x" + raw.hex())

    def refusal(self, raw: bytes) -> str:
        """Return the text with which a transaction is refused."""
        error = self.answer("eth_sendRawTransaction", "0x" + raw.hex())["error"]
        assert error.keys() == {"code", "message"}
        assert error["code"] == -32000
        return error["message"]

    def counts(self) -> tuple[int, int]:
        found = self.result("txpool_status")
        return int(found["pending"], 16), int(found["queued"], 16)

    def nonces(self, signer: Signer) -> tuple[list[int], list[int]]:
        """Return the nonces of an account's pending and queued transactions."""
        found = self.result("txpool_contentFrom", "0x" + signer.address.hex())
        return tuple(sorted(map(int, found[name])) for name in ("pending", "queued"))


def read(found: Any) -> Any:
    return orjson.loads(found.body if isinstance(found, Reply) else bytes(found))


def sign(signer: Signer = ALICE, **changes: Any) -> bytes:
    """Return a raw transaction of 21,000 gas."""
    fields = {
        **{"type": 2, "chain_id": CHAIN_ID, "nonce": 0, "gas": 21_000, "to": TO},
        **{"max_fee_per_gas": 2 * GWEI, "max_priority_fee_per_gas": GWEI},
        **{"value": 7, "data": b"", **changes},
    }
    return signer.sign(fields).raw  # type: ignore[arg-type]


@pytest.fixture
def blocks() -> ChainBuilder:
    builder = ChainBuilder(GENESIS)
    builder.block()
    copies.chain("files", GENESIS, builder.blocks)
    return builder


@pytest.fixture
def node(blocks: ChainBuilder) -> Iterator[Node]:
    with serving() as running:
        yield Node(running)


def test_addition_that_times_out_is_not_repeated(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = []

    def add(*arguments: Any) -> None:
        attempts.append(arguments)
        adding.add_transaction(*arguments)

    monkeypatch.setattr(writer, "add_transaction", add)
    monkeypatch.setattr(writer, "TIMEOUT_SECONDS", 1)
    node.send(sign())
    view = node.running.service.directory.by_slug("files")
    with psycopg.connect(database_conninfo()) as connection:
        assert view is not None
        locks = (adding.LOCKS, view.id)
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", locks)
        assert "error" in node.answer(
            "eth_sendRawTransaction", "0x" + sign(nonce=1).hex()
        )
    assert len(attempts) == 2
    node.send(sign(nonce=1))


def test_transactions_are_pending_without_a_gap_and_queued_after_one(node):
    for nonce in (2, 4, 1):
        node.send(sign(nonce=nonce))
    assert node.nonces(ALICE) == ([], [1, 2, 4])
    assert node.counts() == (0, 3)
    node.send(sign(nonce=0))
    assert node.nonces(ALICE) == ([0, 1, 2], [4])
    node.send(sign(BOB))
    assert node.counts() == (4, 1)
    for address, expected in ((ALICE.address, 3), (BOB.address, 1), (TO, 0)):
        name = "0x" + address.hex()
        found = node.result("eth_getTransactionCount", name, "pending")
        assert found == hex(expected)
        assert node.result("eth_getTransactionCount", name, "latest") == "0x0"


def test_content_has_transaction_objects_by_sender_and_nonce(node):
    name = node.send(sign(nonce=1, to=b"", data=b"\1" * 9, gas=60_000))
    other = node.send(sign(BOB))
    found = node.result("txpool_content")
    alice, bob = (to_checksum_address(each.address) for each in (ALICE, BOB))
    assert found["queued"].keys() == {alice}
    assert found["pending"].keys() == {bob}
    document = found["queued"][alice]["1"]
    places = ("blockHash", "blockNumber", "blockTimestamp", "transactionIndex")
    assert [document[place] for place in places] == [None] * 4
    assert (document["hash"], document["to"]) == (name, None)
    assert document["gasPrice"] == hex(2 * GWEI)
    assert found["pending"][bob]["0"]["hash"] == other
    assert node.result("eth_getTransactionByHash", name) == document
    lines = node.result("txpool_inspect")
    assert lines["queued"] == {
        alice: {"1": f"contract creation: 7 wei + 60000 gas × {2 * GWEI} wei"}
    }
    to = to_checksum_address(TO)
    assert lines["pending"] == {bob: {"0": f"{to}: 7 wei + 21000 gas × {2 * GWEI} wei"}}
    assert node.result("txpool_contentFrom", "0x" + "99" * 20) == {
        "pending": {},
        "queued": {},
    }


def test_refusals_are_geths(node):
    raw = sign()
    node.send(raw)
    assert node.refusal(raw) == "already known"
    assert node.refusal(sign(value=8)) == "replacement transaction underpriced"
    assert node.refusal(sign(POOR, value=10**15)).startswith(
        "insufficient funds for gas * price + value: balance 1000000000000000, "
    )
    expected = "tx fee (2.00 ether) exceeds the configured cap (1.00 ether)"
    assert node.refusal(sign(max_fee_per_gas=2 * 10**18 // 21_000 + 1)) == expected
    tip = "transaction gas price below minimum: gas tip cap 0, minimum needed 1"
    assert node.refusal(sign(nonce=1, max_priority_fee_per_gas=0)) == tip
    assert node.counts() == (1, 0)


def test_replacement_takes_the_place_of_the_former_transaction(node):
    former = node.send(sign())
    node.send(sign(nonce=1))
    raised = {"max_fee_per_gas": 4 * GWEI, "max_priority_fee_per_gas": 2 * GWEI}
    latter = node.send(sign(**raised))
    assert node.counts() == (2, 0)
    assert node.result("eth_getTransactionByHash", former) is None
    assert node.result("eth_getTransactionByHash", latter)["hash"] == latter


def test_imported_block_removes_what_it_contains_or_makes_impossible(node, blocks):
    for nonce in range(3):
        node.send(sign(nonce=nonce))
    assert node.nonces(ALICE) == ([0, 1, 2], [])
    node.send(sign(BOB, nonce=1))
    blocks.send(ALICE, BOB.address, value=1)
    blocks.send(BOB, ALICE.address, value=9 * 10**17)
    chains.import_blocks("files", GENESIS, [blocks.block()])
    assert node.nonces(ALICE) == ([1, 2], [])
    assert node.nonces(BOB) == ([1], [])
    node.running.ask(node.running.service.directory.refresh)
    assert node.refusal(sign(value=3)) == "nonce too low: next nonce 1, tx nonce 0"
    assert node.refusal(sign(BOB, nonce=2, value=5 * 10**17)).startswith(
        "insufficient funds"
    )


def test_transaction_of_a_block_is_returned_with_its_block(node, blocks):
    transaction = blocks.send(ALICE, TO, value=1)
    name = node.send(transaction.raw)
    assert node.result("eth_getTransactionByHash", name)["blockHash"] is None
    raw = "0x" + transaction.raw.hex()
    assert node.result("eth_getRawTransactionByHash", name) == raw
    chains.import_blocks("files", GENESIS, [blocks.block()])
    node.running.ask(node.running.service.directory.refresh)
    found = node.result("eth_getTransactionByHash", name)
    assert found["blockNumber"] == "0x2"
    assert node.result("eth_getRawTransactionByHash", name) == raw
    assert node.counts() == (0, 0)


def test_sender_that_has_spent_its_balance_has_no_pooled_transactions(node, blocks):
    node.send(sign(POOR, nonce=1, value=9 * 10**14))
    assert node.counts() == (0, 1)
    blocks.send(POOR, TO, value=2 * 10**14, gas=21_000, max_fee_per_gas=2 * GWEI)
    chains.import_blocks("files", GENESIS, [blocks.block()])
    assert node.counts() == (0, 0)


def test_transactions_expire(node):
    name = node.send(sign())
    PooledTransaction.objects.update(at=timezone.now() - timedelta(hours=3))
    assert node.counts() == (0, 0)
    assert node.result("eth_getRawTransactionByHash", name) == "0x"
    assert node.result("eth_getTransactionByHash", name) is None
    assert node.send(sign()) == name
    assert node.counts() == (1, 0)


@pytest.fixture
def pay_for_blobs(node, blocks):
    """Import a block that pays the sender of `with_sidecar`."""
    blocks.send(ALICE, address_of_key(KEY), value=10**18, gas=21_000)
    chains.import_blocks("files", GENESIS, [blocks.block()])
    node.running.ask(node.running.service.directory.refresh)


@pytest.mark.usefixtures("pay_for_blobs")
def test_pooled_blob_transaction_is_returned_with_its_sidecar(node):
    raw = with_sidecar()
    name = node.send(raw)
    for method in ("eth_getRawTransactionByHash", "debug_getRawTransaction"):
        assert node.result(method, name) == "0x" + raw.hex()


@pytest.mark.usefixtures("pay_for_blobs")
def test_blob_transactions_are_counted_and_not_listed(node):
    name = node.send(with_sidecar())
    assert node.counts() == (1, 0)
    assert node.result("txpool_content") == {"pending": {}, "queued": {}}
    assert node.result("eth_getTransactionByHash", name)["type"] == "0x3"
    assert node.refusal(VALID["dynamic fee"]) == "address already reserved"


def test_proofs_of_blobs_are_verified_in_a_worker_process_before_the_account(
    node, monkeypatch
):
    raw, text = INVALID_CELL_PROOFS["one wrong proof"]
    # No proof can be verified in this process.
    monkeypatch.setattr(kzg, "ckzg", None)
    assert node.refusal(raw) == text
    assert node.refusal(VALID_PROOFS["version 1"]).startswith(
        "insufficient funds for gas * price + value: balance 0"
    )
    assert node.counts() == (0, 0)


def test_full_pool_keeps_the_highest_fees(node, monkeypatch):
    monkeypatch.setattr(adding, "MAX_BYTES", 3 * len(sign()) + 50)
    fees = (5, 3, 4)
    for nonce, fee in enumerate(fees):
        node.send(sign(nonce=nonce, max_fee_per_gas=fee * GWEI))
    assert node.refusal(sign(BOB)) == "transaction underpriced"
    dear = {"max_fee_per_gas": 6 * GWEI}
    gapped = sign(BOB, nonce=5, **dear)
    assert node.refusal(gapped) == "future transaction tries to replace pending"
    node.send(sign(BOB, **dear))
    assert node.nonces(BOB) == ([0], [])
    assert node.nonces(ALICE) == ([0], [2])


def test_room_for_sidecars_is_left_to_the_highest_fees(node, monkeypatch):
    def blob(signer: Signer, fee: int) -> bytes:
        fields = {"type": 3, "blob_versioned_hashes": [BLOB_HASH], "value": 0}
        fees = {"max_fee_per_blob_gas": GWEI, "max_fee_per_gas": fee * GWEI}
        return network_form(
            sign(signer, **fields, **fees), 0, [BLOB], [COMMITMENT], [COMMITMENT]
        )

    monkeypatch.setattr(adding, "MAX_BLOB_BYTES", len(blob(ALICE, 3)) + 9)
    node.send(blob(ALICE, 3))
    cheap = sign(BOB, max_fee_per_gas=2 * GWEI)
    node.send(cheap)
    assert node.refusal(blob(POOR, 3)) == "transaction underpriced"
    node.send(blob(POOR, 4))
    # A transaction without blobs stays in the pool, although its fee is lower.
    assert node.counts() == (2, 0)
    assert node.nonces(BOB) == ([0], [])


def test_queued_transactions_of_an_account_are_limited(node, monkeypatch):
    queued = adding.ACCOUNT_QUEUED
    for nonce in range(1, queued + 2):
        node.send(sign(nonce=nonce))
    assert node.nonces(ALICE) == ([], list(range(1, queued + 1)))


def test_queued_transactions_of_all_accounts_are_limited(node, monkeypatch):
    monkeypatch.setattr(adding, "MAX_QUEUED", 3)
    for nonce in (1, 2):
        node.send(sign(nonce=nonce))
    for nonce in (1, 2):
        node.send(sign(BOB, nonce=nonce))
    # The account that was active first loses its highest nonce.
    assert (node.nonces(ALICE), node.nonces(BOB)) == (([], [1]), ([], [1, 2]))


def test_pending_transactions_beyond_the_limit_are_of_those_with_most(
    node, monkeypatch
):
    monkeypatch.setattr(adding, "MAX_QUEUED", 1)
    monkeypatch.setattr(adding, "MAX_PENDING", 18)
    for nonce in range(18):
        node.send(sign(nonce=nonce))
    node.send(sign(BOB))
    assert node.nonces(ALICE) == (list(range(17)), [])
    assert node.nonces(BOB) == ([0], [])


def test_concurrent_transactions_of_an_account_are_all_checked(node):
    """Two transactions with the same nonce do not both get into the pool."""
    raw = [sign(value=value) for value in range(8)]

    async def send_all() -> list[Any]:
        sent = [node.start("eth_sendRawTransaction", "0x" + each.hex()) for each in raw]

        async def wait(later: Any) -> Any:
            return read(await later)

        return await asyncio.gather(*map(wait, sent))

    answers = node.running.ask(send_all)
    accepted = [answer for answer in answers if "result" in answer]
    assert len(accepted) == 1
    texts = {answer["error"]["message"] for answer in answers if "error" in answer}
    assert texts == {"replacement transaction underpriced"}
    assert node.counts() == (1, 0)


def test_receipt_is_returned_when_a_block_contains_the_transaction(node, blocks):
    transaction = blocks.send(ALICE, TO, value=1)
    method, raw = "eth_sendRawTransactionSync", "0x" + transaction.raw.hex()
    service = node.running.service
    view = service.directory.by_slug("files")

    async def is_pending() -> bool:
        found = await service.relay.pending_nonce(view, ALICE.address, 1)
        return found == 1

    async def wait() -> Any:
        return read(await node.start(method, raw, 60_000))

    waiting: list[asyncio.Task[Any]] = []

    async def start() -> None:
        waiting.append(asyncio.create_task(wait()))
        await until(is_pending)

    running = node.running
    running.ask(start)
    chains.import_blocks("files", GENESIS, [blocks.block()])
    running.ask(service.directory.refresh)
    receipt = running.ask(in_time, waiting[0])["result"]
    assert receipt["transactionHash"] == "0x" + transaction.hash.hex()
    assert receipt["blockNumber"] == "0x2"


def test_transaction_that_no_block_contains_is_an_error_with_its_hash(node):
    raw = sign()
    answer = node.answer("eth_sendRawTransactionSync", "0x" + raw.hex(), 1)
    error = answer["error"]
    name = node.result("txpool_contentFrom", "0x" + ALICE.address.hex())
    assert error == {
        "code": 4,
        "message": "The transaction was added to the transaction pool but wasn't "
        "processed in 1ms",
        "data": name["pending"]["0"]["hash"],
    }


@pytest.mark.parametrize(
    ("timeout", "text"),
    [
        ("0x1", "json: cannot unmarshal string into Go value of type uint64"),
        (-1, "json: cannot unmarshal number -1 into Go value of type uint64"),
        (1.5, "json: cannot unmarshal number 1.5 into Go value of type uint64"),
    ],
)
def test_timeout_is_a_number(node, timeout, text):
    raw = "0x" + sign().hex()
    error = node.answer("eth_sendRawTransactionSync", raw, timeout)["error"]
    assert (error["code"], error["message"]) == (
        -32602,
        f"invalid argument 1: {text}",
    )
    assert node.counts() == (0, 0)


def test_subscribers_get_each_added_transaction(node):
    node.send(sign())
    view = node.running.service.directory.by_slug("files")
    hashes, objects = [], []
    subscribe = node.running.service.pending_feed.subscribe
    ends = [
        node.running.ask(subscribe, view.id, found.append, is_full)
        for found, is_full in ((hashes, False), (objects, True))
    ]
    # The feed begins after the newest transaction that it finds, one of the first.
    sent = [node.send(sign(nonce=nonce)) for nonce in range(1, 11)]
    node.running.until(lambda: hashes and orjson.loads(hashes[-1]) == sent[-1])
    sent.append(node.send(sign(nonce=11)))
    node.running.until(lambda: orjson.loads(hashes[-1]) == sent[-1])
    found = [orjson.loads(each) for each in hashes]
    assert found == sent[-len(found) :]
    assert [orjson.loads(each)["hash"] for each in objects] == found
    assert orjson.loads(objects[0])["blockHash"] is None
    for end in ends:
        node.running.ask(end)


def test_own_accounts_have_no_pending_transactions(node):
    node.send(sign())
    assert node.result("eth_pendingTransactions") == []
