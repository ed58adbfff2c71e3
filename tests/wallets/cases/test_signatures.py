"""Cases 108–110 and 112, and further tests of signatures with two processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from networks.models import Network
from networks.services import configure_network
from tests.support.coroutines import scenario
from tests.support.dapps import Owner, failure, orm, sockets_apart
from tests.support.live import Live
from tests.support.pages import Visit, boxes
from tests.support.signing import (
    MAIL,
    PASSPHRASE,
    SIGNER,
    add_key,
    signer_of,
    signer_of_data,
)
from tests.support.upstream_node import UpstreamNode, running_node
from tests.support.waiting import until
from tests.support.wallet import A1, M0
from wallets.client import WalletClient
from wallets.models import ConsentRequest, RequestState
from wallets.permissions import Group

HELLO = "0x" + b"Hello".hex()
TRANSFER = {"from": SIGNER, "to": "0x" + "b0" * 20, "value": hex(10**18)}
ONE = {"optionalScopes": {"eip155:1": M0}}


@pytest.fixture
def signing(owner: Owner) -> Owner:
    """Return U, who has an account with a key besides A1 and A2."""
    add_key(owner.user)
    return owner


@pytest.fixture
def visit(live: Live, owner: Owner) -> Iterator[Visit]:
    """Return the browser of the user U."""
    found = Visit(live.base_url, owner.user)
    yield found
    found.close()


@pytest.fixture
def node() -> Iterator[UpstreamNode]:
    """Return a node that accepts transactions of eip155:1."""
    network = Network.objects.get(chain_id=1)
    with running_node() as running:
        configure_network(network=network, upstream_urls=[running.url])
        yield running
        configure_network(network=network, upstream_urls=[])


async def granted(owner: Owner, client: WalletClient, **choice: Any) -> Any:
    """Return a session that grants P the account with U's key, and A1."""
    return await owner.granted(client, ONE, addresses={SIGNER, A1}, **choice)


async def asked(owner: Owner, client: WalletClient, *call: Any) -> asyncio.Task[Any]:
    """Return a call that waits for U's decision."""
    task = asyncio.create_task(client.invoke("eip155:1", *call))
    await owner.until_pending()
    return task


async def decide(owner: Owner, visit: Visit, decision: str) -> int:
    """Decide on U's page with U's passphrase, and return the HTTP status."""
    path = f"/wallet/signatures/{(await orm(owner.pending)).pk}"
    seen = boxes((await orm(visit.get, path)).text)
    form = {**seen, "decision": decision, "passphrase": PASSPHRASE}
    status: int = await orm(visit.post, path, **form)
    return status


async def nothing_waits(owner: Owner) -> bool:
    waiting = ConsentRequest.objects.pending().filter(dapp=owner.dapp)
    return not await orm(waiting.exists)


@pytest.mark.case(108)
@scenario
async def test_sender_that_is_not_in_the_scope_is_refused(signing: Owner) -> None:
    async with await signing.connect() as s1:
        await granted(signing, s1)
        for sender in ("0x" + "c0" * 20, A1):  # an unknown and a watch-only account
            transaction = {**TRANSFER, "from": sender}
            call = s1.invoke("eip155:1", "eth_sendTransaction", transaction)
            assert (await failure(call)).code == 4100
        assert await nothing_waits(signing)


@pytest.mark.case(109)
@pytest.mark.parametrize(
    "call",
    [("personal_sign", HELLO, SIGNER), ("eth_signTypedData_v4", SIGNER, MAIL)],
    ids=["message", "typed data"],
)
def test_user_says_no(signing: Owner, visit: Visit, call: Any) -> None:
    @scenario
    async def refused() -> None:
        async with await signing.connect() as s1:
            await granted(signing, s1)
            task = await asked(signing, s1, *call)
            assert await decide(signing, visit, "reject") == 302
            assert (await failure(task)).code == 4001

    refused()


@pytest.mark.case(110)
@scenario
async def test_typed_data_for_another_chain_is_refused(signing: Owner) -> None:
    async with await signing.connect() as s1:
        await granted(signing, s1)
        data = {**MAIL, "domain": {**MAIL["domain"], "chainId": 137}}
        call = s1.invoke("eip155:1", "eth_signTypedData_v4", SIGNER, data)
        assert (await failure(call)).code == -32602
        assert await nothing_waits(signing)


HALF = "a\ud800"
ODD_NAME = {
    "types": {**MAIL["types"], "Mail": [{"name": HALF, "type": "string"}]},
    "primaryType": "Mail",
    "domain": MAIL["domain"],
    "message": {HALF: "Hello"},
}
"""Typed data in which a member's name contains a lone surrogate."""


