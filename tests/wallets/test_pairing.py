"""Cases 126–128, 130 and 133 without sockets: codes and tokens."""

from __future__ import annotations

import base64
from datetime import timedelta
from hashlib import sha256
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from keys.models import User
from tests.support.wallet import BY_USER, new_user
from wallets.changes import Cause
from wallets.identity import parse_origin
from wallets.models import (
    Actor,
    BlockedDapp,
    Dapp,
    DappKind,
    DappToken,
    Pairing,
    Session,
)
from wallets.services import dapps, pairing
from wallets.services.pairing import DappBlocked, PairingRefused
from wallets.services.presence import Handshake, admit, leave

pytestmark = pytest.mark.django_db

ORIGIN = "https://dapp.example"
VERIFIER = "v" * 43
CHALLENGE = (
    base64.urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
)
CALLER = Cause(Actor.DAPP, "192.0.2.7")


@pytest.fixture
def user() -> User:
    return new_user()


def page_token(user: User) -> pairing.IssuedToken:
    code = pairing.start_page_pairing(user=user, origin=ORIGIN, challenge=CHALLENGE)
    return redeem(code)


def redeem(code: str, **changed: str | None) -> pairing.IssuedToken:
    request = {"verifier": VERIFIER, "origin": ORIGIN, **changed}
    return pairing.redeem_page_code(code=code, cause=CALLER, **request)


def program_token(user: User) -> pairing.IssuedToken:
    code = pairing.start_program_pairing(user=user, label="my bot")
    return pairing.redeem_program_code(code=code, cause=CALLER)


def enter(secret: str, origin: str | None) -> DappToken | None:
    """Admit a socket and close it. Return its token."""
    arrival = Handshake(uuid4().hex, secret, origin, "192.0.2.8")
    (found,) = admit([arrival], process=1)
    leave([arrival.name])
    return found if isinstance(found, DappToken) else None


def test_page_is_paired_under_its_origin(user: User):
    issued = page_token(user)
    dapp = Dapp.objects.get()
    assert (dapp.user, dapp.kind, dapp.ident) == (user, DappKind.WEB, ORIGIN)
    assert Session.objects.get(dapp=dapp).scopes == {}
    assert enter(issued.secret, ORIGIN) == issued.token


def test_of_codes_and_tokens_only_digests_are_kept(user: User):
    code = pairing.start_page_pairing(user=user, origin=ORIGIN, challenge=CHALLENGE)
    issued = redeem(code)
    rows = [*Pairing.objects.values_list(), *DappToken.objects.values_list()]
    assert code not in str(rows)
    assert issued.secret not in str(rows)
    assert issued.secret not in repr(issued)
    assert len(base64.urlsafe_b64decode(issued.secret + "=")) == 32


def test_code_is_good_once(user: User):
    code = pairing.start_page_pairing(user=user, origin=ORIGIN, challenge=CHALLENGE)
    redeem(code)
    with pytest.raises(PairingRefused):
        redeem(code)
    assert DappToken.objects.count() == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"verifier": "w" * 43},
        {"verifier": CHALLENGE},
        {"verifier": "v" * 42},
        {"verifier": "é" * 43},
        {"origin": "https://evil.example"},
        {"origin": None},
        {"origin": "null"},
    ],
)
def test_code_in_wrong_hands_is_used_up(user: User, changed):
    code = pairing.start_page_pairing(user=user, origin=ORIGIN, challenge=CHALLENGE)
    with pytest.raises(PairingRefused):
        redeem(code, **changed)
    with pytest.raises(PairingRefused):
        redeem(code)
    assert not DappToken.objects.exists()


