"""Changes of keys. Each is announced to the serving processes when it commits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils import timezone

from keys import format as key_format
from keys.grants import CHANNEL
from keys.models import ApiKey, KeyVersion, User
from networks.models import Network


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key at the only moment at which its secret is known.

    secret: the key itself; not shown by repr, so that no log gets it.
    """

    api_key: ApiKey
    version: KeyVersion
    secret: str = field(repr=False)


def announce_key(api_key: ApiKey) -> None:
    """Tell the serving processes, at the commit, that a key has changed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, str(api_key.pk)])


@transaction.atomic
def get_or_create_customer(*, email: str) -> User:
    """Return the user with an e-mail address, a new one without password if needed.

    Raises: ValidationError for what is no address.
    """
    address = User.objects.normalize_email(email)
    user = User.objects.filter(email=address).first()
    if user is None:
        user = User(email=address)
        user.set_unusable_password()
        user.full_clean()
        user.save()
    return user


@transaction.atomic
def issue_key(
    *,
    owner: User,
    name: str = "",
    networks: Iterable[Network] = (),
    may_trace: bool = False,
    expires_at: datetime | None = None,
    created_by: User | None = None,
) -> IssuedKey:
    """Make an API key with its first secret.

    networks: those it opens; none named: all.
    Raises: ValidationError.
    """
    api_key = ApiKey(owner=owner, name=name, may_trace=may_trace, created_by=created_by)
    api_key.full_clean()
    api_key.save()
    api_key.networks.set(networks)
    return issue_version(api_key=api_key, expires_at=expires_at, created_by=created_by)


@transaction.atomic
def issue_version(
    *,
    api_key: ApiKey,
    expires_at: datetime | None = None,
    created_by: User | None = None,
) -> IssuedKey:
    """Give an API key another secret.

    Raises: ValidationError, also for an expiry that has passed.
    """
    if expires_at is not None and expires_at <= timezone.now():
        raise ValidationError({"expires_at": "The expiry has passed already."})
    secret = key_format.make_key()
    version = KeyVersion(
        api_key=api_key,
        digest=key_format.digest(secret),
        hint=key_format.hint(secret),
        expires_at=expires_at,
        created_by=created_by,
    )
    version.full_clean()
    version.save()
    announce_key(api_key)
    return IssuedKey(api_key, version, secret)


@transaction.atomic
def revoke_version(
    *, version: KeyVersion, reason: str, revoked_by: User | None = None
) -> KeyVersion:
    """Make a secret useless for ever.

    Raises: ValidationError when it was revoked before.
    """
    version = KeyVersion.objects.select_for_update(of=["self"]).get(pk=version.pk)
    if version.revoked_at is not None:
        raise ValidationError(f"{version.hint} was revoked already.")
    version.revoked_at = timezone.now()
    version.revoked_by = revoked_by
    version.revoke_reason = reason
    version.full_clean()
    version.save()
    announce_key(version.api_key)
    return version