def invoked(method: str, *params: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    request = {"method": method, "params": list(params), **more}
    return "wallet_invokeMethod", {"scope": "eip155:1", "request": request}


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (
            invoked("eth_signTypedData_v4", SIGNER, ODD_NAME),
            "contains a lone surrogate",
        ),
        (
            # The frame contains the character itself, without an escape.
            invoked("eth_signTypedData_v4", SIGNER, json.dumps(ODD_NAME)),
            "types.Mail: contains a lone surrogate, which is not a character",
        ),
        (invoked("personal_sign", HALF, SIGNER), "contains a lone surrogate"),
        (invoked("eth_getBalance", HALF, "latest"), "contains a lone surrogate"),
        (invoked("eth_chainId", **{HALF: 1}), "contains a lone surrogate"),
        (
            ("wallet_createSession", {"optionalScopes": {HALF: M0}}),
            "contains a lone surrogate",
        ),
        (
            ("wallet_createSession", {**ONE, "sessionProperties": {"expiry": HALF}}),
            "contains a lone surrogate",
        ),
        (("wallet_revokeSession", {"scopes": [HALF]}), "contains a lone surrogate"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_lone_surrogate_is_refused_when_it_comes(
    signing: Owner, call: Any, why: str
) -> None:
    @scenario
    async def refused() -> None:
        async with await signing.connect() as s1:
            await granted(signing, s1)
            error = await failure(s1.call(*call))
            assert error.code == -32602
            assert why in f"{error} {error.data}"
            assert await nothing_waits(signing)

    refused()


@scenario
async def test_structure_that_would_be_signed_as_a_number_is_refused(
    signing: Owner,
) -> None:
    types = {
        **{name: MAIL["types"][name] for name in ("EIP712Domain", "Person")},
        "uint": MAIL["types"]["Mail"],
        "Box": [{"name": "mail", "type": "uint"}],
    }
    data = {"types": types, "primaryType": "Box", "domain": MAIL["domain"]}
    data["message"] = {"mail": MAIL["message"]}
    async with await signing.connect() as s1:
        await granted(signing, s1)
        call = s1.invoke("eip155:1", "eth_signTypedData_v4", SIGNER, data)
        error = await failure(call)
        assert (error.code, error.message) == (
            -32602,
            "types: uint is an elementary type and can't be a structure",
        )
        assert await nothing_waits(signing)


@pytest.mark.case(112)
@scenario
async def test_group_that_was_unticked_is_refused(
    signing: Owner, node: UpstreamNode
) -> None:
    async with await signing.connect() as s1:
        session = await granted(signing, s1, groups=set(Group) - {Group.SEND})
        methods = session["sessionScopes"]["eip155:1"]["methods"]
        assert "personal_sign" in methods
        assert "eth_sendTransaction" not in methods
        call = s1.invoke("eip155:1", "eth_sendTransaction", TRANSFER)
        assert (await failure(call)).code == 4100
        assert node.calls == []


@scenario
async def test_answers_reach_the_calling_socket_in_either_process(
    signing: Owner, visit: Visit
) -> None:
    async with sockets_apart(signing) as (s1, s2):
        await granted(signing, s1)
        one = await asked(signing, s1, "personal_sign", HELLO, SIGNER)
        assert await decide(signing, visit, "approve") == 302
        two = await asked(signing, s2, "eth_signTypedData_v4", SIGNER, MAIL)
        assert await decide(signing, visit, "approve") == 302
        assert signer_of(b"Hello", await one) == SIGNER
        assert signer_of_data(MAIL, await two) == SIGNER


@scenario
async def test_transaction_goes_from_a_socket_over_a_page_to_the_node(
    signing: Owner, visit: Visit, node: UpstreamNode
) -> None:
    async with await signing.connect() as s1:
        await granted(signing, s1)
        task = await asked(signing, s1, "eth_sendTransaction", TRANSFER)
        assert await decide(signing, visit, "approve") == 302
        found = node.answer("eth_getTransactionByHash", [await task])
        assert found is not None
        assert node.sent()[0]["value"] == 10**18


@scenario
async def test_request_of_a_socket_that_closes_is_withdrawn(
    signing: Owner, visit: Visit
) -> None:
    async with await signing.connect() as s1:
        await granted(signing, s1)
        task = await asked(signing, s1, "personal_sign", HELLO, SIGNER)
        request = await orm(signing.pending)
    await asyncio.gather(task, return_exceptions=True)
    await until(lambda: nothing_waits(signing))
    await orm(request.refresh_from_db)
    assert request.state == RequestState.WITHDRAWN
    page = await orm(visit.get, f"/wallet/signatures/{request.pk}")
    assert "Nothing was signed" in page.text


@scenario
async def test_revoke_ends_what_waits_for_a_signature(signing: Owner) -> None:
    async with sockets_apart(signing) as (s1, s2):
        await granted(signing, s1)
        task = await asked(signing, s1, "personal_sign", HELLO, SIGNER)
        assert await s2.call("wallet_revokeSession") is True
        assert (await failure(task)).code == 4100
        assert await nothing_waits(signing)
