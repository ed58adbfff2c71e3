"""Notices about changes that staff make.

Each function is called in the transaction of the change. A change by the customer, or by
a member of their account, sends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.urls import reverse
from django.utils import timezone

from keys.addresses import mailed_url
from keys.members import role_in
from keys.models import (
    AccessRequest,
    AccessStatus,
    ApiKey,
    Entitlement,
    KeyVersion,
    NoticeKind,
    User,
)
from keys.notices.queue import queue


def secret_revoked(version: KeyVersion, by: User | None) -> None:
    """Notify the customer that staff have revoked a secret.

    by: the user who did it; None for a command.
    """
    api_key = version.api_key
    if _is_by_staff(api_key, by):
        queue(
            api_key=api_key,
            kind=NoticeKind.SECRETS,
            mark=f"revoked {version.pk}",
            subject=f"{api_key}: support has revoked a secret",
            template="keys/mail/secret_revoked.txt",
            context={"version": version},
        )


def key_rolled(
    version: KeyVersion, replaced: Sequence[KeyVersion], end: datetime, by: User | None
) -> None:
    """Notify the customer that staff have rolled a key.

    version: the new secret. replaced, end: the former secrets, and their expiry.
    """
    api_key = version.api_key
    if _is_by_staff(api_key, by):
        queue(
            api_key=api_key,
            kind=NoticeKind.SECRETS,
            mark=f"rolled {version.pk}",
            subject=f"{api_key}: support has rolled the key",
            template="keys/mail/key_rolled.txt",
            context={
                "version": version,
                "replaced": replaced,
                "end": end if end > timezone.now() else None,
            },
        )


def key_deleted(api_key: ApiKey, by: User | None) -> None:
    """Notify the customer that staff have deleted a key."""
    if _is_by_staff(api_key, by):
        queue(
            api_key=api_key,
            kind=NoticeKind.SECRETS,
            mark="deleted",
            subject=f"{api_key}: support has deleted the key",
            template="keys/mail/key_deleted.txt",
            context={"link": mailed_url(reverse("dashboard:keys"))},
        )


def tracing_granted(entitlement: Entitlement) -> None:
    """Notify the customer that staff have granted tracing, or changed the terms."""
    api_key, network = entitlement.api_key, entitlement.network
    queue(
        api_key=api_key,
        kind=NoticeKind.TRACING,
        mark=f"granted {network.pk} {entitlement.granted_at.isoformat()}",
        subject=f"Tracing on {network.name}: granted",
        template="keys/mail/tracing_granted.txt",
        context={
            "entitlement": entitlement,
            "link": mailed_url(reverse("dashboard:tracing", args=[api_key.pk])),
        },
    )


def access_decided(request: AccessRequest) -> None:
    """Notify the customer of the decision on a request for access."""
    queue(
        api_key=request.api_key,
        kind=NoticeKind.TRACING,
        mark=f"request {request.pk}",
        subject=f"Tracing on {request.network.name}: {request.status}",
        template="keys/mail/access_decided.txt",
        context={
            "request": request,
            "is_approved": request.status == AccessStatus.APPROVED,
            "link": mailed_url(reverse("dashboard:tracing", args=[request.api_key_id])),
        },
    )


def _is_by_staff(api_key: ApiKey, by: User | None) -> bool:
    """Return whether a user is neither the customer nor a member of their account."""
    return by is None or role_in(by, api_key.owner) is None
