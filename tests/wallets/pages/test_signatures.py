"""Case 131 for signatures, and the content of their page."""

from __future__ import annotations

import copy
import re
from http import HTTPStatus

import pytest
from django.test import Client

from abi.addresses import checksummed, with_checksum
from abi.definitions import parse_definition
from explorer.abi_views import upload_abi
from networks.models import Network
from tests.support.signing import MAIL, PASSPHRASE, SIGNER, signer_of
from tests.support.wallet import BY_USER
from tests.wallets.pages.conftest import Person
from tests.wallets.signing.test_logins import login_message
from wallets.models import ConsentRequest, Dapp, Keystore, RequestState
from wallets.pages.recent import MAX_LOGIN_AGE
from wallets.services.keystores import MAX_TRIES, delete_key
from wallets.services.requests import withdraw_requests
from wallets.services.sessions import revoke_session
from wallets.signing.transactions import Transaction, to_json
from wallets.signing.typed_data import read_typed_data


@pytest.fixture
def signing(person: Person) -> Person:
    """Return a user whose dapp may request signatures of an account with a key."""
    person.account3 = person.with_key()
    return person


def asked(person: Person, message: bytes | str = b"Hello") -> ConsentRequest:
    raw = message if isinstance(message, bytes) else message.encode()
    return person.asked_to_sign(message="0x" + raw.hex())


def asked_data(person: Person, **message: object) -> ConsentRequest:
    document = copy.deepcopy(MAIL)
    document["message"] |= message
    text = read_typed_data(document).to_text()
    return person.asked_to_sign("eth_signTypedData_v4", data=text)


def address(request: ConsentRequest) -> str:
    return f"/wallet/signatures/{request.pk}"


def page_of(person: Person, request: ConsentRequest) -> str:
    return person.client.get(address(request)).content.decode()


def digest_in(page: str) -> str:
    found = re.search(r'name="digest" value="([0-9a-f]{64})"', page)
    assert found
    return found[1]


def approve(person: Person, request: ConsentRequest, passphrase=PASSPHRASE, **given):
    digest = digest_in(page_of(person, request))
    given = {"decision": "approve", "digest": digest, "passphrase": passphrase} | given
    return person.client.post(address(request), given)


def state(request: ConsentRequest) -> str:
    return ConsentRequest.objects.get(pk=request.pk).state


def test_inbox_says_what_waits(signing: Person):
    one, other = asked(signing), asked_data(signing)
    inbox = signing.client.get("/wallet/").content.decode()
    for waiting, words in ((one, "sign a message"), (other, "sign typed data")):
        assert f'href="{address(waiting)}"' in inbox
        assert words in inbox


def test_message_is_shown_and_signed(signing: Person):
    waiting = asked(signing, "Say <b>yes</b>\nto all")
    page = page_of(signing, waiting)
    assert "Say &lt;b&gt;yes&lt;/b&gt;\nto all" in page
    assert '<span class="rest">https://</span><wbr>p.example' in page
    assert f"Spending <code>{with_checksum(SIGNER)}</code>" in page
    assert "Main <code>eip155:1</code>" in page
    response = approve(signing, waiting)
    assert response.status_code == HTTPStatus.FOUND
    waiting.refresh_from_db()
    signature = waiting.outcome["result"]
    assert signer_of(b"Say <b>yes</b>\nto all", signature) == SIGNER


def test_bytes_that_are_no_text_are_called_so(signing: Person):
    page = page_of(signing, asked(signing, b"\xff\x00" * 16))
    assert "The message is not text" in page
    assert "ff00" * 16 in page


def test_hidden_characters_are_shown(signing: Person):
    page = page_of(signing, asked(signing, "pay \u202e100"))
    assert "pay ⟨U+202E⟩100" in page
    assert "characters that are invisible" in page


@pytest.mark.parametrize(
    ("site", "warns"),
    [("p.example", False), ("P.EXAMPLE:443", False), ("bank.example", True)],
)
def test_log_in_elsewhere_is_warned_of(signing: Person, site, warns):
    page = page_of(signing, asked(signing, login_message(site)))
    assert f"logs you in to <strong>{site}</strong>" in page
    assert ("another dapp asks for it" in page) == warns
    assert ('class="notice error" role="alert"' in page) == warns


