"""Dapps are paired: they prove who they are, and get a token with which they may ask.

A page proves its origin by being the one that receives a code, sent to that origin alone,
and knows the verifier behind the challenge that it began with. A program is named by the
user, who carries a short code from the wallet's page to it.
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

from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils import timezone

from keys.models import User
from keys.places import place_of
from wallets import conf
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
"""From one window of a browser to another."""

PROGRAM_CODE_LIFETIME = timedelta(minutes=5)
"""For a person to type it."""

MAX_GUESSES = 5
"""Wrong codes from one address within the lifetime of a program's code."""

MAX_COUNTED = 1000
"""Wrong codes of all addresses that are counted. Whoever has addresses for more than that
is not stopped, nor does he stop anybody: it is the length of a code that makes his guesses
hopeless."""

_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""Consonants, so that no word comes out."""

_CODE_LENGTH = 12
"""Of twenty letters, 52 bits: with ten codes out at any time, a thousand guesses a second
hit one of them within 13 000 years."""

_GUESSES_LOCK = 0x70616972
"""The number of an advisory lock that nobody else takes."""

_CHALLENGE = re.compile(r"[-_A-Za-z0-9]{43}")
_VERIFIER = re.compile(r"[-._~A-Za-z0-9]{43,128}")


class PairingRefused(Exception):
    """Raised for a code that is wrong, used or too old; which of it is not told."""


class DappBlocked(Exception):
    """Raised when a dapp is to be paired that the user or staff have blocked."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token at the only moment at which it is known."""

    token: DappToken
    secret: str = field(repr=False)


@transaction.atomic
def start_page_pairing(*, user: User, origin: str, challenge: str) -> str:
    """Return a code for a page of an origin, which the user has let ask.

    challenge: of S256, 43 characters.
    Raises: ValidationError; DappBlocked.
    """
    try:
        ident = parse_origin(origin)
    except ValueError as error:
        raise ValidationError({"origin": f"This is {error}."}) from error
    if not _CHALLENGE.fullmatch(challenge):
        raise ValidationError({"code_challenge": "This is no S256 challenge."})
    _refuse_if_blocked(user, DappKind.WEB, ident)
    code = new_token()
    _keep(user, DappKind.WEB, ident, code, PAGE_CODE_LIFETIME, challenge=challenge)
    return code


@transaction.atomic
def start_program_pairing(*, user: User, label: str) -> str:
    """Return a code for a program that the user gives a name: BCDF-GHJK-LMNP.

    Raises: ValidationError.
    """
    label = label.strip()
    if not label:
        raise ValidationError({"label": "Give the program a name."})
    letters = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LENGTH))
    ident = secrets.token_hex(16)
    _keep(user, DappKind.APP, ident, letters, PROGRAM_CODE_LIFETIME, label=label)
    return "-".join(letters[at : at + 4] for at in range(0, _CODE_LENGTH, 4))


def redeem_page_code(
    *, code: str, verifier: str, origin: str | None, cause: Cause
) -> IssuedToken:
    """Exchange a page's code for a token; the code is used up, right or wrong.

    origin: the request's Origin header.
    Raises: PairingRefused, DappBlocked.
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
    return _issue(pairing, cause)


def redeem_program_code(*, code: str, cause: Cause) -> IssuedToken:
    """Exchange a program's code for a token.

    Raises: PairingRefused, also for the right code from where too many wrong ones came;
        DappBlocked.
    """
    pairing = _guess(code, cause.remote_address)
    if pairing is None:
        raise PairingRefused
    return _issue(pairing, cause)


@transaction.atomic
def pair_dapp(
    *, user: User, kind: DappKind, ident: str, cause: Cause, label: str = ""
) -> Dapp:
    """Return a user's dapp of an identity, made if it is new, with an empty session.

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
    """Use a program's code up; None for a wrong one, which is counted."""
    with connection.cursor() as cursor:  # many guesses at once are counted like others
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_GUESSES_LOCK])
    since = timezone.now() - PROGRAM_CODE_LIFETIME
    FailedPairing.objects.filter(at__lt=since).delete()
    failed = FailedPairing.objects.all()
    place = place_of(remote_address)
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
    """Use a code up, and commit that whatever comes after; None when it is not good."""
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
def _issue(pairing: Pairing, cause: Cause) -> IssuedToken:
    # It may have ended since it was used up, and does not before the commit.
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
        expires_at=timezone.now() + conf.token_lifetime(),
    )
    announce_dapp(dapp)
    return IssuedToken(token, secret)


def _refuse_if_blocked(user: User, kind: DappKind, ident: str) -> None:
    own = Dapp.objects.filter(user=user, kind=kind, ident=ident)
    if own.exclude(blocked_at=None).exists() or _is_banned(kind, ident):
        raise DappBlocked


def _is_banned(kind: str, ident: str) -> bool:
    return BlockedDapp.objects.filter(kind=kind, ident=ident).exists()
