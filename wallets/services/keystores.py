"""Keys of accounts: created, imported, unlocked, exported, deleted.

Passphrases are never stored. A counter that is written before a passphrase is tried
limits guesses, so that concurrent guesses are counted as well.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from keys.models import User
from wallets.caip import EIP155
from wallets.changes import Cause, announce_user, record
from wallets.models import Account, ConsentRequest, Event, Keystore
from wallets.services.accounts import add_account, follow_accounts
from wallets.services.requests import withdraw
from wallets.signing import keys
from wallets.signing.keys import WrongPassphrase
from wallets.signing.turns import TooBusy

MAX_TRIES = 5
"""Wrong passphrases in a row after which an account is locked."""

LOCKED_FOR = timedelta(minutes=15)
"""This lock allows 480 guesses a day. Common passphrases are rejected."""


class NoKey(Exception):
    """Raised when an account has no key."""


class Locked(Exception):
    """Raised when an account is locked. The right passphrase is rejected as well.

    until: when the lock ends.
    """

    def __init__(self, until: datetime) -> None:
        super().__init__(f"locked until {until:%H:%M} UTC")
        self.until = until


def create_key(*, user: User, passphrase: str, label: str, cause: Cause) -> Account:
    """Create an account with a new random key.

    Raises: ValidationError for an invalid label or a weak passphrase; TooBusy if too
        many keystores are being encrypted.
    """
    return import_key(
        user=user, key=keys.new_key(), passphrase=passphrase, label=label, cause=cause
    )


def import_key(
    *, user: User, key: bytes, passphrase: str, label: str, cause: Cause
) -> Account:
    """Add a key to a user's wallet, with its account if that does not exist.

    key: 32 bytes. label: of a new account; an existing one keeps its label.
    Raises: ValidationError for an invalid label or a weak passphrase, and for a key that
        the wallet has already; TooBusy if too many keystores are being encrypted.
    """
    _refuse_weak(passphrase, user)
    document = keys.encrypt(
        key, passphrase, scrypt_n=settings.WALLETS_SCRYPT_COST, owner=user.pk
    )
    address = keys.address_of(key)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        own = Account.objects.filter(user=user, namespace=EIP155)
        account = own.filter(address=address).first()
        if account is None:
            account = add_account(user=user, address=address, label=label, cause=cause)
        if Keystore.objects.filter(account=account).exists():
            raise ValidationError("You already have this account with its key.")
        Keystore.objects.create(account=account, document=document)
        record(Event.KEY_ADDED, cause, user, {"address": address})
        announce_user(user.pk)
    return account


def open_file(*, user: User, text: str, passphrase: str) -> bytes:
    """Return the private key in a keystore file of another wallet.

    Raises: ValidationError for an invalid keystore or a wrong passphrase; TooBusy.
    """
    try:
        return keys.decrypt(keys.read_keystore(text), passphrase, owner=user.pk)
    except WrongPassphrase as error:
        raise ValidationError("The passphrase of the keystore is wrong.") from error
    except ValueError as error:
        raise ValidationError(str(error)) from error


def unlock(*, account: Account, passphrase: str, cause: Cause) -> bytes:
    """Return an account's private key: 32 bytes, to be discarded after use.

    Do not call it in a transaction: an attempt is counted even if the caller fails.
    Raises: NoKey; Locked; WrongPassphrase; TooBusy.
    """
    keystore = _count_try(account)
    try:
        key = keys.decrypt(keystore.document, passphrase, owner=account.user_id)
    except TooBusy:
        _refund_try(keystore)
        raise
    except WrongPassphrase:
        if keystore.locked_until is not None:
            address = {"address": account.address}
            record(Event.KEY_LOCKED, cause, account.user, address)
        raise
    Keystore.objects.filter(pk=keystore.pk).update(tries=0, locked_until=None)
    return key


def save_key(*, account: Account, passphrase: str, cause: Cause) -> dict[str, Any]:
    """Return an account's keystore as JSON, for its user to store elsewhere.

    The passphrase is required, because a file allows unlimited guesses.
    Raises: as `unlock`.
    """
    unlock(account=account, passphrase=passphrase, cause=cause)
    record(Event.KEY_SAVED, cause, account.user, {"address": account.address})
    document: dict[str, Any] = Keystore.objects.get(account=account).document
    return document


@transaction.atomic
def delete_key(*, account: Account, cause: Cause) -> None:
    """Delete an account's key. Nothing happens for a watch-only account.

    Pending requests for its signatures are withdrawn. The passphrase is not required,
    because the user may have forgotten it.
    """
    user, address = account.user, account.address
    deleted, _ = Keystore.objects.filter(account=account).delete()
    if deleted:
        record(Event.KEY_DELETED, cause, user, {"address": address})
        follow_accounts(user.pk, cause)  # locks all of the user's sessions
        waiting = ConsentRequest.objects.pending().select_related("dapp")
        withdraw(waiting.filter(dapp__user=user, body__address=address), cause)
        announce_user(user.pk)


def tries_left(account: Account) -> int:
    """Return the number of wrong passphrases after which the account is locked."""
    keystore = Keystore.objects.filter(account=account).first()
    return 0 if keystore is None else max(0, MAX_TRIES - keystore.tries)


def _refuse_weak(passphrase: str, user: User) -> None:
    """Reject a passphrase that is easily guessed, or that is the login's password.

    Raises: ValidationError for the field `passphrase`.
    """
    try:
        validate_password(passphrase, user)
    except ValidationError as error:
        texts = [text.replace("password", "passphrase") for text in error.messages]
        raise ValidationError({"passphrase": texts}) from error
    if user.check_password(passphrase):
        fault = "Do not use the password of your login."
        raise ValidationError({"passphrase": fault})


@transaction.atomic(durable=True)
def _count_try(account: Account) -> Keystore:
    """Count an attempt as a wrong one, and return the keystore.

    Raises: NoKey; Locked.
    """
    keystore = Keystore.objects.select_for_update().filter(account=account).first()
    if keystore is None:
        raise NoKey
    now = timezone.now()
    if keystore.locked_until is not None and keystore.locked_until <= now:
        keystore.tries, keystore.locked_until = 0, None
    if keystore.locked_until is not None:
        raise Locked(keystore.locked_until)
    keystore.tries += 1
    if keystore.tries >= MAX_TRIES:
        keystore.locked_until = now + LOCKED_FOR
    keystore.save(update_fields=["tries", "locked_until"])
    return keystore


@transaction.atomic
def _refund_try(keystore: Keystore) -> None:
    """Undo the count of an attempt that did not happen."""
    locked = Keystore.objects.select_for_update().filter(pk=keystore.pk).first()
    if locked is not None and locked.tries:
        locked.tries -= 1
        locked.locked_until = None
        locked.save(update_fields=["tries", "locked_until"])
