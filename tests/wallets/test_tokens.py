"""The exchange of codes for tokens, with a running server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from django.utils import timezone
from websockets.exceptions import InvalidStatus

from tests.support import web
from tests.support.coroutines import run, scenario
from tests.support.dapps import Owner, orm, page_token
from tests.support.live import Live, live_service
from tests.support.wallet import BY_USER, served_chains
from wallets import internal_key
from wallets.client import PairingRefused, connect, pair, renew
from wallets.models import DappToken, FailedPairing, Pairing
from wallets.services.dapps import block_dapp, disconnect_all
from wallets.services.pairing import (
    MAX_GUESSES,
    pair_dapp,
    start_page_pairing,
    start_program_pairing,
)
from wallets.services.tokens import RENEWED_AFTER

VERIFIER = "v" * 43
CHALLENGE = "7w_YNF9DSfIdPf_pRjSq646_kPr-2-o9NAl16JGghdM"
PAGE = "https://dapp.example"
EMPTY = {"sessionScopes": {}, "sessionProperties": {}}


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    served_chains()
    internal_key.ensure()
    with live_service() as live:
        yield live


@pytest.fixture
def owner(live: Live) -> Owner:
    FailedPairing.objects.all().delete()
    return Owner(live.base_url)


def post(live: Live, origin: str | None = PAGE, **form: str) -> httpx.Response:
    headers = {} if origin is None else {"Origin": origin}
    return web.post(f"{live.base_url}/wallet/token", data=form, headers=headers)


def page_code(owner: Owner) -> str:
    return start_page_pairing(user=owner.user, origin=PAGE, challenge=CHALLENGE)


def test_a_page_gets_a_token_that_opens_its_socket(live: Live, owner: Owner) -> None:
    answer = post(live, code=page_code(owner), code_verifier=VERIFIER)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "access-control-allow-credentials" not in answer.headers
    assert "no-store" in answer.headers["cache-control"]
    token = answer.json()["token"]

    async def scenario() -> None:
        options = {"origin": PAGE, "in_subprotocol": True}
        async with await connect(owner.url, token, **options) as client:
            found = await client.call("wallet_getSession")
            assert found == {"sessionScopes": {}, "sessionProperties": {}}

    run(scenario())


def test_a_pages_code_is_good_once_for_its_page_and_verifier(
    live: Live, owner: Owner
) -> None:
    right = {"code_verifier": VERIFIER}
    for origin, form in [
        ("https://evil.example", right),
        ("null", right),
        (None, right),
        (PAGE, {"code_verifier": "w" * 43}),
        (PAGE, {}),
    ]:
        answer = post(live, origin, code=page_code(owner), **form)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    code = page_code(owner)
    assert post(live, code=code, **right).status_code == 200
    assert post(live, code=code, **right).status_code == 400


def test_a_program_is_paired_with_the_code_that_its_user_reads(
    live: Live, owner: Owner
) -> None:
    code = start_program_pairing(user=owner.user, label="bot 2")

    async def scenario() -> None:
        token = await pair(live.base_url, code.lower())
        async with await connect(owner.url, token) as client:
            assert await client.call("wallet_revokeSession") is True
        with pytest.raises(PairingRefused):
            await pair(live.base_url, code)

    run(scenario())


def test_a_programs_code_is_not_good_for_pages(live: Live, owner: Owner) -> None:
    code = start_program_pairing(user=owner.user, label="bot 2")
    assert post(live, code=code, code_verifier=VERIFIER).status_code == 400
    assert Pairing.objects.get(user=owner.user, label="bot 2").used_at is None


@scenario
async def test_guesses_are_counted_and_then_even_the_right_code_is_refused(
    live: Live, owner: Owner
) -> None:
    wrong = [pair(live.base_url, f"BBBB-BBB{letter}") for letter in "BCDFGH"]
    assert len(wrong) > MAX_GUESSES
    outcomes = await asyncio.gather(*wrong, return_exceptions=True)
    assert all(isinstance(outcome, PairingRefused) for outcome in outcomes)
    code = await orm(start_program_pairing, user=owner.user, label="bot 2")
    with pytest.raises(PairingRefused):
        await pair(live.base_url, code)


def test_a_blocked_page_is_reported(live: Live, owner: Owner) -> None:
    code = page_code(owner)
    dapp = pair_dapp(user=owner.user, kind="web", ident=PAGE, cause=BY_USER)
    block_dapp(dapp=dapp, cause=BY_USER)
    answer = post(live, code=code, code_verifier=VERIFIER)
    assert (answer.status_code, answer.json()["error"]) == (403, "access_denied")


@scenario
async def test_a_token_is_renewed_while_its_socket_stays_open(
    live: Live, owner: Owner
) -> None:
    url, old = live.base_url, owner.token
    async with await owner.connect() as before:
        assert await renew(url, old) == old  # the token is recent
        await orm(make_old, owner)
        fresh = await renew(url, old)
        assert fresh != old
        async with await connect(owner.url, old):  # the response may have been lost
            pass
        async with await connect(owner.url, fresh) as after:
            assert await after.call("wallet_getSession") == EMPTY
        with pytest.raises(InvalidStatus):
            await connect(owner.url, old)
        with pytest.raises(PairingRefused):
            await renew(url, old)
        assert await before.call("wallet_getSession") == EMPTY
        assert await renew(url, fresh) == fresh


@scenario
async def test_two_renewals_of_one_secret_give_the_same_valid_token(
    live: Live, owner: Owner
) -> None:
    """Two pages may send the old secret concurrently, and each keeps its response."""
    await orm(make_old, owner)
    old = owner.token
    first, second = await renew(live.base_url, old), await renew(live.base_url, old)
    assert first == second != old
    async with await connect(owner.url, first) as client:
        assert await client.call("wallet_getSession") == EMPTY


def make_old(owner: Owner) -> None:
    tokens = DappToken.objects.filter(dapp__user=owner.user)
    tokens.update(renewed_at=timezone.now() - RENEWED_AFTER)


def test_a_token_is_renewed_for_whose_it_is_alone(live: Live, owner: Owner) -> None:
    page = page_token(owner.user, PAGE)
    make_old(owner)
    for origin, token in [
        (None, page),
        ("https://evil.example", page),
        ("null", page),
        (PAGE, owner.token),
        (None, "x" * 43),
        (None, "\0"),
    ]:
        answer = post(live, origin, token=token)
        assert (answer.status_code, answer.json()) == (400, {"error": "invalid_grant"})
    answer = post(live, PAGE, token=page)
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "no-store" in answer.headers["cache-control"]
    assert answer.json()["token"] not in ("", page)
    disconnect_all(user=owner.user, cause=BY_USER)
    assert post(live, PAGE, token=answer.json()["token"]).status_code == 400
    assert page not in live.log()


def test_what_is_no_form_with_a_code_is_refused(live: Live, owner: Owner) -> None:
    assert post(live, code="").status_code == 400
    assert post(live, code="x" * 5000).status_code == 413
    assert web.get(f"{live.base_url}/wallet/token").status_code == 405
    address = f"{live.base_url}/wallet/token"
    assert web.post(address, json={"code": "x"}).status_code == 400
