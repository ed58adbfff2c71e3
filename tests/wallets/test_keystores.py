"""Keys of accounts: creation, unlocking, locks and deletion."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import Client
from django.utils import timezone

from keys.models import User
from tests.support.wallet import BY_USER, new_user
from wallets.models import Account, Activity, Event, Keystore
from wallets.services.accounts import MAX_ACCOUNTS, add_account
from wallets.services.keystores import (
    LOCKED_FOR,
    MAX_TRIES,
    Locked,
    NoKey,
    create_key,
    delete_key,
    import_key,
    open_file,
    save_key,
    tries_left,
    unlock,
)
from wallets.signing import keys
from wallets.signing.keys import WrongPassphrase, address_of, encrypt
from wallets.signing.turns import TooBusy

PASSPHRASE = "correct horse battery"
KEY = bytes.fromhex("7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d")


@pytest.fixture
def user(db: None) -> User:
    return new_user()


@pytest.fixture
def account(user: User) -> Account:
    return import_key(
        user=user, key=KEY, passphrase=PASSPHRASE, label="Spending", cause=BY_USER
    )


def opened(account: Account, passphrase: str = PASSPHRASE) -> bytes:
    return unlock(account=account, passphrase=passphrase, cause=BY_USER)


def events(user: User) -> list[str]:
    lines = Activity.objects.filter(user=user).order_by("id")
    return list(lines.values_list("event", flat=True))


def test_new_account_has_a_key_of_its_own(user: User):
    given = {"user": user, "passphrase": PASSPHRASE, "cause": BY_USER}
    first, second = (create_key(label=label, **given) for label in ("One", "Two"))
    assert first.address != second.address
    assert address_of(opened(first)) == first.address
    assert events(user) == [Event.ACCOUNT_ADDED, Event.KEY_ADDED] * 2


def test_watched_account_gets_its_key_and_keeps_its_name(user: User):
    add_account(user=user, address=address_of(KEY), label="Watched", cause=BY_USER)
    given = {"user": user, "key": KEY, "passphrase": PASSPHRASE, "cause": BY_USER}
    account = import_key(label="Other", **given)
    assert (account.label, opened(account)) == ("Watched", KEY)
    with pytest.raises(ValidationError, match="already"):
        import_key(label="", **given)
    assert Account.objects.filter(user=user).count() == 1


def test_full_wallet_takes_no_key(user: User):
    Account.objects.bulk_create(
        Account(user=user, address=f"0x{number:040x}", position=number)
        for number in range(MAX_ACCOUNTS)
    )
    with pytest.raises(ValidationError, match="at most"):
        create_key(user=user, passphrase=PASSPHRASE, label="", cause=BY_USER)
    assert not Keystore.objects.filter(account__user=user).exists()


@pytest.mark.parametrize("weak", ["", "short", "password123", "a password"])
def test_passphrase_that_is_weak_or_the_log_ins_is_refused(user: User, weak):
    with pytest.raises(ValidationError):
        create_key(user=user, passphrase=weak, label="", cause=BY_USER)
    assert not Account.objects.filter(user=user).exists()


def test_key_is_stored_encrypted_alone(account: Account):
    stored = json.dumps(Keystore.objects.get(account=account).document)
    assert KEY.hex() not in stored
    assert PASSPHRASE not in stored
    assert json.loads(stored)["crypto"]["kdf"] == "scrypt"


def test_wrong_passphrases_lock_even_for_the_right_one(account: Account):
    for _ in range(MAX_TRIES):
        with pytest.raises(WrongPassphrase):
            opened(account, "wrong")
    with pytest.raises(Locked) as caught:
        opened(account)
    assert caught.value.until > timezone.now() + LOCKED_FOR - timedelta(minutes=1)
    assert events(account.user)[-1] == Event.KEY_LOCKED
    Keystore.objects.update(locked_until=timezone.now())
    assert opened(account) == KEY
    assert tries_left(account) == MAX_TRIES


def test_right_passphrase_forgives_the_wrong_ones(account: Account):
    for _ in range(3):
        for _ in range(MAX_TRIES - 1):
            with pytest.raises(WrongPassphrase):
                opened(account, "wrong")
        assert tries_left(account) == 1
        assert opened(account) == KEY


def test_try_that_found_no_turn_does_not_count(account: Account, monkeypatch):
    for _ in range(MAX_TRIES - 1):
        with pytest.raises(WrongPassphrase):
            opened(account, "wrong")
    with monkeypatch.context() as patch:
        patch.setattr(keys, "TURN_SECONDS", 0.01)
        with ExitStack() as others:
            for other in range(keys.MAX_DERIVATIONS):
                others.enter_context(keys.turns.turn(f"other {other}", 0))
            for _ in range(3):
                with pytest.raises(TooBusy):
                    opened(account)
    assert opened(account) == KEY


@pytest.mark.django_db(transaction=True)
def test_guesses_at_the_same_time_count_each(user: User):
    account = import_key(
        user=user, key=KEY, passphrase=PASSPHRASE, label="", cause=BY_USER
    )
    outcomes: list[type[Exception]] = []
    barrier = Barrier(MAX_TRIES + 3)

    def guess(passphrase: str) -> None:
        try:
            barrier.wait()
            opened(account, passphrase)
        except (Locked, WrongPassphrase) as error:
            outcomes.append(type(error))
        finally:
            connection.close()

    guesses = [Thread(target=guess, args=[f"wrong {n}"]) for n in range(MAX_TRIES + 3)]
    for thread in guesses:
        thread.start()
    for thread in guesses:
        thread.join()
    assert sorted(outcomes, key=str) == [Locked] * 3 + [WrongPassphrase] * MAX_TRIES


def test_keystore_is_saved_for_the_passphrase_alone(account: Account):
    with pytest.raises(WrongPassphrase):
        save_key(account=account, passphrase="wrong", cause=BY_USER)
    document = save_key(account=account, passphrase=PASSPHRASE, cause=BY_USER)
    text = json.dumps(document)
    assert open_file(user=account.user, text=text, passphrase=PASSPHRASE) == KEY
    assert events(account.user)[-1] == Event.KEY_SAVED


def test_file_of_another_wallet_is_opened_or_refused(user: User):
    text = json.dumps(encrypt(KEY, "theirs", scrypt_n=2, owner=user.pk))
    assert open_file(user=user, text=text, passphrase="theirs") == KEY
    with pytest.raises(ValidationError, match="passphrase of the keystore is wrong"):
        open_file(user=user, text=text, passphrase="ours")
    with pytest.raises(ValidationError, match="not a keystore: it is not JSON"):
        open_file(user=user, text="{", passphrase="theirs")


def test_deleted_key_is_gone_and_the_account_stays(account: Account):
    delete_key(account=account, cause=BY_USER)
    delete_key(account=account, cause=BY_USER)
    with pytest.raises(NoKey):
        opened(account)
    assert Account.objects.filter(pk=account.pk).exists()
    assert events(account.user).count(Event.KEY_DELETED) == 1


def test_staff_see_no_keystore_anywhere(account: Account):
    assert Keystore not in admin.site._registry
    staff = User.objects.create_superuser("staff@example.org", "x")
    client = Client()
    client.force_login(staff)
    cipher = Keystore.objects.get(account=account).document["crypto"]["ciphertext"]
    for model in apps.get_app_config("wallets").get_models():
        if model not in admin.site._registry:
            continue
        place = f"/admin/wallets/{model._meta.model_name}/"
        shown = [client.get(place)]
        shown += [client.get(f"{place}{one.pk}/change/") for one in model.objects.all()]
        for page in shown:
            assert page.status_code == 200
            assert cipher not in page.content.decode()
    page = client.get(f"/admin/keys/user/{account.user.pk}/change/")
    assert page.status_code == 200
    assert cipher not in page.content.decode()
