"""eth_sendTransaction, up to a node that accepts the transaction."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.db import connection
from django.utils import timezone
from eth_account import Account as Signer
from sha3 import keccak_256

from networks.models import Network
from networks.services import configure_network
from tests.support.signing import PASSPHRASE, SIGNER, add_key
from tests.support.upstream_node import (
    PATH,
    UpstreamNode,
    hang_up,
    refuse,
    running_node,
)
from tests.support.wallet import A1, BY_USER, UNAUTHORIZED, Rig
from wallets.errors import NotSent
from wallets.models import Activity, ConsentRequest, Event, RequestState
from wallets.permissions import Group
from wallets.services import sessions
from wallets.services.keystores import delete_key
from wallets.services.pruning import prune
from wallets.services.requests import NotPending
from wallets.services.sending import approve_transaction, close_abandoned
from wallets.services.signatures import MAX_WAITING
from wallets.services.targets import target_of
from wallets.signature_requests import get_signature_request

INVOKE = "wallet_invokeMethod"
TO = "0x" + "b0" * 20
TRANSFER = {"from": SIGNER, "to": TO, "value": hex(10**18)}
CALL = {"from": SIGNER, "to": TO, "data": "0xa9059cbb" + "00" * 64}


@pytest.fixture(scope="module")
def server() -> Iterator[UpstreamNode]:
    with running_node() as running:
        yield running


@pytest.fixture
def node(server: UpstreamNode, rig: Rig) -> Iterator[UpstreamNode]:
    """Return the node in its initial state, which accepts transactions of chain 1."""
    server.__init__(server.url)  # type: ignore[misc]
    connect(rig, server.url)
    yield server
    connect(rig)


@pytest.fixture
def sending(rig: Rig) -> Rig:
    """Return a rig whose dapp may send transactions of the account with a key."""
    rig.account3 = add_key(rig.user)
    rig.create("eip155:1", "eip155:137", accounts={SIGNER, A1})
    return rig


def connect(rig: Rig, *urls: str) -> None:
    """Set the upstreams of chain 1."""
    network = Network.objects.get(slug="main")
    configure_network(network=network, upstream_urls=urls)

    async def known() -> None:
        await rig.wallet.node.directory.refresh()

    rig.run(known())


def asked(rig: Rig, **changes: object):
    """Return a call that waits for the user's decision."""
    params = rig.invoke("eip155:1", "eth_sendTransaction", {**TRANSFER, **changes})
    return rig.start(rig.s1, params, INVOKE)


def refusal(rig: Rig, transaction: object, scope: str = "eip155:1") -> tuple[int, str]:
    """Return a call's error, and check that the user is not asked."""
    params = rig.invoke(scope, "eth_sendTransaction", transaction)
    error = rig.error(rig.s1, INVOKE, params)
    assert not ConsentRequest.objects.pending().filter(dapp=rig.dapp).exists()
    return error.code, error.message


def approve(request: ConsentRequest) -> str:
    """Approve a request as the user who has seen its page."""
    return approve_transaction(
        request_id=request.pk,
        user=request.dapp.user,
        digest=get_signature_request(request).digest,
        passphrase=PASSPHRASE,
        cause=BY_USER,
    )


def test_transfer_is_filled_in_signed_and_sent(sending: Rig, node: UpstreamNode):
    task = asked(sending)
    assert "eth_sendRawTransaction" not in node.calls
    approve(sending.pending())
    (raw,) = node.raw
    assert sending.finish(task) == "0x" + keccak_256(raw).hexdigest()
    assert Signer.recover_transaction(raw).lower() == SIGNER
    (fields,) = node.sent()
    assert {name: fields[name] for name in ("type", "chainId", "nonce", "gas")} == {
        "type": 2,
        "chainId": 1,
        "nonce": 0,
        "gas": 21_000,
    }
    assert fields["value"] == 10**18
    assert fields["maxFeePerGas"] == 15 * 10**9
    assert fields["maxPriorityFeePerGas"] == 10**9
    line = Activity.objects.filter(user=sending.user).latest("id")
    assert line.event == Event.SIGNED
    assert line.details["hash"] == "0x" + keccak_256(raw).hexdigest()


