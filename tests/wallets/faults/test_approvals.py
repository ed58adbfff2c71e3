"""Approvals that race with each other, a revocation or a deleted key, in two processes.

In any order, nothing is signed twice or after its grant was revoked, and the dapp has a
signature exactly if the user's log contains it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db.models import QuerySet

from networks.models import Network
from networks.services import configure_network
from tests.support.coroutines import scenario
from tests.support.dapps import Owner, failure, next_event, orm, sockets_apart
from tests.support.live import Live
from tests.support.pages import Visit, boxes
from tests.support.signing import KEY, PASSPHRASE, SIGNER, add_key, signer_of
from tests.support.upstream_node import UpstreamNode, running_node
from tests.support.waiting import until
from tests.support.wallet import A1, BY_USER, M0
from wallets.client import CallFailed, WalletClient
from wallets.models import Account, Activity, ConsentRequest, Event, Keystore, Session
from wallets.services.keystores import MAX_TRIES, delete_key
from wallets.services.signatures import MAX_WAITING

HELLO = "0x" + b"Hello".hex()
ONE = {"optionalScopes": {"eip155:1": M0, "wallet:eip155": M0}}
TRANSFER = {"from": SIGNER, "to": "0x" + "b0" * 20, "value": hex(10**15)}
ROUNDS = 4
AT_ONCE = MAX_TRIES - 1
"""Number of concurrent approvals. Each passphrase counts as wrong until it is verified."""


@pytest.fixture
def owner(live: Live) -> Owner:
    """Return a user who has a key."""
    found = Owner(live.base_url)
    add_key(found.user)
    return found


@pytest.fixture
def visits(live: Live, owner: Owner) -> Iterator[list[Visit]]:
    """Return the user's browsers; their connections are spread over both processes."""
    found = [Visit(live.base_url, owner.user) for _ in range(AT_ONCE)]
    yield found
    for visit in found:
        visit.close()


@pytest.fixture
def node(live: Live) -> Iterator[UpstreamNode]:
    """Return a node that accepts transactions of eip155:1."""
    network = Network.objects.get(chain_id=1)
    with running_node() as running:
        configure_network(network=network, upstream_urls=[running.url])
        yield running
        configure_network(network=network, upstream_urls=[])


async def granted(owner: Owner, client: WalletClient) -> None:
    await owner.granted(client, ONE, addresses={SIGNER, A1})


async def asked(owner: Owner, client: WalletClient, *call: Any) -> asyncio.Task[Any]:
    """Return a call that waits for the user."""
    task = asyncio.create_task(client.invoke("eip155:1", *call))
    await owner.until_pending()
    return task


async def looked(owner: Owner, visits: list[Visit]) -> tuple[str, dict[str, Any]]:
    """Open the only request in all browsers. Return its address and the form data."""
    path = f"/wallet/signatures/{(await orm(owner.pending)).pk}"
    for visit in visits:
        seen = boxes((await orm(visit.get, path)).text)
    return path, {**seen, "decision": "approve", "passphrase": PASSPHRASE}


async def all_approve(
    visits: list[Visit], path: str, form: dict[str, Any]
) -> Counter[int]:
    posts = (asyncio.to_thread(visit.post, path, **form) for visit in visits)
    return Counter(await asyncio.gather(*posts))


def signed(owner: Owner) -> int:
    """Return the number of signatures in the user's log."""
    return Activity.objects.filter(user=owner.user, event=Event.SIGNED).count()


async def outcome(task: asyncio.Task[Any]) -> Any:
    """Return a call's result, or the code of its error."""
    try:
        return await task
    except CallFailed as error:
        return error.code


@scenario
async def test_many_approvals_of_a_message_sign_it_once(
    owner: Owner, visits: list[Visit]
) -> None:
    async with await owner.connect() as client:
        await granted(owner, client)
        task = await asked(owner, client, "personal_sign", HELLO, SIGNER)
        answers = await all_approve(visits, *await looked(owner, visits))
        assert answers == {302: 1, 409: AT_ONCE - 1}
        assert signer_of(b"Hello", await task) == SIGNER
    assert await orm(signed, owner) == 1


@scenario
async def test_many_approvals_of_a_transaction_send_it_once(
    owner: Owner, visits: list[Visit], node: UpstreamNode
) -> None:
    async with await owner.connect() as client:
        await granted(owner, client)
        task = await asked(owner, client, "eth_sendTransaction", TRANSFER)
        answers = await all_approve(visits, *await looked(owner, visits))
        assert answers[302] == 1
        assert answers.total() == AT_ONCE
        assert (await task).startswith("0x")
    assert len(node.raw) == 1
    assert await orm(signed, owner) == 1


@scenario
async def test_approval_and_revocation_agree_on_what_was_first(
    owner: Owner, visits: list[Visit]
) -> None:
    """The dapp revokes on a socket of one process, the user approves on any."""
    given = 0
    async with sockets_apart(owner) as (client, other):
        for _ in range(ROUNDS):
            await granted(owner, client)
            await next_event(other)
            task = await asked(owner, client, "personal_sign", HELLO, SIGNER)
            path, form = await looked(owner, visits[:1])
            revoked = asyncio.create_task(other.call("wallet_revokeSession"))
            answers = await all_approve(visits[:1], path, form)
            assert await revoked is True
            found = await outcome(task)
            if found == 4100:
                assert answers == {409: 1}
            else:
                assert answers == {302: 1}
                given += 1
            assert await orm(signed, owner) == given
            again = client.invoke("eip155:1", "personal_sign", HELLO, SIGNER)
            assert (await failure(again)).code == 4100
            assert await orm(visits[0].post, path, **form) == 409
            await next_event(client)


