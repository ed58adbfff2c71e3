"""Pairing: a dapp proves its identity and gets a token for its requests.

A page proves its origin by receiving a code that is sent to that origin only, and by
knowing the verifier of the challenge that it has sent before. The user names a program
and types a short code from the wallet's page into it.
Source: RFC 7636 for challenge and verifier, RFC 8628 for short codes
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils import timezone

from keys.models import User
from legible.fields import validate_name
from server.addresses import owner_of
from wallets.changes import Cause, announce_dapp, announce_user, record
from wallets.credentials import digest, new_token
from wallets.identity import parse_origin
from wallets.models import (
    BlockedDapp,
    Dapp,
    DappKind,
    DappToken,
    Event,
    FailedPairing,
    Pairing,
    Session,
)

PAGE_CODE_LIFETIME = timedelta(seconds=60)
"""Time for one browser window to pass the code to another."""

PROGRAM_CODE_LIFETIME = timedelta(minutes=5)
"""Time for a person to type the code."""

MAX_GUESSES = 5
"""Wrong codes from one address within the lifetime of a program's code."""

MAX_COUNTED = 1000
"""Wrong codes of all addresses that are counted. An attacker with more addresses is not
stopped, and does not lock out others. Guessing fails because of the length of a code."""

_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""Consonants, so that codes contain no words."""

_CODE_LENGTH = 12
"""Twelve of twenty letters have 52 bits: with ten valid codes at any time, a thousand
guesses a second hit one of them within 13 000 years."""

_GUESSES_LOCK = 0x70616972
"""The number of an advisory lock of this module."""

_CHALLENGE = re.compile(r"[-_A-Za-z0-9]{43}")
_VERIFIER = re.compile(r"[-._~A-Za-z0-9]{43,128}")


class PairingRefused(Exception):
    """Raised for a code that is wrong, used or expired. The message hides which."""


class DappBlocked(Exception):
    """Raised when the dapp to be paired is blocked by the user or by staff."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token with its secret, which is not stored."""

    token: DappToken
    secret: str = field(repr=False)


def is_page_blocked(*, user: User, origin: str) -> bool:
    """Return whether the user or staff have blocked a page. origin: in normal form."""
    try:
        _refuse_if_blocked(user, DappKind.WEB, origin)
    except DappBlocked:
        return True
    return False


@transaction.atomic
def start_page_pairing(*, user: User, origin: str, challenge: str) -> str:
    """Return a code for a page of an origin that the user has approved.

    challenge: S256, 43 characters of base64url.
    Raises: ValidationError; DappBlocked.
    """
    try:
        ident = parse_origin(origin)
    except ValueError as error:
        raise ValidationError({"origin": f"This is {error}."}) from error
    if not _CHALLENGE.fullmatch(challenge):
        raise ValidationError({"code_challenge": "This is not an S256 challenge."})
    _refuse_if_blocked(user, DappKind.WEB, ident)
    code = new_token()
    _keep(user, DappKind.WEB, ident, code, PAGE_CODE_LIFETIME, challenge=challenge)
    return code


@transaction.atomic
def start_program_pairing(*, user: User, label: str) -> str:
    """Return a code such as BCDF-GHJK-LMNP for a program.

    label: the user's name for the program.
    Raises: ValidationError if the label is invalid.
    """
    label = label.strip()
    if not label:
        raise ValidationError({"label": "Give the program a name."})
    validate_name(label)
    letters = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LENGTH))
    ident = secrets.token_hex(16)
    _keep(user, DappKind.APP, ident, letters, PROGRAM_CODE_LIFETIME, label=label)
    return "-".join(letters[at : at + 4] for at in range(0, _CODE_LENGTH, 4))


def redeem_page_code(
    *, code: str, verifier: str, origin: str | None, cause: Cause
) -> IssuedToken:
    """Exchange a page's code for a token. The code is consumed in any case.

    origin: the request's Origin header.
    Raises: PairingRefused for an invalid code, or for another origin or verifier;
        DappBlocked.
    """
    pairing = _take(code, DappKind.WEB)
    if pairing is None:
        raise PairingRefused
    fits = _VERIFIER.fullmatch(verifier) is not None and hmac.compare_digest(
        base64.urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"="),
        pairing.challenge.encode(),
    )
    if not fits or origin != pairing.ident:
        raise PairingRefused
    return issue(pairing, cause)


