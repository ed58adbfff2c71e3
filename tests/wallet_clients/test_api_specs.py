"""The examples in MetaMask's specification of the Multichain API: requests and results.

Results are not compared completely, because the examples list methods that MetaMask no
longer has, and MetaMask grants all methods regardless of the request. Scopes, accounts and
notifications have to be equal. Granted methods that MetaMask also has must be in the example.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft7Validator

from networks.models import Network
from networks.services import configure_network
from samples.builder import ChainBuilder
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains
from tests.support.coroutines import scenario
from tests.support.dapps import Owner, failure, next_event, orm, sockets_apart
from tests.support.live import Live, live_service
from tests.support.pages import Visit, boxes
from tests.support.rows import add_block, make_network, set_head
from tests.support.signing import PASSPHRASE, SIGNER, add_key
from tests.support.upstream_node import UpstreamNode, running_node
from tests.support.wallet import A1, M0
from tests.wallet_clients.conftest import PACKAGES
from wallets import internal_key

DOCUMENTS = PACKAGES / "api-specs" / "dist" / "build"
SCOPE = "eip155:1337"
ALICE = Signer("alice")


@cache
def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCUMENTS / name).read_text())
    return found


def methods(name: str) -> dict[str, dict[str, Any]]:
    """Return the description of each method in a document."""
    return {method["name"]: method for method in document(name)["methods"]}


def check(name: str, schema: object, value: object) -> None:
    """Check that a value matches a schema of a document."""
    components = document(name)["components"]
    rooted = {"allOf": [schema], "components": components}
    Draft7Validator(rooted).validate(value)


def check_result(method: str, value: object) -> None:
    name = "multichain-openrpc.json"
    check(name, methods(name)[method]["result"]["schema"], value)


def check_params(method: str, params: dict[str, Any]) -> None:
    name = "multichain-openrpc.json"
    described = methods(name)[method]["params"]
    assert set(params) <= {param["name"] for param in described}
    for param in described:
        if param.get("required") or param["name"] in params:
            check(name, param["schema"], params[param["name"]])


def examples(method: str) -> list[dict[str, Any]]:
    """Return the examples of a method of the Multichain API, none without the packages."""
    if not DOCUMENTS.is_dir():
        return [{"name": "missing"}]
    found: list[dict[str, Any]] = methods("multichain-openrpc.json")[method]["examples"]
    return found


def methods_of_metamask() -> set[str]:
    """Return the methods that any example of a session grants."""
    return {
        method
        for example in examples("wallet_createSession")
        for scope in example["result"]["value"]["sessionScopes"].values()
        for method in scope["methods"]
    }


def by_name(example: dict[str, Any]) -> dict[str, Any]:
    return {param["name"]: param["value"] for param in example["params"]}


def genesis() -> dict[str, Any]:
    return fork_genesis("shanghai", ALICE, chain_id=1337)


@pytest.fixture(scope="module")
def builder(module_db: None) -> ChainBuilder:
    """Serve the chains of the examples. Return the builder of chain 1337."""
    mainnet = make_network("main", chain_id=1)
    add_block(mainnet, "five", 5)
    set_head(mainnet, "five", 5)
    builder = ChainBuilder(genesis())
    builder.send(ALICE, bytes.fromhex(A1[2:]), b"", value=5)
    builder.block()
    chains.import_blocks("dev", genesis(), builder.blocks)
    # The blocks in the document do not have this member.
    Network.objects.filter(slug="dev").update(emit_total_difficulty=False)
    return builder


@pytest.fixture(scope="module")
def block(builder: ChainBuilder) -> Any:
    """Return the block of 1337 that has a transaction."""
    return builder.blocks[0]


@pytest.fixture(scope="module")
def live(builder: ChainBuilder) -> Iterator[Live]:
    internal_key.ensure()
    with live_service(workers=2) as live:
        yield live


@pytest.fixture
def owner(live: Live) -> Owner:
    """Return a user whose first account is that of the examples."""
    return Owner(live.base_url)


@pytest.mark.parametrize(
    "example", examples("wallet_createSession"), ids=lambda example: example["name"]
)
@scenario
async def test_session_of_an_example_is_granted(
    owner: Owner, example: dict[str, Any]
) -> None:
    async with await owner.connect() as client:
        empty = await client.call("wallet_getSession")
        check_result("wallet_getSession", empty)
        created = await owner.granted(client, by_name(example))
        check_result("wallet_createSession", created)
        session = await client.call("wallet_getSession")
        check_result("wallet_getSession", session)
        assert session == created
    expected = example["result"]["value"]
    assert created["sessionProperties"] == expected["sessionProperties"]
    shown = expected["sessionScopes"]
    assert created["sessionScopes"].keys() == shown.keys()
    for name, scope in created["sessionScopes"].items():
        assert scope["accounts"] == shown[name]["accounts"]
        assert scope["notifications"] == shown[name]["notifications"]
        granted = methods_of_metamask() & set(scope["methods"])
        assert granted <= set(shown[name]["methods"])


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"optionalScopes": {"eip155:10124": M0}}, 5100),
        ({"optionalScopes": {SCOPE: M0}, "sessionProperties": {}}, 5302),
    ],
)
@scenario
async def test_errors_are_those_that_are_listed(
    owner: Owner, params: dict[str, Any], code: int
) -> None:
    listed = methods("multichain-openrpc.json")["wallet_createSession"]["errors"]
    assert code in {error.get("code") for error in listed}
    async with await owner.connect() as client:
        error = await failure(client.call("wallet_createSession", params))
        assert error.code == code


@scenario
async def test_other_examples_are_answered(owner: Owner) -> None:
    """The examples of wallet_invokeMethod only read a balance, without naming the account."""
    async with await owner.connect() as client:
        await owner.create(client, "eip155:1")
        (call,) = examples("wallet_invokeMethod")
        error = await failure(client.call("wallet_invokeMethod", by_name(call)))
        assert (error.code, error.message) == (
            -32602,
            "missing value for required argument 0",
        )
        for method in ("wallet_getSession", "wallet_revokeSession"):
            (example,) = examples(method)
            assert example["params"] == []
            for params in ([], {}, None):
                check_result(method, await client.call(method, params))


@scenario
async def test_what_the_wallet_says_by_itself_is_as_described(owner: Owner) -> None:
    async with sockets_apart(owner) as (client, other):
        await owner.create(client, SCOPE, "eip155:1", "wallet:eip155", "wallet")
        event = await next_event(other)
        assert event["method"] == "wallet_sessionChanged"
        check_params("wallet_sessionChanged", event["params"])
        await orm(owner.revoke)
        check_params("wallet_sessionChanged", (await next_event(client))["params"])


@scenario
async def test_blocks_are_reported_as_described(
    owner: Owner, builder: ChainBuilder
) -> None:
    async with await owner.connect() as client:
        await owner.create(client, SCOPE)
        await client.invoke(SCOPE, "eth_subscribe", "newHeads")
        block = builder.block()
        await orm(chains.import_blocks, "dev", genesis(), [block])
        event = await next_event(client)
        assert event["method"] == "wallet_notify"
        check_params("wallet_notify", event["params"])
        notification = event["params"]["notification"]
        assert notification["method"] == "eth_subscription"
        assert notification["params"]["result"]["number"] == hex(block.header.number)


CONFIRMED = ("personal_sign", "eth_signTypedData_v4", "eth_sendTransaction")


def confirmed_call(method: str, signer: str) -> list[Any]:
    """Return the call of MetaMask's example with an existing account."""
    (example, *_) = methods("openrpc.json")[method]["examples"]
    params = [param["value"] for param in example["params"]]
    if method == "personal_sign":
        return [params[0], signer]
    if method == "eth_signTypedData_v4":
        domain = {**params[1]["domain"], "chainId": 1337}
        return [signer, {**params[1], "domain": domain}]
    return [{**params[0], "from": signer}]