def test_codes_expire(user: User):
    page = pairing.start_page_pairing(user=user, origin=ORIGIN, challenge=CHALLENGE)
    program = pairing.start_program_pairing(user=user, label="bot")
    lifetimes = sorted(p.expires_at - p.created_at for p in Pairing.objects.all())
    expected = [pairing.PAGE_CODE_LIFETIME, pairing.PROGRAM_CODE_LIFETIME]
    for lifetime, wanted in zip(lifetimes, expected, strict=True):
        assert abs(lifetime - wanted) < timedelta(minutes=1)
    Pairing.objects.update(expires_at=timezone.now())
    with pytest.raises(PairingRefused):
        redeem(page)
    with pytest.raises(PairingRefused):
        pairing.redeem_program_code(code=program, cause=CALLER)


def test_codes_of_pages_and_programs_are_not_interchangeable(user: User):
    page = pairing.start_page_pairing(user=user, origin=ORIGIN, challenge=CHALLENGE)
    program = pairing.start_program_pairing(user=user, label="bot")
    with pytest.raises(PairingRefused):
        pairing.redeem_program_code(code=page, cause=CALLER)
    with pytest.raises(PairingRefused):
        redeem(program.replace("-", ""))


def test_program_is_paired_under_its_users_name(user: User):
    issued = program_token(user)
    dapp = Dapp.objects.get()
    assert (dapp.kind, dapp.name) == (DappKind.APP, "my bot")
    assert enter(issued.secret, None) == issued.token
    assert program_token(user).token.dapp != dapp


def test_code_may_be_typed_in_any_way(user: User):
    code = pairing.start_program_pairing(user=user, label="bot")
    assert len(code) == len("BCDF-GHJK-LMNP")
    typed = f" {code.replace('-', ' ').lower()}\n"
    assert pairing.redeem_program_code(code=typed, cause=CALLER).token.dapp.user == user


@pytest.mark.parametrize("label", ["", "  ", "x" * 61])
def test_program_needs_a_name(user: User, label):
    with pytest.raises(ValidationError):
        pairing.start_program_pairing(user=user, label=label)


def test_sixth_guess_is_refused_even_when_it_is_right(user: User):
    code = pairing.start_program_pairing(user=user, label="bot")
    for _ in range(pairing.MAX_GUESSES):
        with pytest.raises(PairingRefused):
            pairing.redeem_program_code(code="BBBB-BBBB", cause=CALLER)
    with pytest.raises(PairingRefused):
        pairing.redeem_program_code(code=code, cause=CALLER)
    elsewhere = Cause(Actor.DAPP, "192.0.2.99")
    assert pairing.redeem_program_code(code=code, cause=elsewhere).token


def test_guesses_of_an_ipv6_network_are_counted_together(user: User):
    code = pairing.start_program_pairing(user=user, label="bot")
    for number in range(pairing.MAX_GUESSES):
        caller = Cause(Actor.DAPP, f"2001:db8::{number}")
        with pytest.raises(PairingRefused):
            pairing.redeem_program_code(code="BBBB-BBBB", cause=caller)
    neighbour = Cause(Actor.DAPP, "2001:db8::ffff")
    with pytest.raises(PairingRefused):
        pairing.redeem_program_code(code=code, cause=neighbour)
    elsewhere = Cause(Actor.DAPP, "2001:db8:0:1::1")
    assert pairing.redeem_program_code(code=code, cause=elsewhere).token


def test_guesses_from_everywhere_lock_no_user_out(
    user: User, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pairing, "MAX_COUNTED", 100)
    code = pairing.start_program_pairing(user=user, label="bot")
    for number in range(pairing.MAX_COUNTED + 20):
        caller = Cause(Actor.DAPP, f"2001:db8:{number:x}::1")
        with pytest.raises(PairingRefused):
            pairing.redeem_program_code(code="BBBB-BBBB-BBBB", cause=caller)
    assert pairing.FailedPairing.objects.count() == pairing.MAX_COUNTED
    assert pairing.redeem_program_code(code=code, cause=CALLER).token


