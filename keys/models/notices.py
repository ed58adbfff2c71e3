"""Emails to users about their keys, queued in the transaction of their cause."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from keys.models.api_keys import ApiKey
from keys.models.notice_kinds import NoticeKind
from keys.models.users import User


class Notice(models.Model):
    """An email to one user. See `keys.notices`."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="notices")
    api_key = models.ForeignKey(
        ApiKey, db_index=False, on_delete=models.CASCADE, related_name="notices"
    )
    kind = models.CharField(max_length=16, choices=NoticeKind.choices)
    mark = models.CharField(
        max_length=100,
        help_text="The occasion, such as a day and a percentage. There is one email for each"
        " occasion.",
    )
    subject = models.CharField(max_length=200)
    text = models.TextField(
        default="", db_default="", help_text="Of emails that an older version queued."
    )
    template = models.CharField(max_length=100, default="", db_default="")
    facts = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="Variables of the template, as of the occasion.",
    )
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    until = models.DateTimeField(help_text="It is not sent after this time.")
    sent_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(
        default=timezone.now, help_text="It is not sent before this time."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["api_key", "kind", "mark", "user"], name="notice_once"
            )
        ]
        indexes = [
            models.Index(
                fields=["next_at"],
                condition=models.Q(sent_at=None),
                name="notice_waiting",
            ),
            models.Index(fields=["user", "created_at"], name="notice_of_user"),
        ]

    def __str__(self) -> str:
        return self.subject


class NoticeCheck(models.Model):
    """The last check for quotas and expiries, in one row for all processes."""

    checked_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.checked_at:%Y-%m-%d %H:%M:%S}"
