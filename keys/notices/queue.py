"""Queueing and sending of notices."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.template.loader import render_to_string
from django.utils import timezone

from keys.mail import send_once
from keys.models import ApiKey, Membership, Notice, NoticeKind, Role, User
from keys.site import mailed_url

logger = logging.getLogger(__name__)

MAX_A_DAY = 100
"""Most notices to one user in 24 hours. Further ones are not sent."""

MAX_RECIPIENTS = 50
"""Maximum number of recipients of one notice."""

KEEP = timedelta(days=30)
"""How long notices are kept. It is longer than the time before an expiry at which the
first notice is sent, so that none is sent twice."""

LIFETIME = timedelta(days=2)
"""How long sending is tried, unless the occasion ends before."""

MAX_DELAY = timedelta(hours=4)
"""Longest time between two attempts."""

MAX_FAILURES = 3
"""Consecutive failed attempts after which the mail server is considered unavailable."""

BATCH = 500
"""Most notices sent in one run."""

_listeners: list[Callable[[], None]] = []

_INTERNAL = ".invalid"
"""Top-level domain of users who get no email (RFC 2606)."""


def queue(
    *,
    api_key: ApiKey,
    kind: NoticeKind,
    mark: str,
    subject: str,
    template: str,
    facts: Mapping[str, Any],
    until: datetime | None = None,
    is_timed: bool = False,
) -> int:
    """Queue an email to the users of a key's account, and return the number of new ones.

    The email is rendered when it is sent, because the caller may hold locks.

    mark: the occasion; there is one notice for each kind, key, occasion and user.
    template: the name of a file in `keys/mail/`. facts: its variables, as JSON values.
    until: when the notice becomes pointless; LIFETIME at most.
    is_timed: the periodic job has found the occasion, and sends the email itself. An
        occasion without recipients is recorded too, so that the job finds it once.
    """
    users = recipients(api_key, kind)
    if not users and not is_timed:
        return 0
    now = timezone.now()
    count = 0
    for user in users or [api_key.owner]:
        is_sent = bool(users) and not _has_enough(user, now)
        _, is_new = Notice.objects.get_or_create(
            api_key=api_key,
            kind=kind,
            mark=mark,
            user=user,
            defaults={
                "subject": subject[:200],
                "template": template,
                "facts": facts,
                "created_at": now,
                "until": min(until or now + LIFETIME, now + LIFETIME)
                if is_sent
                else now,
            },
        )
        count += is_new and is_sent
    if count and not is_timed:
        transaction.on_commit(_announce, robust=True)
    return count


def moment(at: datetime | None) -> str:
    """Return a time in UTC as emails show it, "" for None."""
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _has_enough(user: User, now: datetime) -> bool:
    """Return whether a user gets no more emails for now."""
    recent = user.notices.filter(created_at__gt=now - timedelta(days=1))
    has_enough = recent.filter(until__gt=F("created_at")).count() >= MAX_A_DAY
    if has_enough:
        logger.warning("user %s gets no more emails about keys today", user.pk)
    return has_enough


def listen(listener: Callable[[], None]) -> None:
    """Register a function that is called after commits that have queued emails."""
    _listeners.append(listener)


def unlisten(listener: Callable[[], None]) -> None:
    """Remove a function that `listen` has registered."""
    _listeners.remove(listener)


def _announce() -> None:
    for listener in list(_listeners):
        listener()


def recipients(api_key: ApiKey, kind: NoticeKind) -> list[User]:
    """Return the users who get notices of a kind: owners and developers of the account.

    Users who have switched the kind off, and inactive users, are omitted.
    """
    account = api_key.owner
    if not account.is_active:
        return []
    joined = Membership.objects.filter(account=account).exclude(role=Role.VIEWER)
    users = User.objects.filter(
        Q(pk=account.pk) | Q(pk__in=joined.values("member")), is_active=True
    )
    wanted = users.exclude(muted_notices__contains=[kind]).order_by("pk")
    return list(wanted.exclude(email__endswith=_INTERNAL)[:MAX_RECIPIENTS])


def send(pk: int) -> bool:
    """Send a notice, unless it was sent or is being sent. Return False if that failed."""
    now = timezone.now()
    with transaction.atomic():
        waiting = Notice.objects.filter(pk=pk, sent_at=None, until__gt=now)
        locked = waiting.select_for_update(skip_locked=True, of=["self"])
        notice = locked.select_related("user", "api_key__owner").first()
        if notice is None:
            return True
        try:
            send_once(
                notice.user.email,
                notice.subject,
                _text(notice),
                name=f"notice-{notice.pk}-{notice.created_at.timestamp():.0f}",
            )
        except OSError as error:
            logger.error("an email could not be sent: %s", error)
            notice.attempts += 1
            delay = timedelta(minutes=2 ** min(notice.attempts, 10))
            notice.next_at = now + min(delay, MAX_DELAY)
        else:
            notice.sent_at = now
        notice.save(update_fields=["sent_at", "attempts", "next_at"])
    return notice.sent_at is not None


def _text(notice: Notice) -> str:
    if not notice.template:
        return notice.text
    context = {"key": notice.api_key, "site": mailed_url(""), **notice.facts}
    return render_to_string(f"keys/mail/{notice.template}", context)


def send_waiting() -> int:
    """Send the notices that are due, and return their number."""
    now = timezone.now()
    due = Notice.objects.filter(sent_at=None, until__gt=now, next_at__lte=now)
    sent = failures = 0
    for pk in list(due.order_by("next_at").values_list("pk", flat=True)[:BATCH]):
        if send(pk):
            sent, failures = sent + 1, 0
        else:
            failures += 1
            if failures == MAX_FAILURES:
                break
    return sent


def prune() -> None:
    """Delete old notices."""
    Notice.objects.filter(created_at__lt=timezone.now() - KEEP).delete()
