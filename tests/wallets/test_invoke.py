"""The calls that a session allows, without sockets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from django.db import connection

from jsonrpc.calls import Call
from jsonrpc.dispatch import Dispatcher, Limits
from jsonrpc.errors import RequestTimedOut, RpcError
from keys.models import ApiKey, KeyVersion, Span, UsageBucket
from keys.services import announce_key, grant_entitlement, withdraw_entitlement
from keys.services.limits import set_limits
from networks.models import Network
from networks.services import announce_network
from nodeapi.endpoint.calls import Calls
from nodeapi.methods import registry as node_methods
from server.request_id import RequestId
from tests.support.rows import document, hash_of
from tests.support.waiting import until
from tests.support.wallet import A1, A2, BY_USER, M0, UNAUTHORIZED, Rig, Socket
from wallets import internal_key
from wallets.errors import InternalError, Unauthorized
from wallets.methods import invoke
from wallets.methods.invocation import Invocation
from wallets.methods.outer import answer
from wallets.permissions import Group
from wallets.scopes import ScopeObject
from wallets.services import accounts
from wallets.serving.context import Context
from wallets.serving.wallet import Wallet

INVOKE = "wallet_invokeMethod"
CHAIN_ID = {"method": "eth_chainId"}


def refusal(rig: Rig, scope: str, method: str, *params: object) -> tuple[int, str]:
    error = rig.error(rig.s1, INVOKE, rig.invoke(scope, method, *params))
    assert error.data is None
    return error.code, error.message


def called(rig: Rig, scope: str, method: str, *params: object):
    return rig.result(rig.s1, INVOKE, rig.invoke(scope, method, *params))


@pytest.mark.parametrize(
    "name", ["eth_chainId", "wallet_notify", "wallet_sessionChanged", "", "x" * 500]
)
def test_unknown_methods_are_not_there(rig: Rig, name):
    error = rig.error(rig.s1, name, {})
    assert (error.code, error.message) == (
        -32601,
        "The method does not exist / is not available.",
    )
    assert error.data == {"method": name[:128]}


@pytest.mark.parametrize(
    ("scope", "method"),
    [
        ("eip155", "eth_chainId"),
        ("eip155:999", "eth_chainId"),
        ("eip155:137", "eth_chainId"),
        ("wallet", "eth_chainId"),
        ("eip155:1", "eth_blockNumber"),
        ("eip155:1", "eth_accounts"),
        ("eip155:1", "eth_requestAccounts"),
        ("eip155:1", "wallet_switchEthereumChain"),
        ("eip155:1", "net_version"),
        ("eip155:1", "eth_sendTransaction"),
        ("eip155:1", "debug_traceBlockByHash"),
        ("eip155:1", "\ud800"),
    ],
)
def test_whatever_was_not_granted_is_refused_alike(rig: Rig, scope, method):
    task = rig.start(
        rig.s1, {"optionalScopes": {"eip155:1": {**M0, "methods": ["eth_chainId"]}}}
    )
    rig.approve()
    rig.finish(task)
    assert refusal(rig, scope, method, "anything") == UNAUTHORIZED


def test_blocks_are_read_as_the_node_gives_them(rig: Rig):
    rig.create("eip155:1")
    params = rig.invoke(
        "eip155:1", "eth_getBlockByHash", "0x" + hash_of("main-5").hex(), False
    )
    assert rig.answer(rig.s1, INVOKE, params).result == document("main-5", 5)
    assert called(rig, "eip155:1", "eth_blockNumber") == "0x5"


def test_arguments_of_a_long_frame_are_decoded_in_a_thread(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
):
    rig.create("eip155:1")
    params = rig.invoke("eip155:1", "eth_chainId")
    threads: list[int] = []
    prepare = Dispatcher.prepare_call

    def noted(*arguments: Any) -> Call:
        threads.append(threading.get_ident())
        return prepare(*arguments)

    monkeypatch.setattr(Dispatcher, "prepare_call", noted)
    for size in (100, 2**20):
        context = Context(RequestId(), rig.s1, rig.wallet, size=size)
        assert rig.run(answer(context, INVOKE, params)).result == b'"0x1"'
    here = threading.get_ident()
    assert [thread == here for thread in threads] == [True, False]


def test_errors_of_the_node_are_passed_on(rig: Rig):
    rig.create("eip155:1")
    storage = ("eth_getStorageAt", A1, "0x0", "0xfffff")
    error = rig.error(rig.s1, INVOKE, rig.invoke("eip155:1", *storage))
    assert isinstance(error, RpcError)
    assert (error.code, error.message) == (-32000, "header not found")
    error = rig.error(rig.s1, INVOKE, rig.invoke("eip155:1", "eth_getBlockByHash"))
    assert (error.code, error.message) == (
        -32602,
        "missing value for required argument 0",
    )
    named = {"method": "eth_getBlockByHash", "params": {"hash": "0x"}}
    error = rig.error(rig.s1, INVOKE, {"scope": "eip155:1", "request": named})
    assert (error.code, error.message) == (-32602, "non-array args")


def test_group_that_the_user_has_unticked_is_closed(rig: Rig):
    rig.create("eip155:1", groups=frozenset({Group.READ, Group.SIGN}))
    assert refusal(rig, "eip155:1", "eth_subscribe", "newHeads") == UNAUTHORIZED
    assert called(rig, "eip155:1", "eth_chainId") == "0x1"


def test_chain_that_is_withdrawn_is_closed(rig: Rig):
    rig.create("eip155:137", "eip155:1")
    network = Network.objects.get(chain_id=137)
    Network.objects.filter(pk=network.pk).update(chain_id=138)
    try:
        announce_network(network)
        rig.run(_refresh(rig))
        assert refusal(rig, "eip155:137", "eth_chainId") == UNAUTHORIZED
        assert called(rig, "eip155:1", "eth_chainId") == "0x1"
    finally:
        Network.objects.filter(pk=network.pk).update(chain_id=137)
        announce_network(network)
        rig.run(_refresh(rig))


async def _refresh(rig: Rig) -> None:
    await rig.wallet.node.directory.refresh()


def test_reads_are_those_of_the_wallets_api_key(rig: Rig):
    rig.create("eip155:1")
    assert called(rig, "eip155:1", "eth_blockNumber") == "0x5"
    granted = rig.run(rig.wallet.grant())
    api_key = internal_key.find()
    assert api_key is not None
    assert granted.api_key_id == api_key.pk
    assert internal_key.ensure() == api_key
    assert KeyVersion.objects.filter(api_key=api_key).count() == 1


@pytest.mark.parametrize("change", ["disabled", "other network"])
def test_staff_limit_the_wallet_as_any_key(rig: Rig, change):
    rig.create("eip155:1", "eip155:137")
    api_key = internal_key.ensure()
    try:
        if change == "disabled":
            api_key.is_enabled = False
            api_key.save()
        else:
            api_key.networks.set(Network.objects.filter(chain_id=137))
        announce_key(api_key)
        rig.settle()
        error = rig.error(rig.s1, INVOKE, rig.invoke("eip155:1", "eth_chainId"))
        if change == "disabled":
            assert (error.code, error.message) == (-32603, "Internal JSON-RPC error.")
        else:
            assert (error.code, error.message) == UNAUTHORIZED
            assert called(rig, "eip155:137", "eth_chainId") == "0x89"
            wanted = {"optionalScopes": {"eip155:1": M0}}
            other = Socket(rig.pair("https://y.example"), "y")
            assert rig.code(other, "wallet_createSession", wanted) == 5100
    finally:
        api_key.is_enabled = True
        api_key.save()
        api_key.networks.clear()
        announce_key(api_key)
        rig.settle()
    if change == "disabled":  # the session may lack the chain by now
        assert called(rig, "eip155:1", "eth_chainId") == "0x1"


def booked(rig: Rig, api_key: ApiKey) -> dict[tuple[str, str], tuple[int, int]]:
    """Return calls and credits of a key by method and outcome, once all are written."""
    rig.run(rig.wallet.node.meter.flush())
    rows = UsageBucket.objects.filter(api_key=api_key, span=Span.DAY)
    return {(row.method, row.outcome): (row.calls, row.credits) for row in rows}


def test_reads_are_charged_to_the_wallets_api_key_and_booked(rig: Rig):
    rig.create("eip155:1")
    api_key = internal_key.ensure()
    booked(rig, api_key)
    UsageBucket.objects.filter(api_key=api_key).delete()
    limits = set_limits(
        api_key=api_key, credits_per_second=1, burst=100, credits_per_day=3
    )
    rig.settle()
    try:
        for _ in range(2):
            called(rig, "eip155:1", "eth_chainId")
        wrong = rig.invoke("eip155:1", "eth_getBlockByHash")
        assert rig.code(rig.s1, INVOKE, wrong) == -32602
        error = rig.error(rig.s1, INVOKE, rig.invoke("eip155:1", "eth_chainId"))
        assert (error.code, error.data["reason"]) == (-32005, "daily_quota")
        assert booked(rig, api_key) == {
            ("eth_chainId", "ok"): (2, 2),
            ("eth_getBlockByHash", "client_error"): (1, 1),
            ("eth_chainId", "limited"): (1, 0),
        }
    finally:
        limits.delete()
        announce_key(api_key)
        rig.settle()
    assert called(rig, "eip155:1", "eth_chainId") == "0x1"


def test_deactivated_users_sessions_are_closed(rig: Rig):
    rig.create("eip155:1")
    rig.user.is_active = False
    rig.user.save()
    assert refusal(rig, "eip155:1", "eth_chainId") == UNAUTHORIZED
    assert rig.session()["sessionScopes"] == {}


@contextmanager
def without_time(wallet: Wallet) -> Iterator[None]:
    """Call methods of the node with time limits of zero seconds."""
    usual = wallet.calls
    wallet.calls = Calls(node_methods, Limits(seconds=0.0, slow_seconds=0.0))
    try:
        yield
    finally:
        wallet.calls = usual


def test_traces_are_granted_where_staff_allow_them_and_if_requested(rig: Rig):
    api_key = internal_key.ensure()
    network = Network.objects.get(chain_id=1)
    entitlement = grant_entitlement(
        api_key=api_key, network=network, capability="trace"
    )
    try:
        named = {**M0, "methods": ["debug_traceBlockByHash", "eth_chainId"]}
        wanted = {"eip155:1": named, "eip155:137": named}
        task = rig.start(rig.s1, {"optionalScopes": wanted})
        rig.approve()
        found = rig.finish(task)["sessionScopes"]
        assert found["eip155:137"]["methods"] == ["eth_chainId"]
        assert found["eip155:1"]["methods"] == ["eth_chainId", "debug_traceBlockByHash"]
        rig.settle()
        trace = ("eip155:1", "debug_traceBlockByHash", "0x" + "12" * 32)
        error = rig.error(rig.s1, INVOKE, rig.invoke(*trace))
        assert isinstance(error, RpcError)
        assert (error.code, error.message) == (-32000, f"block {trace[2]} not found")
        late = rig.invoke("eip155:1", "debug_traceBlockByHash", "0x" + "34" * 32)
        with without_time(rig.wallet):
            assert isinstance(rig.error(rig.s1, INVOKE, late), RequestTimedOut)
        plain = rig.create(
            "eip155:1", socket=Socket(rig.pair("https://z.example"), "z")
        )
        assert "debug_traceBlockByHash" not in str(plain)
    finally:
        withdraw_entitlement(entitlement=entitlement)
    rig.settle()
    assert refusal(rig, *trace) == UNAUTHORIZED


def test_poll_gets_as_much_room_as_a_result_may_have(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
):
    rig.create("eip155:1")
    name = called(rig, "eip155:1", "eth_newBlockFilter")
    monkeypatch.setattr(invoke, "MAX_RESULT_BYTES", 1)
    params = rig.invoke("eip155:1", "eth_getFilterChanges", name)
    error = rig.error(rig.s1, INVOKE, params)
    assert error.message.startswith("response too large: the result has 2 bytes, ")
    monkeypatch.undo()
    assert called(rig, "eip155:1", "eth_getFilterChanges", name) == []


def test_subscriptions_are_the_sockets(rig: Rig):
    rig.create("eip155:1", "eip155:137")
    first = called(rig, "eip155:1", "eth_subscribe", "newHeads")
    second = called(rig, "eip155:137", "eth_subscribe", "logs", {"address": A1})
    assert rig.s1.subscriptions == {
        first: ("eip155:1", "newHeads", []),
        second: ("eip155:137", "logs", [{"address": A1}]),
    }
    assert called(rig, "eip155:137", "eth_unsubscribe", first) is False
    other = rig.invoke("eip155:1", "eth_unsubscribe", first)
    assert rig.result(rig.s2, INVOKE, other) is False
    assert called(rig, "eip155:1", "eth_unsubscribe", first) is True
    assert called(rig, "eip155:1", "eth_unsubscribe", first) is False


@pytest.mark.parametrize("params", [("bogus",), (), (5,), (["newHeads"],), ({},)])
def test_what_cannot_be_subscribed_to_is_refused(rig: Rig, params):
    rig.create("eip155:1")
    params = rig.invoke("eip155:1", "eth_subscribe", *params)
    assert rig.code(rig.s1, INVOKE, params) == -32602
    assert rig.s1.subscriptions == {}


def test_only_accounts_of_the_scope_may_be_used(rig: Rig):
    granted = ScopeObject(accounts=(f"eip155:1:{A1}",))
    context = Context(RequestId(), rig.s1, rig.wallet)
    invocation = Invocation(context, "eip155:1", granted, None)
    assert invocation.require_account("0x" + A1[2:].upper()).address == A1
    for other in (A2, "", "garbage", f"eip155:1:{A1}"):
        with pytest.raises(Unauthorized):
            invocation.require_account(other)


def cut_connections() -> None:
    """Terminate the database connections of the parts under test."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'portcullis' AND datname = current_database()"
        )


