"""Keys of accounts: made, brought along, opened, saved elsewhere, deleted.

A passphrase passes through here and is kept nowhere. Whoever guesses at one is stopped
by a count that is written before the guess is looked at: guesses at the same time count
like any others.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from keys.models import User
from wallets import conf
from wallets.caip import EIP155
from wallets.changes import Cause, announce_user, record
from wallets.models import Account, ConsentRequest, Event, Keystore
from wallets.services.accounts import add_account, follow_accounts
from wallets.services.requests import withdraw
from wallets.signing import keys
from wallets.signing.keys import WrongPassphrase
from wallets.signing.turns import TooBusy

MAX_TRIES = 5
"""Wrong passphrases in a row after which an account stays locked for a while."""

LOCKED_FOR = timedelta(minutes=15)
"""480 guesses a day, of passphrases that are no common ones."""


class NoKey(Exception):
    """Raised when an account has no key."""


class Locked(Exception):
    """Raised when an account takes no passphrase for a while, not even the right one.

    until: when it does again.
    """

    def __init__(self, until: datetime) -> None:
        super().__init__(f"locked until {until:%H:%M} UTC")
        self.until = until


def create_key(*, user: User, passphrase: str, label: str, cause: Cause) -> Account:
    """Give a user an account with a key that nobody else has.

    Raises: ValidationError; TooBusy.
    """
    return import_key(
        user=user, key=keys.new_key(), passphrase=passphrase, label=label, cause=cause
    )


def import_key(
    *, user: User, key: bytes, passphrase: str, label: str, cause: Cause
) -> Account:
    """Give a user the account of a key, or the account that he has its key.

    key: 32 bytes. label: of a new account; one that there is keeps its own.
    Raises: ValidationError, also for a key that he has already; TooBusy.
    """
    _refuse_weak(passphrase, user)
    document = keys.encrypt(key, passphrase, scrypt_n=conf.scrypt_cost(), owner=user.pk)
    address = keys.address_of(key)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        own = Account.objects.filter(user=user, namespace=EIP155)
        account = own.filter(address=address).first()
        if account is None:
            account = add_account(user=user, address=address, label=label, cause=cause)
        if Keystore.objects.filter(account=account).exists():
            raise ValidationError("You have this account with its key already.")
        Keystore.objects.create(account=account, document=document)
        record(Event.KEY_ADDED, cause, user, {"address": address})
        announce_user(user.pk)
    return account


def open_file(*, user: User, text: str, passphrase: str) -> bytes:
    """Return the private key in a keystore that a user brings along.

    Raises: ValidationError for what is none, or another passphrase's; TooBusy.
    """
    try:
        return keys.decrypt(keys.read_keystore(text), passphrase, owner=user.pk)
    except WrongPassphrase as error:
        raise ValidationError("The keystore has another passphrase.") from error
    except ValueError as error:
        raise ValidationError(f"This is {error}.") from error


def unlock(*, account: Account, passphrase: str, cause: Cause) -> bytes:
    """Return an account's private key: 32 bytes, for no longer than they are needed.

    Not within a transaction: a try counts, whatever becomes of the rest.
    Raises: NoKey; Locked; WrongPassphrase; TooBusy.
    """
    keystore = _count_try(account)
    try:
        key = keys.decrypt(keystore.document, passphrase, owner=account.user_id)
    except TooBusy:
        _give_try_back(keystore)
        raise
    except WrongPassphrase:
        if keystore.locked_until is not None:
            address = {"address": account.address}
            record(Event.KEY_LOCKED, cause, account.user, address)
        raise
    Keystore.objects.filter(pk=keystore.pk).update(tries=0, locked_until=None)
    return key


def save_key(*, account: Account, passphrase: str, cause: Cause) -> dict[str, Any]:
    """Return an account's keystore, for its user to keep elsewhere.

    Only for whoever knows the passphrase: others would have all time to guess it.
    Raises: as `unlock`.
    """
    unlock(account=account, passphrase=passphrase, cause=cause)
    record(Event.KEY_SAVED, cause, account.user, {"address": account.address})
    document: dict[str, Any] = Keystore.objects.get(account=account).document
    return document


@transaction.atomic
def delete_key(*, account: Account, cause: Cause) -> None:
    """Make an account a watch-only one; nothing happens to one that is.

    Signatures that are asked of it are withdrawn. Its user need not know the
    passphrase: he may have forgotten it.
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
    """Return how many more wrong passphrases an account takes before it is locked."""
    keystore = Keystore.objects.filter(account=account).first()
    return 0 if keystore is None else max(0, MAX_TRIES - keystore.tries)


def _refuse_weak(passphrase: str, user: User) -> None:
    """Refuse what is easily guessed, or known to whoever knows the log-in.

    Raises: ValidationError.
    """
    validate_password(passphrase, user)
    if user.check_password(passphrase):
        raise ValidationError("Choose another one than your log-in's password.")


@transaction.atomic(durable=True)
def _count_try(account: Account) -> Keystore:
    """Return a keystore whose next passphrase is counted as if it were wrong.

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
def _give_try_back(keystore: Keystore) -> None:
    """Take a try out of the count that was none."""
    locked = Keystore.objects.select_for_update().filter(pk=keystore.pk).first()
    if locked is not None and locked.tries:
        locked.tries -= 1
        locked.locked_until = None
        locked.save(update_fields=["tries", "locked_until"])