def redeem_program_code(*, code: str, cause: Cause) -> IssuedToken:
    """Exchange a program's code for a token.

    Raises: PairingRefused, also for a valid code from an address with too many wrong
        ones; DappBlocked.
    """
    pairing = _guess(code, cause.remote_address)
    if pairing is None:
        raise PairingRefused
    return issue(pairing, cause)


@transaction.atomic
def pair_dapp(
    *, user: User, kind: DappKind, ident: str, cause: Cause, label: str = ""
) -> Dapp:
    """Return a user's dapp with an identity; create it if needed, with no session.

    Raises: DappBlocked.
    """
    _refuse_if_blocked(user, kind, ident)
    dapp, is_new = Dapp.objects.get_or_create(
        user=user,
        kind=kind,
        ident=ident,
        defaults={"label": label, "created_from": cause.remote_address},
    )
    if is_new:
        Session.objects.create(dapp=dapp)
    record(Event.PAIRED, cause, dapp)
    announce_user(user.pk)
    return dapp


def _keep(
    user: User,
    kind: DappKind,
    ident: str,
    code: str,
    lifetime: timedelta,
    *,
    label: str = "",
    challenge: str = "",
) -> None:
    pairing = Pairing(
        user=user,
        kind=kind,
        ident=ident,
        label=label,
        digest=digest(code),
        challenge=challenge,
        expires_at=timezone.now() + lifetime,
    )
    pairing.full_clean()
    pairing.save()


@transaction.atomic
def _guess(code: str, remote_address: str | None) -> Pairing | None:
    """Consume a program's code; return None for a wrong code, which is counted."""
    with connection.cursor() as cursor:  # so that concurrent guesses are counted
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_GUESSES_LOCK])
    since = timezone.now() - PROGRAM_CODE_LIFETIME
    FailedPairing.objects.filter(at__lt=since).delete()
    failed = FailedPairing.objects.all()
    place = owner_of(remote_address)
    of_address = failed.filter(remote_address=place)
    if of_address.count() >= MAX_GUESSES:
        return None
    letters = re.sub(r"[\s-]", "", code[: 4 * _CODE_LENGTH]).upper()
    pairing = _take(letters, DappKind.APP)
    if pairing is None and failed.count() < MAX_COUNTED:
        FailedPairing.objects.create(remote_address=place)
    return pairing


@transaction.atomic
def _take(code: str, kind: DappKind) -> Pairing | None:
    """Consume a code and commit immediately. Return None if the code is invalid."""
    now = timezone.now()
    usable = Pairing.objects.filter(kind=kind, used_at=None, expires_at__gt=now)
    pairing = (
        usable.select_related("user")
        .select_for_update(of=["self"])
        .filter(digest=digest(code), user__is_active=True)
        .first()
    )
    if pairing is not None:
        pairing.used_at = now
        pairing.save(update_fields=["used_at"])
    return pairing


@transaction.atomic
def issue(pairing: Pairing, cause: Cause) -> IssuedToken:
    """Return a new token for the dapp of a consumed pairing.

    Raises: PairingRefused if the pairing has expired or was invalidated.
    """
    # It may have been invalidated since it was consumed; the lock prevents that now.
    codes = Pairing.objects.select_for_update(no_key=True)
    if not codes.filter(pk=pairing.pk, expires_at__gt=timezone.now()).first():
        raise PairingRefused
    dapp = pair_dapp(
        user=pairing.user,
        kind=DappKind(pairing.kind),
        ident=pairing.ident,
        label=pairing.label,
        cause=cause,
    )
    secret = new_token()
    token = DappToken.objects.create(
        dapp=dapp,
        digest=digest(secret),
        created_from=cause.remote_address,
        expires_at=timezone.now() + timedelta(days=settings.WALLETS_TOKEN_DAYS),
    )
    announce_dapp(dapp)
    return IssuedToken(token, secret)


def _refuse_if_blocked(user: User, kind: DappKind, ident: str) -> None:
    own = Dapp.objects.filter(user=user, kind=kind, ident=ident)
    if own.exclude(blocked_at=None).exists() or _is_banned(kind, ident):
        raise DappBlocked


def _is_banned(kind: str, ident: str) -> bool:
    return BlockedDapp.objects.filter(kind=kind, ident=ident).exists()