@pytest.mark.parametrize(
    ("changes", "base_fee", "kind"),
    [
        ({"gasPrice": "0x77359400"}, 7 * 10**9, 0),
        ({}, None, 0),
        ({"type": "0x1"}, 7 * 10**9, 1),
        ({"accessList": [], "maxFeePerGas": "0x4a817c800"}, 7 * 10**9, 2),
    ],
)
def test_types_follow_the_dapp_and_the_chain(sending, node, changes, base_fee, kind):
    node.base_fee = base_fee
    task = asked(sending, **changes)
    approve(sending.pending())
    sending.finish(task)
    (raw,) = node.raw
    assert (0 if raw[0] >= 0xC0 else raw[0]) == kind
    assert Signer.recover_transaction(raw).lower() == SIGNER


def test_what_the_dapp_says_is_kept(sending: Rig, node: UpstreamNode):
    task = asked(sending, gas="0x30d40", nonce="0x9", maxFeePerGas="0x4a817c800")
    approve(sending.pending())
    sending.finish(task)
    (fields,) = node.sent()
    assert (fields["gas"], fields["nonce"]) == (200_000, 9)
    assert fields["maxFeePerGas"] == 20 * 10**9
    assert "eth_estimateGas" not in node.calls


def test_call_of_a_contract_gets_more_gas_than_estimated(sending, node):
    task = sending.start(
        sending.s1, sending.invoke("eip155:1", "eth_sendTransaction", CALL), INVOKE
    )
    approve(sending.pending())
    sending.finish(task)
    assert node.sent()[0]["gas"] == 50_000


def test_case_108_another_sender_is_refused(sending: Rig, node: UpstreamNode):
    assert refusal(sending, {**TRANSFER, "from": TO}) == UNAUTHORIZED
    assert refusal(sending, {**TRANSFER, "from": A1}) == UNAUTHORIZED
    assert node.calls == []


def test_case_112_unticked_permission_is_refused(rig: Rig, node: UpstreamNode):
    add_key(rig.user)
    rig.create(accounts={SIGNER}, groups=frozenset({Group.READ, Group.SIGN}))
    assert refusal(rig, TRANSFER) == UNAUTHORIZED


@pytest.mark.parametrize(
    "transaction",
    [
        5,
        {"to": TO},
        {**TRANSFER, "value": 5},
        {**TRANSFER, "chainId": "0x2"},
        {**TRANSFER, "to": None},
        {**TRANSFER, "gasPrice": "0x1", "maxFeePerGas": "0x1"},
        {**TRANSFER, "type": "0x3"},
    ],
)
def test_what_is_no_transaction_is_refused(sending: Rig, node, transaction):
    assert refusal(sending, transaction)[0] == -32602


@pytest.mark.parametrize(
    "change",
    [{"head_number": None, "head_hash": None}, {"checkpoint_number": 1}],
    ids=["no blocks", "checkpoint"],
)
def test_network_that_accepts_no_transactions_does_not_ask_the_user(
    sending: Rig, change: dict[str, int | None]
):
    network = Network.objects.filter(slug="polygon")
    (former,) = network.values(*change)
    network.update(**change)
    connect(sending)
    try:
        expected = (-32000, "this network accepts no transactions")
        assert refusal(sending, TRANSFER, "eip155:137") == expected
        with pytest.raises(NotSent, match="accepts no transactions"):
            target_of(137)
    finally:
        network.update(**former)
        connect(sending)


def test_node_of_another_chain_is_not_used(sending: Rig, node: UpstreamNode):
    node.chain_id = 137
    assert refusal(sending, TRANSFER)[0] == -32000