@scenario
async def test_approval_and_end_of_the_key_agree_on_what_was_first(
    owner: Owner, visits: list[Visit]
) -> None:
    given = 0
    async with await owner.connect() as client:
        for _ in range(ROUNDS):
            await granted(owner, client)
            task = await asked(owner, client, "personal_sign", HELLO, SIGNER)
            path, form = await looked(owner, visits[:1])
            account = await orm(Account.objects.get, address=SIGNER, user=owner.user)
            deleting = orm(delete_key, account=account, cause=BY_USER)
            answers, _ = await asyncio.gather(
                all_approve(visits[:1], path, form), deleting
            )
            found = await outcome(task)
            given += found != 4100
            assert answers in ({302: 1}, {409: 1}, {400: 1})
            assert (answers == {302: 1}) == (found != 4100)
            assert await orm(signed, owner) == given
            assert not await orm(Keystore.objects.filter(account=account).exists)
            session = await client.call("wallet_getSession")
            assert "personal_sign" not in str(session)
            await orm(add_key, owner.user, KEY)
            await orm(owner.revoke)


@scenario
async def test_page_of_a_key_that_was_deleted_signs_nothing(
    owner: Owner, visits: list[Visit]
) -> None:
    async with await owner.connect() as client:
        await granted(owner, client)
        task = await asked(owner, client, "personal_sign", HELLO, SIGNER)
        path, form = await looked(owner, visits[:1])
        account = await orm(Account.objects.get, address=SIGNER, user=owner.user)
        await orm(delete_key, account=account, cause=BY_USER)
        assert (await failure(task)).code == 4100
        await orm(add_key, owner.user, KEY)  # the same account can sign again
        assert await orm(visits[0].post, path, **form) == 409
    assert await orm(signed, owner) == 0


async def has(requests: QuerySet[ConsentRequest], count: int) -> bool:
    return await orm(requests.count) == count


@scenario
async def test_two_requests_for_a_session_are_decided_one_upon_the_other(
    owner: Owner, visits: list[Visit]
) -> None:
    """One page contains the other's approval, or the user has to review it again."""
    async with await owner.connect() as client:
        await granted(owner, client)
        before = (await orm(Session.objects.get, dapp=owner.dapp)).version
        chain = {"chainId": hex(137)}
        more = {"optionalScopes": {"eip155:1337": M0}}
        tasks = [
            asyncio.create_task(
                client.invoke("wallet:eip155", "wallet_addEthereumChain", chain)
            ),
            asyncio.create_task(client.call("wallet_createSession", more)),
        ]
        waiting = ConsentRequest.objects.pending().filter(dapp=owner.dapp)
        await until(lambda: has(waiting, len(tasks)))
        paths = [
            f"/wallet/requests/{pk}"
            for pk in await orm(list, waiting.values_list("pk", flat=True))
        ]
        forms = [
            {**boxes((await orm(visit.get, path)).text), "decision": "approve"}
            for visit, path in zip(visits, paths, strict=False)
        ]
        posts = zip(visits, paths, forms, strict=False)
        statuses = await asyncio.gather(
            *(asyncio.to_thread(v.post, path, **form) for v, path, form in posts)
        )
        assert sorted(statuses) == [302, 409]
        late = statuses.index(409)
        seen = boxes((await orm(visits[late].get, paths[late])).text)
        yes = {**seen, "decision": "approve"}
        assert await orm(visits[late].post, paths[late], **yes) == 302
        await asyncio.gather(*tasks)
        session = await client.call("wallet_getSession")
        assert {"eip155:1", "eip155:137", "eip155:1337"} < set(session["sessionScopes"])
        after = await orm(Session.objects.get, dapp=owner.dapp)
        assert after.version == before + 2


@scenario
async def test_flood_of_what_is_confirmed_leaves_few_in_the_inbox(
    live: Live, owner: Owner
) -> None:
    """Ten sockets request signatures and chains, while another dapp is connected."""
    stranger = await orm(Owner, live.base_url)
    clients = [await owner.connect() for _ in range(10)]
    await granted(owner, clients[0])

    def calls(client: WalletClient) -> Iterator[Any]:
        for _ in range(10):
            yield client.invoke("eip155:1", "personal_sign", HELLO, SIGNER)
            yield client.invoke(
                "wallet:eip155", "wallet_addEthereumChain", {"chainId": hex(137)}
            )

    asking = [
        asyncio.create_task(outcome(asyncio.create_task(call)))
        for client in clients
        for call in calls(client)
    ]
    async with await stranger.connect() as calm:
        await stranger.create(calm)
        assert await calm.invoke("eip155:1", "eth_chainId") == "0x1"
    most = MAX_WAITING + 1
    assert most <= settings.WALLETS_MAX_PENDING
    await until(lambda: sum(not call.done() for call in asking) <= most)
    pending = ConsentRequest.objects.pending().filter(dapp__user=owner.user)
    assert await orm(pending.count) == most
    refused = Counter(call.result() for call in asking if call.done())
    assert set(refused) <= {-32002, -32005}
    await asyncio.gather(*(client.close() for client in clients))
    await asyncio.gather(*asking, return_exceptions=True)
    await until(lambda: has(pending, 0))
    assert await orm(signed, owner) == 0
