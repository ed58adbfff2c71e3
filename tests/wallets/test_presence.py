"""Open sockets; renewal, expiry and deletion of tokens."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db.models import F
from django.utils import timezone

from keys.models import User
from tests.support.wallet import BY_USER, new_user
from wallets.models import (
    DEAD_AFTER,
    Activity,
    ConsentRequest,
    Dapp,
    DappToken,
    LiveSocket,
    Pairing,
    RequestState,
    ServingProcess,
)
from wallets.services import presence
from wallets.services.pairing import (
    IssuedToken,
    PairingRefused,
    redeem_program_code,
    start_program_pairing,
)
from wallets.services.presence import MAX_SOCKETS, Handshake, Refusal, admit
from wallets.services.tokens import RENEWED_AFTER, renew_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    return new_user()


def issue(user: User) -> IssuedToken:
    code = start_program_pairing(user=user, label="bot")
    return redeem_program_code(code=code, cause=BY_USER)


def arrivals(secret: str, count: int) -> list[Handshake]:
    return [Handshake(uuid4().hex, secret, None, "192.0.2.8") for _ in range(count)]


def age(token: DappToken, **moments: object) -> None:
    DappToken.objects.filter(pk=token.pk).update(**moments)


def test_sockets_of_a_dapp_are_counted_with_those_that_come_at_once(user: User):
    issued, other = issue(user), issue(user)
    first = admit(arrivals(issued.secret, MAX_SOCKETS - 1), process=7)
    assert first == [issued.token] * (MAX_SOCKETS - 1)
    both = arrivals(issued.secret, 2) + arrivals(other.secret, 1)
    assert admit(both, process=7) == [issued.token, Refusal.TOO_MANY, other.token]
    presence.leave([both[0].name])
    assert admit(arrivals(issued.secret, 1), process=7) == [issued.token]


def test_sockets_of_a_process_count_as_long_as_it_renews_its_row(user: User):
    issued = issue(user)
    admit(arrivals(issued.secret, MAX_SOCKETS), process=7)
    assert LiveSocket.objects.open().count() == MAX_SOCKETS
    age_process(7, DEAD_AFTER / 2)
    assert admit(arrivals(issued.secret, 1), process=8) == [Refusal.TOO_MANY]
    presence.renew_process(7)
    age_process(7, DEAD_AFTER / 2)
    assert admit(arrivals(issued.secret, 1), process=8) == [Refusal.TOO_MANY]
    age_process(7, DEAD_AFTER / 2)
    assert not LiveSocket.objects.open().exists()
    assert LiveSocket.objects.left().count() == MAX_SOCKETS
    assert admit(arrivals(issued.secret, 1), process=8) == [issued.token]


def age_process(number: int, age: timedelta) -> None:
    """Set the last renewal of a process's row to an earlier time."""
    rows = ServingProcess.objects.filter(number=number)
    rows.update(seen_at=F("seen_at") - age)


def test_token_whose_socket_stays_open_does_not_grow_old(user: User):
    issued = issue(user)
    admit(arrivals(issued.secret, 1), process=7)
    soon = timezone.now() + timedelta(days=1)
    long_ago = timezone.now() - timedelta(days=2)
    age(issued.token, last_used_at=long_ago, expires_at=soon)
    presence.keep_alive(process=8)
    assert DappToken.objects.get().last_used_at == long_ago
    presence.keep_alive(process=7)
    token = DappToken.objects.get()
    assert token.expires_at > soon
    assert timezone.now() - token.last_used_at < timedelta(minutes=1)


def test_secret_is_renewed_once_it_is_a_day_old(user: User):
    issued = issue(user)
    assert renew_token(secret=issued.secret, origin=None) == issued.secret
    age(issued.token, renewed_at=timezone.now() - RENEWED_AFTER)
    renewed = renew_token(secret=issued.secret, origin=None)
    assert renewed != issued.secret
    # The response may have been lost. The old token is valid until the new one is used.
    assert admit(arrivals(issued.secret, 1), process=7) == [issued.token]
    assert renew_token(secret=issued.secret, origin=None) == renewed
    shown = [renewed, issued.secret]
    found = [admit(arrivals(one, 1), process=7)[0] for one in shown]
    assert found == [issued.token, Refusal.BAD_TOKEN]
    with pytest.raises(PairingRefused):
        renew_token(secret=issued.secret, origin=None)


def test_only_a_token_that_is_good_there_is_renewed(user: User):
    issued = issue(user)
    age(issued.token, renewed_at=timezone.now() - RENEWED_AFTER)
    with pytest.raises(PairingRefused):
        renew_token(secret=issued.secret, origin="https://dapp.example")
    age(issued.token, expires_at=timezone.now())
    with pytest.raises(PairingRefused):
        renew_token(secret=issued.secret, origin=None)


def test_all_tokens_end_with_the_password(user: User):
    issued, stranger = issue(user), issue(new_user())
    user.set_password("quite another one")
    user.save()
    shown = [issued.secret, stranger.secret]
    found = [admit(arrivals(one, 1), process=7)[0] for one in shown]
    assert found == [Refusal.BAD_TOKEN, stranger.token]


def test_what_is_old_is_deleted_and_nothing_else(user: User, settings, capsys):
    settings.WALLETS_HISTORY_DAYS = 100
    old, dead = timezone.now() - timedelta(days=101), issue(user)
    live = issue(user)
    age(dead.token, revoked_at=old)
    dapp = Dapp.objects.get(pk=live.token.dapp_id)
    asked = {"dapp": dapp, "method": "wallet_createSession", "body": {}, "socket": "s"}
    overdue = ConsentRequest.objects.create(**asked, expires_at=timezone.now())
    decided = ConsentRequest.objects.create(
        **asked, state=RequestState.REJECTED, expires_at=old
    )
    ConsentRequest.objects.filter(pk=decided.pk).update(created_at=old)
    newest = Activity.objects.latest("pk")
    Activity.objects.exclude(pk=newest.pk).update(at=old)
    Pairing.objects.update(expires_at=timezone.now() - timedelta(days=2))
    admit(arrivals(live.secret, 1), process=7)
    age_process(7, timedelta(days=2))
    call_command("prune_wallets")
    assert list(DappToken.objects.all()) == [live.token]
    overdue.refresh_from_db()
    assert overdue.state == RequestState.EXPIRED
    assert list(ConsentRequest.objects.all()) == [overdue]
    assert not Pairing.objects.exists()
    assert not LiveSocket.objects.exists()
    assert not ServingProcess.objects.exists()
    assert newest in Activity.objects.all()
    assert "1 tokens" in capsys.readouterr().out