@pytest.mark.parametrize(
    "message",
    [
        "Hello\n" + login_message("p.example"),
        login_message("p.example")[:200],
        login_message("p.example", address="0x" + "ab" * 20),
        login_message("p.example", chain_id="10"),
        b"\0" + login_message("bank.example").encode(),
    ],
)
def test_login_message_that_is_not_the_dapps_own_has_a_warning(
    signing: Person, message
):
    page = page_of(signing, asked(signing, message))
    assert '<p class="notice error" role="alert">The message' in page


def test_typed_data_is_shown_as_a_tree_with_its_domain(signing: Person):
    page = page_of(signing, asked_data(signing, contents="x\u200by <i>"))
    for text in ("Ether Mail", "chainId", "Mail", "Cow", "x⟨U+200B⟩y &lt;i&gt;"):
        assert text in page
    assert page.index("Ether Mail") < page.index("Cow")
    assert "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826" in page


def asked_to_send(person: Person, **changes: object) -> ConsentRequest:
    sent = Transaction(
        **{
            "type": 2,
            "chain_id": 1,
            "to": "0x" + "b0" * 20,
            "value": 1_500_000_000_000_000_000,
            "data": b"",
            "gas": 21_000,
            "max_fee_per_gas": 15 * 10**9,
            "max_priority_fee_per_gas": 10**9,
        }
        | changes
    )
    return person.asked_to_sign("eth_sendTransaction", transaction=to_json(sent))


def test_transaction_is_shown_in_ether(signing: Person):
    waiting = asked_to_send(signing)
    page = page_of(signing, waiting)
    for text in (
        f'The request expires at <time datetime="{waiting.expires_at:%Y-%m-%dT%H:%M}',
        "asks you to send a transaction",
        checksummed(b"\xb0" * 20),
        "1.5 ether",
        "at most 0.000315 ether: 21,000 gas at 15 gwei, of which at most 1 gwei",
        "at most <strong>1.500315 ether</strong>",
        "Sign and send",
        "Transactions on this network stay pending",
    ):
        assert text in page


def test_function_that_is_known_is_named_with_its_arguments(signing: Person):
    spender, everything = bytes(12) + b"\xc0" * 20, b"\xff" * 32
    data = bytes.fromhex("095ea7b3") + spender + everything
    page = page_of(signing, asked_to_send(signing, data=data, value=0))
    assert "approve(address,uint256)" in page
    assert checksummed(b"\xc0" * 20) in page
    assert "(unlimited)" in page
    assert "lets another account use your assets" in page


def test_function_of_an_uploaded_abi_is_named(signing: Person):
    entry = (
        '[{"type":"function","name":"feed","inputs":[{"name":"food","type":"int8"}]}]'
    )
    upload_abi(
        network=Network.objects.get(slug="main"),
        user=signing.user,
        name="Pets",
        address=b"\xb0" * 20,
        text=entry,
    )
    call = parse_definition("function feed(int8 food)").key + bytes(31) + b"\7"
    page = page_of(signing, asked_to_send(signing, data=call))
    assert "feed(int8)" in page
    assert "from an uploaded ABI" in page
    elsewhere = asked_to_send(signing, data=call, to="0x" + "b1" * 20)
    assert "an unknown function" in page_of(signing, elsewhere)


def test_function_that_is_unknown_is_called_so(signing: Person):
    page = page_of(signing, asked_to_send(signing, data=b"\x12\x34\x56\x78"))
    assert "an unknown function" in page
    assert "unknown, with selector <code>0x12345678</code>" in page
    created = page_of(signing, asked_to_send(signing, to=None, data=b"\x12" * 8))
    assert "none (contract creation)" in created
    assert "an unknown function" not in created


def test_transaction_is_not_sent_where_no_node_takes_it(signing: Person):
    waiting = asked_to_send(signing, chain_id=99)
    response = approve(signing, waiting)
    page = signing.client.get(response["Location"]).content.decode()
    assert (
        "Sending the transaction failed: this network accepts no transactions." in page
    )
    assert state(waiting) == RequestState.PENDING


@pytest.mark.parametrize("decision", ["reject", "", "APPROVE", "block"])
def test_whatever_is_not_approved_is_refused(signing: Person, decision):
    waiting = asked(signing)
    assert approve(signing, waiting, decision=decision).status_code == HTTPStatus.FOUND
    assert state(waiting) == RequestState.REJECTED
    blocked = Dapp.objects.get(pk=signing.dapp.pk).blocked_at is not None
    assert blocked == (decision == "block")