def test_failing_estimate_is_the_answer(sending: Rig, node: UpstreamNode):
    node.answers["eth_estimateGas"] = refuse(3, "execution reverted", "0x08c379a0")
    params = sending.invoke("eip155:1", "eth_sendTransaction", CALL)
    error = sending.error(sending.s1, INVOKE, params)
    assert (error.code, error.message, error.data) == (
        *(3, "execution reverted"),
        "0x08c379a0",
    )


def test_node_that_is_away_does_not_ask_the_user(sending: Rig, node: UpstreamNode):
    node.answers["eth_chainId"] = hang_up
    assert refusal(sending, TRANSFER) == (
        -32000,
        "the network's node does not respond",
    )


def test_user_says_no(sending: Rig, node: UpstreamNode):
    task = asked(sending)
    sending.reject()
    assert sending.finish(task).code == 4001
    assert node.raw == []


def test_transactions_in_a_row_get_nonces_in_a_row(sending: Rig, node: UpstreamNode):
    tasks = [asked(sending) for _ in range(MAX_WAITING)]
    for request in ConsentRequest.objects.pending().filter(dapp=sending.dapp):
        approve(request)
    assert [fields["nonce"] for fields in node.sent()] == [0, 1, 2]
    assert len({sending.finish(task) for task in tasks}) == MAX_WAITING