def test_guesses_are_forgotten_in_time(user: User):
    code = pairing.start_program_pairing(user=user, label="bot")
    for _ in range(pairing.MAX_GUESSES):
        with pytest.raises(PairingRefused):
            pairing.redeem_program_code(code="BBBB-BBBB", cause=CALLER)
    earlier = timezone.now() - pairing.PROGRAM_CODE_LIFETIME - timedelta(seconds=1)
    pairing.FailedPairing.objects.update(at=earlier)
    assert pairing.redeem_program_code(code=code, cause=CALLER).token
    assert not pairing.FailedPairing.objects.exists()


@pytest.mark.parametrize(
    "origin", [None, "https://q.example", "http://dapp.example", ""]
)
def test_pages_token_is_good_with_its_origin_alone(user: User, origin):
    assert enter(page_token(user).secret, origin) is None


@pytest.mark.parametrize("origin", ["", "null", ORIGIN])
def test_programs_token_is_good_without_origin_alone(user: User, origin):
    assert enter(program_token(user).secret, origin) is None


@pytest.mark.parametrize("secret", ["", "x" * 43, "\ud800"])
def test_unknown_tokens_open_nothing(user: User, secret):
    page_token(user)
    assert enter(secret, ORIGIN) is None


def test_use_keeps_a_token_alive(user: User):
    issued = page_token(user)
    DappToken.objects.update(expires_at=timezone.now() + timedelta(seconds=5))
    used = enter(issued.secret, ORIGIN)
    assert used is not None
    used.refresh_from_db()
    assert used.expires_at > timezone.now() + timedelta(days=89)
    used.refresh_from_db()
    assert used.last_used_from == "192.0.2.8"
    DappToken.objects.update(expires_at=timezone.now())
    assert enter(issued.secret, ORIGIN) is None


def test_tokens_die_with_disconnection_block_and_user(user: User):
    secrets = [page_token(user).secret, page_token(user).secret]
    dapp = Dapp.objects.get()
    user.is_active = False
    user.save()
    assert enter(secrets[0], ORIGIN) is None
    user.is_active = True
    user.save()
    assert enter(secrets[0], ORIGIN) is not None
    dapps.disconnect_all(user=user, cause=BY_USER)
    assert [enter(secret, ORIGIN) for secret in secrets] == [None, None]
    again = page_token(user).secret
    assert enter(again, ORIGIN) is not None
    dapps.block_dapp(dapp=dapp, cause=BY_USER)
    assert enter(again, ORIGIN) is None
    with pytest.raises(DappBlocked):
        pairing.start_page_pairing(user=user, origin=ORIGIN, challenge=CHALLENGE)


def test_codes_end_with_the_password(user: User):
    """Another person who was logged in as the user may have created a code."""
    page = pairing.start_page_pairing(user=user, origin=ORIGIN, challenge=CHALLENGE)
    program = pairing.start_program_pairing(user=user, label="bot")
    others = pairing.start_program_pairing(user=new_user(), label="bot")
    user.set_password("another long pass phrase")
    user.save()
    with pytest.raises(PairingRefused):
        redeem(page)
    with pytest.raises(PairingRefused):
        pairing.redeem_program_code(code=program, cause=CALLER)
    assert not Dapp.objects.filter(user=user).exists()
    assert pairing.redeem_program_code(code=others, cause=CALLER).token


@pytest.mark.parametrize("kind", DappKind)
def test_code_that_is_being_exchanged_ends_with_the_password_too(
    user: User, kind: DappKind, monkeypatch: pytest.MonkeyPatch
):
    issue = pairing.issue

    def issue_late(used: Pairing, cause: Cause) -> pairing.IssuedToken:
        user.set_password("another long pass phrase")
        user.save()
        return issue(used, cause)

    monkeypatch.setattr(pairing, "issue", issue_late)
    with pytest.raises(PairingRefused):
        page_token(user) if kind == DappKind.WEB else program_token(user)
    assert not Dapp.objects.filter(user=user).exists()