def test_wrong_passphrase_is_reported_and_the_request_waits(signing: Person):
    waiting = asked(signing)
    response = approve(signing, waiting, "a wrong one")
    assert response.status_code == HTTPStatus.BAD_REQUEST
    page = response.content.decode()
    assert f"After {MAX_TRIES - 1} more wrong ones, the account is locked" in page
    assert "a wrong one" not in page
    assert approve(signing, waiting, "").status_code == HTTPStatus.BAD_REQUEST
    assert state(waiting) == RequestState.PENDING
    approve(signing, waiting)
    assert state(waiting) == RequestState.APPROVED


@pytest.mark.parametrize("digest", ["", "0" * 64])
def test_case_131_stale_digest_signs_nothing(signing: Person, digest):
    waiting = asked(signing)
    response = approve(signing, waiting, digest=digest)
    assert response.status_code == HTTPStatus.CONFLICT
    assert (
        "The request has changed since you opened this page"
        in response.content.decode()
    )
    assert state(waiting) == RequestState.PENDING
    assert Keystore.objects.get().tries == 0


def test_case_131_post_without_token_signs_nothing(signing: Person):
    waiting = asked(signing)
    digest = digest_in(page_of(signing, waiting))
    client = Client(enforce_csrf_checks=True)
    client.force_login(signing.user)
    given = {"decision": "approve", "digest": digest, "passphrase": PASSPHRASE}
    response = client.post(address(waiting), given)
    assert response.status_code == HTTPStatus.FORBIDDEN
    assert state(waiting) == RequestState.PENDING


def test_case_131_another_user_finds_nothing(signing: Person, stranger: Person):
    waiting = asked(signing)
    given = {"decision": "approve", "passphrase": PASSPHRASE}
    for response in (
        stranger.client.get(address(waiting)),
        stranger.client.post(address(waiting), given),
        signing.client.get(f"/wallet/requests/{waiting.pk}"),
        signing.client.get(f"/wallet/signatures/{signing.asked().pk}"),
    ):
        assert response.status_code == HTTPStatus.NOT_FOUND
    assert state(waiting) == RequestState.PENDING


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda person: approve(person, ConsentRequest.objects.get()), "received your"),
        (
            lambda person: revoke_session(dapp_id=person.dapp.pk, cause=BY_USER),
            "no longer has this permission",
        ),
        (lambda person: withdraw_requests(socket=""), "Nothing was signed"),
    ],
    ids=["approved", "revoked", "socket closed"],
)
def test_request_that_is_over_is_signed_no_more(signing: Person, end, words):
    waiting = asked(signing)
    digest = digest_in(page_of(signing, waiting))
    end(signing)
    before = ConsentRequest.objects.get()
    given = {"decision": "approve", "digest": digest, "passphrase": PASSPHRASE}
    response = signing.client.post(address(waiting), given)
    assert response.status_code == HTTPStatus.CONFLICT
    assert words in response.content.decode()
    after = ConsentRequest.objects.get()
    assert (after.state, after.outcome) == (before.state, before.outcome)


def test_key_that_was_deleted_is_reported(signing: Person):
    waiting = asked(signing)
    delete_key(account=signing.account3, cause=BY_USER)
    assert "Nothing was signed" in page_of(signing, waiting)


def test_old_log_in_signs_nothing(signing: Person):
    waiting = asked(signing)
    digest = digest_in(page_of(signing, waiting))
    session = signing.client.session
    session["logged_in_at"] -= MAX_LOGIN_AGE + 1
    session.save()
    given = {"decision": "approve", "digest": digest, "passphrase": PASSPHRASE}
    response = signing.client.post(address(waiting), given)
    assert response["Location"].startswith("/account/login")
    assert state(waiting) == RequestState.PENDING


def test_page_stays_out_of_frames_and_caches(signing: Person):
    response = signing.client.get(address(asked(signing)))
    assert "frame-ancestors 'none'" in response["Content-Security-Policy"]
    assert response["X-Frame-Options"] == "DENY"
    assert "no-store" in response["Cache-Control"]