def at_the_same_time(*requests: ConsentRequest) -> list[str]:
    """Approve requests concurrently, and return the outcomes."""
    outcomes: list[str] = []
    barrier = Barrier(len(requests))

    def work(request: ConsentRequest) -> None:
        try:
            barrier.wait()
            approve(request)
            outcomes.append("sent")
        except NotPending:
            outcomes.append("over")
        finally:
            connection.close()

    threads = [Thread(target=work, args=[request]) for request in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(outcomes)


def test_approvals_at_the_same_time_send_once(sending: Rig, node: UpstreamNode):
    task = asked(sending)
    request = sending.pending()
    assert at_the_same_time(request, request) == ["over", "sent"]
    assert len(node.raw) == 1
    assert sending.finish(task) == "0x" + keccak_256(node.raw[0]).hexdigest()


def test_two_at_the_same_time_share_no_nonce(sending: Rig, node: UpstreamNode):
    tasks = [asked(sending) for _ in range(2)]
    waiting = ConsentRequest.objects.pending().filter(dapp=sending.dapp)
    assert at_the_same_time(*waiting.select_related("dapp__user")) == ["sent", "sent"]
    assert sorted(fields["nonce"] for fields in node.sent()) == [0, 1]
    assert len({sending.finish(task) for task in tasks}) == 2


def test_refusal_of_the_node_is_the_answer(sending: Rig, node: UpstreamNode):
    task = asked(sending)
    node.answers["eth_sendRawTransaction"] = refuse(
        -32000, "insufficient funds for gas * price + value"
    )
    request = sending.pending()
    with pytest.raises(NotSent, match="insufficient funds"):
        approve(request)
    error = sending.finish(task)
    assert (error.code, error.message) == (
        -32000,
        "insufficient funds for gas * price + value",
    )
    request.refresh_from_db()
    assert request.state == RequestState.FAILED
    line = Activity.objects.filter(user=sending.user).latest("id")
    assert (line.event, line.details["reason"]) == (Event.NOT_SENT, error.message)
    with pytest.raises(NotPending):
        approve(request)


def test_answer_that_was_lost_is_looked_for(sending: Rig, node: UpstreamNode):
    task = asked(sending)

    def take_and_hang_up(raw: str) -> None:
        node._eth_sendRawTransaction(raw)
        hang_up()

    node.answers["eth_sendRawTransaction"] = take_and_hang_up
    approve(sending.pending())
    assert sending.finish(task) == "0x" + keccak_256(node.raw[0]).hexdigest()


@pytest.mark.parametrize("fault", [hang_up, refuse(-32000, "nonce too low")])
def test_every_node_gets_the_transaction_and_one_is_enough(sending, node, fault):
    """The first node that responds is asked for the fees and the nonce."""
    with running_node() as second:
        connect(sending, node.url, second.url)
        node.answers["eth_getTransactionCount"] = hang_up
        node.answers["eth_getBlockByNumber"] = hang_up
        node.answers["eth_sendRawTransaction"] = fault
        task = asked(sending)
        approve(sending.pending())
        (raw,) = second.raw
        assert sending.finish(task) == "0x" + keccak_256(raw).hexdigest()
        assert node.calls.count("eth_sendRawTransaction") == 1


def test_refusal_of_the_first_node_is_the_answer(sending: Rig, node: UpstreamNode):
    with running_node() as second:
        connect(sending, node.url, second.url)
        task = asked(sending)
        node.answers["eth_sendRawTransaction"] = refuse(-32000, "first")
        second.answers["eth_sendRawTransaction"] = refuse(-32000, "second")
        with pytest.raises(NotSent, match="first"):
            approve(sending.pending())
        assert sending.finish(task).message == "first"
        assert second.calls.count("eth_sendRawTransaction") == 1


@pytest.mark.parametrize("found", [None, hang_up], ids=["not found", "no answer"])
def test_doubt_is_reported_with_the_hash(sending: Rig, node: UpstreamNode, found):
    task = asked(sending)
    node.answers["eth_sendRawTransaction"] = hang_up
    node.answers["eth_getTransactionByHash"] = found
    with pytest.raises(NotSent, match="it may have accepted 0x"):
        approve(sending.pending())
    error = sending.finish(task)
    assert error.code == -32000
    assert error.data["hash"] in error.message


def test_node_without_a_nonce_leaves_the_request_waiting(sending: Rig, node):
    task = asked(sending)
    node.answers["eth_getTransactionCount"] = hang_up
    with pytest.raises(NotSent, match="does not respond"):
        approve(sending.pending())
    del node.answers["eth_getTransactionCount"]
    approve(sending.pending())
    assert sending.finish(task).startswith("0x")


@pytest.mark.parametrize("change", ["revoke", "delete"])
def test_after_the_grant_is_gone_nothing_is_sent(sending: Rig, node, change):
    task = asked(sending)
    request = sending.pending()
    if change == "revoke":
        sessions.revoke_session(dapp_id=sending.dapp.pk, cause=BY_USER)
    else:
        delete_key(account=sending.account3, cause=BY_USER)
    with pytest.raises(NotPending):
        approve(request)
    error = sending.finish(task)
    assert (error.code, error.message) == UNAUTHORIZED
    assert node.raw == []


@pytest.mark.parametrize("look", ["the waiting call", "pruning"])
def test_process_that_was_killed_while_it_sent_leaves_no_one_waiting(
    sending: Rig, node: UpstreamNode, look, monkeypatch
):
    monkeypatch.setattr("wallets.serving.wallet.SENDING_INTERVAL", 0.05)
    task = asked(sending)
    request = sending.pending()
    sent = ConsentRequest.objects.filter(pk=request.pk)
    now = timezone.now()
    sent.update(state=RequestState.SENDING, outcome={"result": "0x12"}, decided_at=now)
    close_abandoned(request_id=request.pk)
    assert sent.get().state == RequestState.SENDING  # this is the maximum time
    sent.update(decided_at=now - timedelta(minutes=2))
    if look == "pruning":
        prune()
        assert sent.get().state == RequestState.FAILED
    sending.wallet.watch.notify_all()
    error = sending.finish(task)
    assert (error.code, error.data) == (-32000, {"hash": "0x12"})


def test_address_of_the_node_is_in_no_log(sending: Rig, node: UpstreamNode, caplog):
    caplog.set_level(logging.DEBUG)
    task = asked(sending)
    node.answers["eth_sendRawTransaction"] = hang_up
    with pytest.raises(NotSent):
        approve(sending.pending())
    error = sending.finish(task)
    assert PATH not in caplog.text + error.message + repr(node.url and error.data)
