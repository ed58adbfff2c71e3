"""The node's WebSockets on the real server: handshakes, calls, subscriptions, bounds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from evm.signatures import keccak
from keys.models import AllowlistKind, ApiKey, UsageBucket
from keys.services import (
    disable_key,
    revoke_version,
    set_allowlist,
    switch_customer,
    update_key,
)
from keys.services.limits import set_limits
from networks.models import Network
from networks.services import add_upstream, delete_network
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains, copies
from tests.support.coroutines import run, scenario
from tests.support.dapps import orm
from tests.support.live import Live, api_key_of, live_service, request
from tests.support.node_sockets import NodeSocket, open_socket, socket_url
from tests.support.upstream_server import UpstreamServer, running_upstream
from tests.support.waiting import PATIENCE_SECONDS, in_time, until, wait_until

ALICE, BOB = Signer("alice"), Signer("bob")
TRANSFER = "0x" + keccak(b"Transfer(address,address,uint256)").hex()
CHAIN_ID = "0x7"


class Trunk:
    """A network named net, with a token contract; blocks are imported by `bring`."""

    def __init__(self) -> None:
        self.genesis = fork_genesis("shanghai", ALICE, BOB)
        self.builder = ChainBuilder(self.genesis)
        supply = (10**6).to_bytes(32, "big")
        self.token = self.builder.deploy(ALICE, contract("token").init_code(supply))
        self.builder.block()
        copies.chain("net", self.genesis, self.builder.blocks)

    def transfer(self, amount: int, builder: ChainBuilder | None = None) -> None:
        """Add a transaction with one log."""
        selector = keccak(b"transfer(address,uint256)")[:4]
        data = selector + BOB.address.rjust(32, b"\0") + amount.to_bytes(32, "big")
        (builder or self.builder).send(ALICE, self.token, data=data)

    async def bring(self, blocks: list[Any]) -> None:
        """Import blocks."""
        await orm(chains.import_blocks, "net", self.genesis, blocks)

    async def grow(self, *amounts: int) -> str:
        """Import a block with transfers; return its hash."""
        for amount in amounts:
            self.transfer(amount)
        block = self.builder.block()
        await self.bring([block])
        return "0x" + block.header.hash.hex()


@pytest.fixture(scope="module")
def trunk(module_db: None) -> Trunk:
    return Trunk()


@pytest.fixture(scope="module")
def live(trunk: Trunk) -> Iterator[Live]:
    with live_service() as live:
        yield live


async def refusal(live: Live, path: str, **headers: str) -> tuple[int, Any, Any]:
    """Return status, error object and headers of a handshake that is rejected."""
    with pytest.raises(InvalidStatus) as caught:
        await connect(socket_url(live, path), additional_headers=headers)
    response = caught.value.response
    document = json.loads(response.body or b"")
    assert (document["jsonrpc"], document["id"]) == ("2.0", None)
    return response.status_code, document["error"], response.headers


def version_of(key: str) -> Any:
    return api_key_of(key).versions.get()


def test_handshakes_are_answered_as_requests_to_v3(live: Live) -> None:
    keys = [live.new_key() for _ in range(5)]
    expired, disabled, revoked, elsewhere, good = keys
    rows = ApiKey.objects.filter(pk=api_key_of(expired).pk)
    rows.update(expires_at=timezone.now() - timedelta(seconds=1))
    disable_key(api_key=api_key_of(disabled))
    revoke_version(version=version_of(revoked), reason="lost")
    set_allowlist(
        api_key=api_key_of(elsewhere), kind=AllowlistKind.IP, values=["192.0.2.1"]
    )

    async def scenario() -> None:
        for path, status, reason in (
            ("/ws/v3", 401, "key_required"),
            ("/ws/v3/", 401, "key_required"),
            (f"/ws/v3/{good[:-1]}", 401, "key_invalid"),
            (f"/ws/v3/{expired}", 401, "key_expired"),
            (f"/ws/v3/{revoked}", 401, "key_revoked"),
            (f"/ws/v3/{disabled}", 403, "key_disabled"),
            (f"/ws/v3/{elsewhere}", 403, "ip_not_allowed"),
            (f"/none/ws/v3/{good}", 404, "unknown_network"),
            (f"/ws/v3/{good}/more", 404, "unknown_path"),
        ):
            found, error, headers = await refusal(live, path)
            assert (found, error["data"]["reason"]) == (status, reason), path
            assert "x-request-id" in headers
            assert ("www-authenticate" in headers) == (status == 401), path
        for path in (f"/ws/v3/{good}", f"/ws/v3/{good}/", f"/net/ws/v3/{good}"):
            async with NodeSocket(await connect(socket_url(live, path))) as node:
                assert await node.ask("eth_chainId") == CHAIN_ID
        bearer = {"Authorization": f"Bearer {good}"}
        for path in ("/ws/v3", "/net/ws/v3"):
            url = socket_url(live, path)
            async with NodeSocket(
                await connect(url, additional_headers=bearer)
            ) as node:
                assert await node.ask("eth_chainId") == CHAIN_ID

    run(scenario())


def test_calls_and_batches_are_answered_as_over_http(live: Live) -> None:
    key = live.new_key()
    calls: list[Any] = [
        request("eth_getBlockByNumber", "latest", True),
        request("eth_blockNumber", 7),
        request("debug_traceBlockByNumber", "latest"),
        request("no_such"),
        [request("eth_chainId"), {"jsonrpc": "2.0", "method": "eth_chainId"}],
        [{**request("eth_gibberish"), "id": 2}, {**request("net_version"), "id": "a"}],
        [],
        [1],
        {"id": 3},
    ]

    async def scenario() -> None:
        async with await open_socket(live, key) as node:
            with live.api(key=key) as api:
                for call in calls:
                    expected = await asyncio.to_thread(api.send, call)
                    assert await node.exchange(call) == expected.json(), call
                await node.connection.send("{")
                assert json.loads(await in_time(node.connection.recv())) == (
                    api.post(b"{").json()
                )
            await node.connection.send(json.dumps(calls[1]).encode())  # a binary frame
            assert "error" in json.loads(await in_time(node.connection.recv()))
            # A notification of JSON-RPC has no response; the next call has one.
            await node.connection.send('{"jsonrpc":"2.0","method":"eth_chainId"}')
            assert await node.ask("eth_chainId") == CHAIN_ID

    run(scenario())


def test_subscriptions_need_a_socket(live: Live) -> None:
    with live.api() as api:
        for params in ([], ["newHeads"], [1]):
            expected = (-32601, "notifications not supported")
            assert api.error("eth_subscribe", *params) == expected
        expected = (-32000, "subscription not found")
        assert api.error("eth_unsubscribe", "0x1") == expected


def test_heads_and_logs_are_sent_until_the_subscription_ends(
    trunk: Trunk, live: Live
) -> None:
    key = live.new_key()
    following = hex(len(trunk.builder.blocks) + 1)
    to_bob = "0x" + BOB.address.rjust(32, b"\0").hex()
    wanted = {
        "address": "0x" + trunk.token.hex(),
        "topics": [TRANSFER, None, [to_bob]],
    }

    async def scenario() -> None:
        async with await open_socket(live, key) as node:
            heads = await node.ask("eth_subscribe", "newHeads")
            logs = await node.ask("eth_subscribe", "logs", wanted)
            none = await node.ask("eth_subscribe", "logs", {"topics": [to_bob]})
            until_next = {"topics": [[None]], "fromBlock": "0x0", "toBlock": following}
            early = await node.ask("eth_subscribe", "logs", until_next)
            every = await node.ask("eth_subscribe", "logs", {})
            assert len({heads, logs, none, early, every}) == 5
            block_hash = await trunk.grow(5, 6)
            found = [await node.next_event() for _ in range(7)]
            (head,) = [result for name, result in found if name == heads]
            sent = [result for name, result in found if name == logs]
            for name in (early, every):
                assert [
                    result for found_in, result in found if found_in == name
                ] == sent
            assert head["hash"] == block_hash
            assert "transactions" not in head
            block = await node.ask("eth_getBlockByHash", block_hash, False)
            assert head.items() <= block.items()
            receipts = await node.ask("eth_getBlockReceipts", block_hash)
            assert sent == [log for receipt in receipts for log in receipt["logs"]]
            assert [log["removed"] for log in sent] == [False, False]
            assert await node.ask("eth_unsubscribe", heads) is True
            again = await node.ask("eth_unsubscribe", heads)
            assert again == {"code": -32000, "message": "subscription not found"}
            await trunk.grow(7)
            for _ in range(2):
                name, log = await node.next_event()
                assert (name in (logs, every), int(log["data"], 16)) == (True, 7)
            assert node.waiting == []

    run(scenario())


def test_a_reorganisation_removes_logs_and_sends_the_new_branch(
    trunk: Trunk, live: Live
) -> None:
    common = len(trunk.builder.blocks)
    left, right = trunk.builder.fork(), trunk.builder.fork()
    trunk.builder = right
    for amount in (1, 2):
        trunk.transfer(amount, left)
        left.block()
    for amount in (11, 12, 13):
        trunk.transfer(amount, right)
        right.block()

    async def scenario() -> None:
        key = await orm(live.new_key)
        async with (
            await open_socket(live, key) as heads,
            await open_socket(live, key) as logs,
        ):
            await heads.ask("eth_subscribe", "newHeads")
            await logs.ask("eth_subscribe", "logs", {})
            await trunk.bring(left.blocks[common:])
            await heads.results(2)
            await logs.results(2)
            await trunk.bring(right.blocks[common:])
            expected = [
                "0x" + block.header.hash.hex() for block in right.blocks[common:]
            ]
            assert [head["hash"] for head in await heads.results(3)] == expected
            told = [
                (log["removed"], int(log["data"], 16)) for log in await logs.results(5)
            ]
            assert told == [(True, 2), (True, 1), (False, 11), (False, 12), (False, 13)]

    run(scenario())


@scenario
async def test_a_subscription_in_a_batch_begins_after_the_response(
    trunk: Trunk, live: Live
) -> None:
    batch = [{**request("eth_subscribe", "newHeads"), "id": n} for n in range(3)]
    async with await open_socket(live, await orm(live.new_key)) as node:
        answers = await node.exchange([*batch, request("eth_subscribe", "other")])
        ids = [answer.get("result") for answer in answers[:3]]
        assert answers[3]["error"] == {
            "code": -32601,
            "message": 'no "other" subscription in eth namespace',
        }
        await trunk.grow()
        assert sorted(ids) == sorted([(await node.next_event())[0] for _ in ids])


_UNMARSHAL = "invalid argument {}: json: cannot unmarshal {} into Go value of type {}"
_NO_NAME = "expected subscription name as first argument"
_TOO_MANY = "too many arguments, want at most {}"
_ADDRESS, _WORD = "0x" + "11" * 20, "0x" + "22" * 32


WRONG_ARGUMENTS: list[tuple[str, Any, int, str]] = [
    ("eth_subscribe", None, -32602, "non-array args"),
    ("eth_subscribe", {}, -32602, "non-array args"),
    ("eth_subscribe", [], -32602, _NO_NAME),
    ("eth_subscribe", [None], -32602, _NO_NAME),
    ("eth_subscribe", [1], -32602, _NO_NAME),
    (
        "eth_subscribe",
        ["bogus", 1, 2],
        -32601,
        'no "bogus" subscription in eth name',
    ),
    ("eth_subscribe", ["newHeads", None], -32602, _TOO_MANY.format(1)),
    ("eth_subscribe", ["syncing", False], -32602, _TOO_MANY.format(1)),
    (
        *("eth_subscribe", ["newPendingTransactions", 1, None], -32602),
        _UNMARSHAL.format(1, "number", "bool"),
    ),
    (
        *("eth_subscribe", ["newPendingTransactions", True, None], -32602),
        _TOO_MANY.format(2),
    ),
    ("eth_subscribe", ["logs"], -32602, "missing value for required argument 1"),
    ("eth_subscribe", ["logs", {}, None], -32602, _TOO_MANY.format(2)),
    (
        *("eth_subscribe", ["logs", []], -32602),
        _UNMARSHAL.format(1, "array", "filters.input"),
    ),
    (
        *("eth_subscribe", ["logs", {"topics": [["0x12"]]}], -32602),
        "invalid argument 1: hex has invalid length 1 after decoding; expected 32",
    ),
    (
        *("eth_subscribe", ["logs", {"Address": [None]}], -32602),
        "invalid argument 1: non-string address at index 0",
    ),
    (
        *("eth_subscribe", ["logs", {"toBlock": "pending"}], -32602),
        "pending logs are not supported",
    ),
    (
        *("eth_subscribe", ["logs", {"fromBlock": "0x5", "toBlock": "0x2"}]),
        *(-32602, "invalid block range params"),
    ),
    (
        *(
            "eth_subscribe",
            ["logs", {"blockHash": _WORD, "toBlock": "0x2"}],
            -32602,
        ),
        "invalid argument 1: cannot specify both BlockHash and FromBlock/ToBlock",
    ),
    (
        *("eth_subscribe", ["logs", {"address": [_ADDRESS] * 1001}], -32000),
        "exceed max addresses or topics per search position",
    ),
    (
        *("eth_subscribe", ["logs", {"topics": [[_WORD] * 1001]}], -32602),
        "invalid argument 1: exceed max topics",
    ),
    ("eth_unsubscribe", None, -32602, "missing value for required argument 0"),
    ("eth_unsubscribe", {}, -32602, "non-array args"),
    ("eth_unsubscribe", [None], -32602, "missing value for required argument 0"),
    ("eth_unsubscribe", [5, 5], -32602, _UNMARSHAL.format(0, "number", "rpc.ID")),
    ("eth_unsubscribe", ["0x1", None], -32602, _TOO_MANY.format(1)),
]


@scenario
async def test_wrong_arguments_are_refused_as_by_geth(live: Live) -> None:
    async with await open_socket(live, await orm(live.new_key)) as node:
        for method, params, code, message in WRONG_ARGUMENTS:
            answer = await node.exchange({**request(method), "params": params})
            assert answer["error"]["code"] == code, params
            assert answer["error"]["message"].startswith(message), params


@scenario
async def test_syncing_is_reported_at_once(live: Live) -> None:
    async with await open_socket(live, await orm(live.new_key)) as node:
        name = await node.ask("eth_subscribe", "syncing")
        assert await node.next_event() == (name, False)
        assert await node.ask("eth_unsubscribe", name) is True


def test_pending_transactions_of_an_upstream_are_sent(trunk: Trunk) -> None:
    kind, name = "newPendingTransactions", "0x" + "ab" * 32

    async def scenario(live: Live, upstream: UpstreamServer) -> None:
        key = await orm(live.new_key)
        async with await open_socket(live, key, "pending") as node:
            hashes = await node.ask("eth_subscribe", kind)
            objects = await node.ask("eth_subscribe", kind, True)
            await until(lambda: any(upstream.sockets.values()))
            upstream.notify(kind, name)
            found = dict([await node.next_event() for _ in range(2)])
            assert found[hashes] == name
            assert (found[objects]["hash"], found[objects]["blockHash"]) == (name, None)
            wrong = await node.ask("eth_subscribe", kind, "yes")
            assert wrong["code"] == -32602

    with running_upstream() as upstream:
        upstream.methods["eth_blockNumber"] = "0x0"
        upstream.methods["eth_getTransactionByHash"] = lambda found: {"hash": found}
        chains.import_blocks("pending", trunk.genesis, [])
        network = Network.objects.get(slug="pending")
        # This happens before the service starts, which would notice it with a delay.
        add_upstream(network=network, url=upstream.url("ws"))
        with live_service() as live:
            run(scenario(live, upstream))
        delete_network(network)


def test_a_socket_is_closed_when_its_key_is_refused(trunk: Trunk, live: Live) -> None:
    keys = [live.new_key() for _ in range(5)]
    revoked, disabled, expired, moved, spared = keys

    def change() -> None:
        revoke_version(version=version_of(revoked), reason="lost")
        disable_key(api_key=api_key_of(disabled))
        soon = timezone.now() + timedelta(seconds=3)
        update_key(api_key=api_key_of(expired), expires_at=soon)
        set_allowlist(
            api_key=api_key_of(moved), kind=AllowlistKind.IP, values=["192.0.2.1"]
        )

    async def scenario() -> None:
        sockets = [await open_socket(live, key) for key in keys]
        for node in sockets:
            await node.ask("eth_subscribe", "newHeads")
        await orm(change)
        told = [await node.closed() for node in sockets[:4]]
        assert {code for code, _ in told} == {4401}
        assert [reason for _, reason in told] == [
            "this API key was revoked",
            "this API key is disabled; contact support",
            told[2][1],
            "rejected due to API key settings",
        ]
        assert told[2][1].startswith("this API key expired")
        block_hash = await trunk.grow()
        (head,) = await sockets[4].results(1)
        assert head["hash"] == block_hash
        owner = await orm(lambda: api_key_of(spared).owner)
        await orm(lambda: switch_customer(user=owner, is_active=False))
        assert (await sockets[4].closed())[0] == 4401
        await orm(lambda: switch_customer(user=owner, is_active=True))

    run(scenario())


def test_a_socket_is_closed_when_its_network_is_removed(
    trunk: Trunk, live: Live
) -> None:
    chains.import_blocks("other", trunk.genesis, [])
    with live.api("other") as api:
        wait_until(lambda: api.send(request("eth_chainId")).status_code == 200)

    async def scenario() -> None:
        async with await open_socket(live, await orm(live.new_key), "other") as node:
            await orm(delete_network, await orm(Network.objects.get, slug="other"))
            assert await node.closed() == (4401, "unknown network")

    run(scenario())


def test_allowlists_hold_for_subscriptions(trunk: Trunk, live: Live) -> None:
    named, contracts = live.new_key(), live.new_key()
    methods = AllowlistKind.METHOD
    set_allowlist(api_key=api_key_of(named), kind=methods, values=["eth_chainId"])
    token = "0x" + trunk.token.hex()
    set_allowlist(
        api_key=api_key_of(contracts), kind=AllowlistKind.CONTRACT, values=[token]
    )

    async def scenario() -> None:
        async with await open_socket(live, named) as node:
            error = await node.ask("eth_subscribe", "newHeads")
            assert error["data"]["reason"] == "method_not_allowed"
            assert await node.ask("eth_chainId") == CHAIN_ID
        async with await open_socket(live, contracts) as node:
            for wanted in ({}, {"address": "0x" + "11" * 20}):
                error = await node.ask("eth_subscribe", "logs", wanted)
                assert error["data"]["reason"] == "contract_not_allowed"
            await node.ask("eth_subscribe", "logs", {"address": token})
            await trunk.grow(3)
            assert len(await node.results(1)) == 1
            other = ["0x" + "22" * 20]
            await orm(
                lambda: set_allowlist(
                    api_key=api_key_of(contracts),
                    kind=AllowlistKind.CONTRACT,
                    values=other,
                )
            )
            assert (await node.closed())[0] == 4401

    run(scenario())


def test_notifications_are_charged_and_counted(trunk: Trunk, live: Live) -> None:
    key = live.new_key()

    def counted() -> tuple[int, int] | None:
        rows = UsageBucket.objects.filter(
            api_key=api_key_of(key), span=86400, method="eth_subscription"
        )
        return rows.values_list("calls", "credits").first()

    async def scenario() -> None:
        async with await open_socket(live, key) as node:
            await node.ask("eth_subscribe", "newHeads")
            await node.ask("eth_subscribe", "logs", {})
            await trunk.grow(1, 2)
            await node.results(3)
            await until(lambda: orm(lambda: counted() == (3, 3)))

    run(scenario())


def test_a_key_without_credits_gets_no_more_notifications(
    trunk: Trunk, live: Live
) -> None:
    key = live.new_key()
    set_limits(api_key=api_key_of(key), credits_per_day=3)

    async def scenario() -> None:
        async with await open_socket(live, key) as node:
            await node.ask("eth_subscribe", "logs", {})
            await trunk.grow(1, 2, 3)
            assert await node.closed() == (
                4429,
                "no credits for notifications: daily_quota",
            )

    run(scenario())


@scenario
async def test_bounds_of_a_socket(live: Live) -> None:
    async with await open_socket(live, await orm(live.new_key)) as node:
        batch = [request("eth_subscribe", "newHeads")] * 101
        answers = await node.exchange(batch)
        assert [("result" in answer) for answer in answers] == [True] * 100 + [False]
        assert answers[-1]["error"]["data"]["reason"] == "too_many_subscriptions"
    async with await open_socket(live, await orm(live.new_key)) as node:
        await node.connection.send('"' + "x" * 2**20 + '"')
        assert (await node.closed())[0] == 1009


def test_connections_of_a_key_are_limited(trunk: Trunk) -> None:
    async def scenario(live: Live) -> None:
        key = await orm(live.new_key)
        first, second = await open_socket(live, key), await open_socket(live, key)
        status, error, _ = await refusal(live, f"/ws/v3/{key}")
        assert (status, error["data"]["reason"]) == (429, "too_many_connections")
        await first.connection.close()

        async def opens_again() -> bool:
            try:
                third = await open_socket(live, key)
            except InvalidStatus:
                return False
            await third.connection.close()
            return True

        await until(opens_again)
        await second.connection.close()

    with live_service(env={"CONNECTIONS_PER_KEY": "2"}) as live:
        run(scenario(live))


def test_a_client_that_does_not_read_is_disconnected(trunk: Trunk) -> None:
    """Of two clients of a key, the one that reads nothing is disconnected."""
    env = {
        "NODEAPI_MAX_BATCH_RESPONSE_BYTES": "1000000",
        "BUFFER_BYTES_PER_KEY": "40000000",
    }
    block = request("eth_getBlockByNumber", "latest", True)

    async def scenario(live: Live) -> None:
        key = await orm(live.new_key)
        async with await open_socket(live, key) as reader:
            stuck = await open_socket(live, key)
            transport = stuck.connection.transport
            transport.pause_reading()
            text = json.dumps([block] * 500)
            with suppress(OSError, ConnectionClosed):
                while True:
                    async with asyncio.timeout(PATIENCE_SECONDS):
                        await stuck.connection.send(text)
                    assert await reader.ask("eth_chainId") == CHAIN_ID
            # The close frame does not arrive, because unread data precedes it.
            transport.resume_reading()
            with pytest.raises(ConnectionClosed):
                while True:
                    await in_time(stuck.connection.recv())
            assert await reader.ask("eth_chainId") == CHAIN_ID

    with live_service(env=env) as live:
        run(scenario(live))
