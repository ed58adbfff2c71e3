"""Notices about changes that staff make.

Each function is called in the transaction of the change. A change by the customer, or by
a member of their account, sends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone

from keys.models import (
    AccessRequest,
    AccessStatus,
    ApiKey,
    Entitlement,
    KeyVersion,
    NoticeKind,
    User,
)
from keys.notices.queue import moment, queue
from keys.selectors import role_in


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
            template="secret_revoked.txt",
            facts={"hint": version.hint, "reason": version.revoke_reason},
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
            template="key_rolled.txt",
            facts={
                "hint": version.hint,
                "replaced": [one.hint for one in replaced],
                "end": moment(end) if end > timezone.now() else "",
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
            template="key_deleted.txt",
            facts={},
        )


def tracing_granted(entitlement: Entitlement) -> None:
    """Notify the customer that staff have granted tracing, or changed the terms."""
    api_key, network = entitlement.api_key, entitlement.network
    queue(
        api_key=api_key,
        kind=NoticeKind.TRACING,
        mark=f"granted {network.pk} {entitlement.granted_at.isoformat()}",
        subject=f"Tracing on {network.name}: granted",
        template="tracing_granted.txt",
        facts={
            "network": network.name,
            "end": moment(entitlement.expires_at),
            "tracers": entitlement.tracers,
        },
    )


def access_decided(request: AccessRequest) -> None:
    """Notify the customer of the decision on a request for access."""
    queue(
        api_key=request.api_key,
        kind=NoticeKind.TRACING,
        mark=f"request {request.pk}",
        subject=f"Tracing on {request.network.name}: {request.status}",
        template="access_decided.txt",
        facts={
            "network": request.network.name,
            "is_approved": request.status == AccessStatus.APPROVED,
            "end": moment(request.expires_at),
            "tracers": request.tracers,
            "answer": request.answer,
        },
    )


def _is_by_staff(api_key: ApiKey, by: User | None) -> bool:
    """Return whether a user is neither the customer nor a member of their account."""
    return by is None or role_in(by, api_key.owner) is None
