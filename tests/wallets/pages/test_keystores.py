from __future__ import annotations

import json
import logging
import re
from http import HTTPStatus

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.wallets.pages.conftest import Person
from wallets.models import Account, Keystore
from wallets.pages.recent import MAX_LOGIN_AGE
from wallets.services.keystores import MAX_TRIES, unlock
from wallets.signing.keys import address_of, decrypt, encrypt

PASSPHRASE = "correct horse battery"
KEY = bytes.fromhex("7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d")
NEW = {"label": "Spending", "passphrase": PASSPHRASE, "again": PASSPHRASE}


def created(person: Person) -> Account:
    response = person.client.post("/wallet/accounts/create", NEW)
    assert response.status_code == HTTPStatus.FOUND
    account = Account.objects.get(user=person.user, keystore__isnull=False)
    assert response["Location"] == f"/wallet/accounts/{account.pk}/key"
    return account


def file_of(document: object) -> SimpleUploadedFile:
    return SimpleUploadedFile("key.json", json.dumps(document).encode())


def test_account_is_created_and_its_keystore_saved(person: Person):
    account = created(person)
    page = f"/wallet/accounts/{account.pk}/key"
    assert "The account was added" in person.client.get(page).content.decode()
    response = person.client.post(page, {"passphrase": PASSPHRASE})
    name = account.address.removeprefix("0x")
    assert re.fullmatch(
        rf'attachment; filename="UTC--[0-9T.Z-]+--{name}\.json"',
        response["Content-Disposition"],
    )
    assert "no-store" in response["Cache-Control"]
    key = decrypt(response.json(), PASSPHRASE, owner=person.user.pk)
    assert address_of(key) == account.address


def test_accounts_page_shows_which_accounts_can_sign(person: Person):
    account = created(person)
    page = person.client.get("/wallet/accounts").content.decode()
    assert page.count('<span class="badge">watch-only</span>') == 2
    assert f'href="/wallet/accounts/{account.pk}/key"' in page


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"again": "something else"}, "The passphrases differ."),
        ({"passphrase": "", "again": ""}, "This field is required."),
        (
            {"passphrase": "password", "again": "password"},
            "<li>This passphrase is too common.</li>",
        ),
        ({"passphrase": "a password", "again": "a password"}, "password of your login"),
        ({"label": "x" * 61}, "at most 60 characters"),
    ],
)
def test_what_makes_no_good_account_is_refused(person: Person, given, answer):
    response = person.client.post("/wallet/accounts/create", {**NEW, **given})
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert answer in response.content.decode()
    assert response.context["form"].non_field_errors() == []
    assert PASSPHRASE not in response.content.decode()
    assert not Keystore.objects.exists()


@pytest.mark.parametrize(
    "given",
    [
        {"private_key": "0x" + KEY.hex()},
        {"keystore_passphrase": "theirs", "keystore": True},
    ],
)
def test_key_is_brought_along(person: Person, given):
    if "keystore" in given:
        given = {
            **given,
            "keystore": file_of(encrypt(KEY, "theirs", scrypt_n=2, owner=1)),
        }
    response = person.client.post("/wallet/accounts/import", {**NEW, **given})
    assert response.status_code == HTTPStatus.FOUND
    account = Account.objects.get(user=person.user, address=address_of(KEY))
    assert unlock(account=account, passphrase=PASSPHRASE, cause=None) == KEY


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({}, "Select a keystore of at most 16 KiB"),
        ({"private_key": KEY.hex()[1:]}, "not a private key"),
        ({"keystore": {}, "keystore_passphrase": "x"}, "not a keystore of version 3"),
        (
            {"keystore": {"version": 3, "crypto": {"cipher": "aes"}}},
            "<li>The keystore&#x27;s cipher is not AES-128-CTR.</li>",
        ),
        (
            {
                "keystore": encrypt(KEY, "x", scrypt_n=2, owner=1),
                "private_key": KEY.hex(),
            },
            "but not both",
        ),
        ({"keystore": "x" * 20_000}, "it is too long"),
        ({"keystore": "x" * 100_000}, "it is too long"),
        ({"keystore": "x" * 2**21}, "Select a keystore of at most 16 KiB"),
        (
            {"keystore": encrypt(KEY, "theirs", scrypt_n=2, owner=1)},
            "The passphrase of the keystore is wrong.",
        ),
    ],
)
def test_what_is_no_key_is_refused_and_not_repeated(person: Person, given, answer):
    if "keystore" in given:
        given = {**given, "keystore": file_of(given["keystore"])}
    response = person.client.post("/wallet/accounts/import", {**NEW, **given})
    page = response.content.decode()
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert answer in page
    assert KEY.hex()[1:] not in page
    assert not Keystore.objects.exists()