def test_code_ends_for_an_exchange_that_looked_at_its_clock_before(
    user: User, monkeypatch: pytest.MonkeyPatch
):
    issue = pairing.issue

    def issue_late(used: Pairing, cause: Cause) -> pairing.IssuedToken:
        looked_at = timezone.now()
        dapps.disconnect_all(user=user, cause=BY_USER)
        clock = SimpleNamespace(now=lambda: looked_at)
        monkeypatch.setattr(pairing, "timezone", clock)
        return issue(used, cause)

    monkeypatch.setattr(pairing, "issue", issue_late)
    with pytest.raises(PairingRefused):
        program_token(user)
    assert not DappToken.objects.exists()


@pytest.mark.parametrize(
    "typed", [f"{ORIGIN}/", f" {ORIGIN}\t", "HTTPS://Dapp.Example", ORIGIN]
)
def test_block_for_all_holds_however_the_origin_is_typed(user: User, typed: str):
    issued = page_token(user)
    blocked = BlockedDapp(kind=DappKind.WEB, ident=typed)
    dapps.block_for_all(blocked=blocked, cause=Cause(Actor.STAFF))
    assert enter(issued.secret, ORIGIN) is None


@pytest.mark.parametrize("typed", ["dapp.example", f"{ORIGIN}/swap", f"{ORIGIN}:443"])
def test_what_is_no_origin_is_not_blocked(typed: str):
    blocked = BlockedDapp(kind=DappKind.WEB, ident=typed)
    with pytest.raises(ValidationError, match="origin"):
        dapps.block_for_all(blocked=blocked, cause=Cause(Actor.STAFF))


def test_block_for_all_ends_what_there_is_and_what_would_come(user: User):
    other = new_user()
    issued = [page_token(user), page_token(other)]
    code = pairing.start_page_pairing(user=user, origin=ORIGIN, challenge=CHALLENGE)
    blocked = BlockedDapp(kind=DappKind.WEB, ident=ORIGIN)
    dapps.block_for_all(blocked=blocked, cause=Cause(Actor.STAFF))
    assert [enter(one.secret, ORIGIN) for one in issued] == [None, None]
    with pytest.raises(DappBlocked):
        redeem(code)
    with pytest.raises(DappBlocked):
        pairing.start_page_pairing(user=other, origin=ORIGIN, challenge=CHALLENGE)
    with pytest.raises(ValidationError, match="already blocked"):
        dapps.block_for_all(
            blocked=BlockedDapp(kind=DappKind.WEB, ident=ORIGIN),
            cause=Cause(Actor.STAFF),
        )
    blocked.delete()
    assert enter(page_token(user).secret, ORIGIN) is not None


@pytest.mark.parametrize("challenge", ["", "short", "x" * 44, "=" * 43])
def test_challenge_must_be_one(user: User, challenge):
    with pytest.raises(ValidationError):
        pairing.start_page_pairing(user=user, origin=ORIGIN, challenge=challenge)


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example",
        "http://localhost:3000",
        "https://a.b-c.example:8443",
        "http://127.0.0.1:5173",
        "http://[::1]:8080",
        "https://xn--mnchen-3ya.example",
    ],
)
def test_origins_are_taken_as_browsers_write_them(text):
    assert parse_origin(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "https://",
        "https://a.example/",
        "https://a.example/path",
        "HTTPS://a.example",
        "https://A.example",
        "https://a.example:443",
        "http://a.example:80",
        "https://a.example:0",
        "https://a.example:65536",
        "https://user@a.example",
        "https://a.example\n",
        "https://münchen.example",
        "file:///etc/passwd",
        "chrome-extension://abcdef",
        "https://a..example",
        "https://a.example:",
        "javascript:alert(1)",
        "https://" + "a." * 200 + "b",
    ],
)
def test_other_texts_are_no_origin(user: User, text):
    with pytest.raises(ValueError, match="origin"):
        parse_origin(text)
    with pytest.raises(ValidationError):
        pairing.start_page_pairing(user=user, origin=text, challenge=CHALLENGE)