@pytest.fixture
def node() -> Iterator[UpstreamNode]:
    """Return a node that accepts transactions of chain 1337."""
    network = Network.objects.get(slug="dev")
    with running_node() as running:
        running.chain_id = 1337
        configure_network(network=network, upstream_urls=[running.url])
        yield running
        configure_network(network=network, upstream_urls=[])


@pytest.mark.parametrize("method", CONFIRMED)
@scenario
async def test_what_is_confirmed_answers_its_example_and_4001_when_refused(
    live: Live, owner: Owner, node: UpstreamNode, method: str
) -> None:
    await orm(add_key, owner.user)
    visit = await orm(Visit, live.base_url, owner.user)
    async with await owner.connect() as client:
        params = {"optionalScopes": {SCOPE: M0}}
        await owner.granted(client, params, addresses={SIGNER})
        for decision in ("reject", "approve"):
            call = client.invoke(SCOPE, method, *confirmed_call(method, SIGNER))
            waiting = asyncio.create_task(call)
            await owner.until_pending()
            path = f"/wallet/signatures/{(await orm(owner.pending)).pk}"
            form = {**boxes((await orm(visit.get, path)).text), "decision": decision}
            assert await orm(visit.post, path, passphrase=PASSPHRASE, **form) == 302
            if decision == "reject":
                assert (await failure(waiting)).code == 4001
            else:
                described = methods("openrpc.json")[method]["result"]["schema"]
                check("openrpc.json", described, await waiting)
    visit.close()


