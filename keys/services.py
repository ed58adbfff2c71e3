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
from keys.models import ApiKey, Capability, Entitlement, KeyVersion, User
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
    may_trace: grants tracing, with all tracers, on each network that it opens today;
        one that is added later must be granted by itself.
    Raises: ValidationError.
    """
    api_key = ApiKey(owner=owner, name=name, created_by=created_by)
    api_key.full_clean()
    api_key.save()
    api_key.networks.set(networks)
    if may_trace:
        for network in api_key.networks.all() or Network.objects.all():
            grant_entitlement(api_key=api_key, network=network, granted_by=created_by)
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


@transaction.atomic
def grant_entitlement(
    *,
    api_key: ApiKey,
    network: Network,
    capability: str = Capability.TRACE,
    tracers: Iterable[str] = (),
    expires_at: datetime | None = None,
    note: str = "",
    granted_by: User | None = None,
) -> Entitlement:
    """Grant a capability on a network, on these terms and none of earlier ones.

    tracers: those that it is for; none named: all that the network offers.
    Raises: ValidationError, also for a network that the key does not open and for an
        expiry that has passed.
    """
    if expires_at is not None and expires_at <= timezone.now():
        raise ValidationError({"expires_at": "The expiry has passed already."})
    opened = api_key.networks.all()
    if opened and network not in opened:
        raise ValidationError(f"The key does not open {network}.")
    # Of two who grant at the same time the later one's terms hold, not a mixture.
    ApiKey.objects.select_for_update().get(pk=api_key.pk)
    place = {"api_key": api_key, "network": network, "capability": capability}
    entitlement = Entitlement.objects.filter(**place).first() or Entitlement(**place)
    entitlement.tracers = list(dict.fromkeys(tracers))
    entitlement.expires_at = expires_at
    entitlement.note = note
    entitlement.granted_by = granted_by
    entitlement.granted_at = timezone.now()
    entitlement.full_clean()
    entitlement.save()
    announce_key(api_key)
    return entitlement


@transaction.atomic
def withdraw_entitlement(*, entitlement: Entitlement) -> None:
    """Take a capability away again."""
    entitlement.delete()
    announce_key(entitlement.api_key)
