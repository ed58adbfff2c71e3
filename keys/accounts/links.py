"""Signed links that confirm an address. Each is valid once, for a day."""

from __future__ import annotations

from django.core import signing
from django.db import IntegrityError, transaction
from django.utils import timezone

from keys.accounts.outgoing import LIFETIME
from keys.models import AccountMail, User

_SALT = "keys.accounts.links"


class LinkUseless(Exception):
    """Raised for a link that is forged, used or too old, without saying which."""


def make_token(mail: AccountMail) -> str:
    """Return the signed token for the link of an email."""
    return signing.dumps(mail.pk, salt=_SALT)


def find_mail(token: str) -> AccountMail:
    """Return the email of a valid link, without using up the link.

    Programs that scan emails open links as well.

    Raises: LinkUseless if the link is invalid, or if the address has an account by now.
    """
    try:
        pk = signing.loads(token, salt=_SALT, max_age=LIFETIME)
        mail = AccountMail.objects.get(pk=pk, used_at=None)
    except (signing.BadSignature, AccountMail.DoesNotExist) as error:
        raise LinkUseless from error
    if User.objects.filter(email=mail.email).exists():
        raise LinkUseless
    return mail


@transaction.atomic
def make_account(token: str, password: str) -> User:
    """Use up a link, and create the user whose address the link has confirmed.

    Raises: LinkUseless if the link is forged, used or expired.
    """
    pk = find_mail(token).pk
    # Of two concurrent clicks, the later one waits here, and finds the link used.
    mail = AccountMail.objects.select_for_update().get(pk=pk)
    if mail.used_at is not None or User.objects.filter(email=mail.email).exists():
        raise LinkUseless
    mail.used_at = timezone.now()
    mail.save()
    try:
        return User.objects.create_user(mail.email, password)
    except IntegrityError as error:  # another email's link was used at the same time
        raise LinkUseless from error
