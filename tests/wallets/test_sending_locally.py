"""eth_sendTransaction on a network without upstreams, which has a local pool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis
from tests.support import chains
from tests.support.signing import PASSPHRASE, SIGNER, add_key
from tests.support.wallet import BY_USER, Rig
from wallets.errors import NotSent
from wallets.models import ConsentRequest, RequestState
from wallets.services.sending import approve_transaction
from wallets.signature_requests import get_signature_request

SCOPE = "eip155:4242"
TO = "0x" + "b0" * 20
ETHER = 10**18
GENESIS = make_genesis(
    chain_id=4242,
    first_blocks=from_genesis("osaka"),
    alloc={SIGNER: {"balance": hex(10 * ETHER)}},
)


@pytest.fixture(scope="module")
def chain(parts: object) -> ChainBuilder:
    builder = ChainBuilder(GENESIS)
    builder.block()
    chains.import_blocks("local", GENESIS, builder.blocks)
    return builder


@pytest.fixture
def sending(rig: Rig, chain: ChainBuilder) -> Iterator[Rig]:
    """Return a rig whose dapp may send transactions of the account with a key."""

    async def refresh() -> None:
        await rig.wallet.node.directory.refresh()

    rig.run(refresh())
    rig.account3 = add_key(rig.user)
    rig.create(SCOPE, accounts={SIGNER})
    return rig


def asked(rig: Rig, value: int):
    """Return a call that waits for the user's decision."""
    transaction = {"from": SIGNER, "to": TO, "value": hex(value)}
    params = rig.invoke(SCOPE, "eth_sendTransaction", transaction)
    return rig.start(rig.s1, params, "wallet_invokeMethod")


def approve(request: ConsentRequest) -> str:
    return approve_transaction(
        request_id=request.pk,
        user=request.dapp.user,
        digest=get_signature_request(request).digest,
        passphrase=PASSPHRASE,
        cause=BY_USER,
    )


def pool(rig: Rig) -> dict[str, Any]:
    """Return the account's pending transactions by nonce."""
    call = rig.invoke(SCOPE, "txpool_contentFrom", SIGNER)
    found: dict[str, Any] = rig.result(rig.s1, "wallet_invokeMethod", call)["pending"]
    return found


def test_transaction_is_filled_in_and_added_to_the_local_pool(sending: Rig):
    tasks = [
        asked(sending, ETHER),
        asked(sending, 6 * ETHER),
        asked(sending, 4 * ETHER),
    ]
    waiting = ConsentRequest.objects.pending().filter(dapp=sending.dapp)
    first, second, third = waiting.order_by("pk")
    name = approve(first)
    assert sending.finish(tasks[0]) == name
    pending = pool(sending)
    assert pending["0"]["hash"] == name
    assert (pending["0"]["gas"], pending["0"]["type"]) == ("0x5208", "0x2")
    approve(second)
    sending.finish(tasks[1])
    assert pool(sending)["1"]["value"] == hex(6 * ETHER)
    with pytest.raises(NotSent, match="insufficient funds for gas"):
        approve(third)
    third.refresh_from_db()
    assert third.state == RequestState.FAILED
    assert sending.finish(tasks[2]).code == -32000


def test_transaction_that_the_account_cannot_pay_does_not_ask_the_user(sending: Rig):
    transaction = {"from": SIGNER, "to": TO, "value": hex(11 * ETHER)}
    params = sending.invoke(SCOPE, "eth_sendTransaction", transaction)
    error = sending.error(sending.s1, "wallet_invokeMethod", params)
    assert error.code == -32000
    assert "insufficient funds" in error.message
    assert not ConsentRequest.objects.pending().filter(dapp=sending.dapp).exists()