@scenario
async def test_chain_is_added_or_4001_when_refused(owner: Owner) -> None:
    method = "wallet_addEthereumChain"
    described = methods("openrpc.json")[method]["result"]["schema"]
    (example,) = methods("openrpc.json")[method]["examples"]
    chain = {**example["params"][0]["value"], "chainId": "0x1"}
    async with await owner.connect() as client:
        await owner.create(client, SCOPE, "wallet:eip155")
        for decide in (owner.reject, owner.approve):
            call = client.invoke("wallet:eip155", method, chain)
            waiting = asyncio.create_task(call)
            await owner.until_pending()
            await orm(decide)
            if decide == owner.reject:
                assert (await failure(waiting)).code == 4001
            else:
                check("openrpc.json", described, await waiting)
        event = await next_event(client)
        assert list(event["params"]["sessionScopes"])[-1] == "eip155:1"


CHAIN_METHODS = """
    web3_clientVersion eth_subscribe eth_unsubscribe eth_blockNumber eth_chainId
    eth_getBlockByHash eth_getBlockByNumber eth_getBlockTransactionCountByHash
    eth_getBlockTransactionCountByNumber eth_getStorageAt
    eth_getTransactionByBlockHashAndIndex eth_getTransactionByBlockNumberAndIndex
    eth_getTransactionByHash eth_getTransactionReceipt eth_getUncleCountByBlockHash
    eth_getUncleCountByBlockNumber eth_syncing
"""
"""Methods of MetaMask's other document that the node serves."""


@pytest.mark.parametrize("method", CHAIN_METHODS.split())
@scenario
async def test_methods_of_a_chain_answer_their_examples(
    owner: Owner, block: Any, method: str
) -> None:
    """Unchanged examples, and examples with an existing block and transaction."""
    described = methods("openrpc.json")[method]
    real = {
        "Block hash": "0x" + block.header.hash.hex(),
        "Transaction hash": "0x" + block.transactions[0].hash.hex(),
        "Transaction index": "0x0",
        "Block": hex(block.header.number),
    }
    async with await owner.connect() as client:
        await owner.create(client, SCOPE)
        names = [param["name"] for param in described["params"]]
        for example in described["examples"]:
            as_shown = [param["value"] for param in example["params"]]
            ours = [
                real.get(name, value)
                for name, value in zip(names, as_shown, strict=False)
            ]
            for given in (as_shown, ours):
                found = await client.invoke(SCOPE, method, *given)
                check("openrpc.json", described["result"]["schema"], found)
            if method.startswith("eth_get"):
                assert found is not None