def test_request_outlives_a_database_that_hangs_up(rig: Rig):
    task = rig.start(rig.s1, {"optionalScopes": {"eip155:1": M0}})
    cut_connections()
    rig.approve()
    assert "eip155:1" in rig.finish(task)["sessionScopes"]


def test_call_without_the_database_is_an_error_of_ours_and_the_next_one_works(rig: Rig):
    rig.create("eip155:1")
    cut_connections()
    params = rig.invoke("eip155:1", "eth_chainId")

    async def result() -> bytes | None:
        context = Context(RequestId(), rig.s1, rig.wallet)
        try:
            return (await answer(context, INVOKE, params)).result
        except InternalError as error:
            assert (error.message, error.data) == ("Internal JSON-RPC error.", None)
            return None

    assert rig.run(until(result)) == b'"0x1"'
    assert rig.answer(rig.s1, INVOKE, params).result == b'"0x1"'


def test_result_of_a_session_is_json(rig: Rig):
    rig.create("eip155:1", accounts={A1, A2})
    raw = rig.answer(rig.s1, "wallet_getSession").result
    assert orjson.loads(raw) == rig.session()
    accounts.move_account(account=rig.account2, position=0, cause=BY_USER)
    assert rig.session()["sessionScopes"]["eip155:1"]["accounts"][0] == f"eip155:1:{A2}"