def test_wrong_passphrase_is_reported_with_what_is_left(person: Person):
    place = f"/wallet/accounts/{created(person).pk}/key"
    for left in range(MAX_TRIES - 1, 0, -1):
        response = person.client.post(place, {"passphrase": "wrong"})
        assert response.status_code == HTTPStatus.BAD_REQUEST
        more = "one more wrong passphrase" if left == 1 else f"{left} more wrong ones"
        warning = f"After {more}, the account is locked for 15 minutes."
        assert warning in response.content.decode()
    response = person.client.post(place, {"passphrase": "wrong"})
    assert "The account is now locked for 15 minutes." in response.content.decode()
    response = person.client.post(place, {"passphrase": PASSPHRASE})
    assert "Too many wrong passphrases" in response.content.decode()


@pytest.mark.parametrize("way", ["key/delete", "remove"])
def test_key_is_deleted_after_confirmation(person: Person, way):
    account = created(person)
    place = f"/wallet/accounts/{account.pk}/{way}"
    response = person.client.post(place, follow=True)
    assert "tick the box to confirm" in response.content.decode()
    assert Keystore.objects.filter(account=account).exists()
    person.client.post(place, {"sure": "yes"})
    assert not Keystore.objects.filter(account=account).exists()
    assert Account.objects.filter(pk=account.pk).exists() == (way == "key/delete")


@pytest.mark.parametrize("place", ["key", "key/delete"])
def test_strangers_key_is_not_found(person: Person, stranger: Person, place):
    address = f"/wallet/accounts/{created(stranger).pk}/{place}"
    given = {"passphrase": PASSPHRASE, "sure": "yes"}
    assert person.client.post(address, given).status_code == HTTPStatus.NOT_FOUND
    assert Keystore.objects.count() == 1


@pytest.mark.parametrize("place", ["create", "import"])
def test_key_is_made_by_forms_of_this_site_alone(person: Person, place):
    client = Client(enforce_csrf_checks=True)
    client.force_login(person.user)
    given = {**NEW, "private_key": KEY.hex()}
    response = client.post(f"/wallet/accounts/{place}", given)
    assert response.status_code == HTTPStatus.FORBIDDEN
    assert not Keystore.objects.exists()


@pytest.mark.parametrize("place", ["create", "import"])
def test_old_log_in_makes_no_key(person: Person, place):
    session = person.client.session
    session["logged_in_at"] -= MAX_LOGIN_AGE + 1
    session.save()
    response = person.client.post(f"/wallet/accounts/{place}", NEW)
    assert response["Location"].startswith("/account/login")
    assert not Keystore.objects.exists()


def test_no_log_holds_a_passphrase_or_a_key(person: Person, caplog):
    for logger in ("", "django"):
        caplog.set_level(logging.DEBUG, logger=logger)
    with CaptureQueriesContext(connection):  # enables Django's log of SQL statements
        account = created(person)
        given = {**NEW, "private_key": KEY.hex()}
        person.client.post("/wallet/accounts/import", given)
        place = f"/wallet/accounts/{account.pk}/key"
        for passphrase in (PASSPHRASE, "a wrong passphrase"):
            person.client.post(place, {"passphrase": passphrase})
    logged = "\n".join(str(vars(record)) for record in caplog.records)
    assert "wallets_keystore" in logged
    for secret in (PASSPHRASE, "a wrong passphrase", KEY.hex()):
        assert secret not in logged
