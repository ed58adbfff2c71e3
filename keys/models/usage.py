"""Usage of keys: totals by minute, hour and day."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from keys.metering import meter as metering
from keys.models.api_keys import ApiKey, KeyVersion
from networks.models import Network


class Span(models.IntegerChoices):
    """Length of a bucket in seconds."""

    MINUTE = 60
    HOUR = 3600
    DAY = 86_400


class Outcome(models.TextChoices):
    """Result of a call."""

    OK = metering.OK, "success"
    CLIENT_ERROR = metering.CLIENT_ERROR, "client error"
    DENIED = metering.DENIED, "denied"
    LIMITED = metering.LIMITED, "rate limited"
    SERVER_ERROR = metering.SERVER_ERROR, "server error"
    TIMEOUT = metering.TIMEOUT, "timeout"


class UsageFields(models.Model):
    """Total of the calls with the same properties within one span of time.

    Each call is counted in a row of each span. See `keys.usage.tiers`.
    """

    network = models.ForeignKey(
        Network,
        db_index=False,  # always asked for together with a time
        on_delete=models.CASCADE,
        related_name="+",
    )
    method = models.CharField(max_length=100)
    outcome = models.CharField(max_length=16, choices=Outcome.choices)
    span = models.IntegerField(choices=Span.choices)
    start = models.DateTimeField()
    calls = models.BigIntegerField()
    credits = models.BigIntegerField()
    duration_us = models.BigIntegerField(
        help_text="Total duration of the calls in microseconds."
    )
    bytes_out = models.BigIntegerField(
        help_text="Total size of the responses in bytes."
    )
    latencies = ArrayField(
        models.BigIntegerField(),
        help_text="Number of calls that took less than 1, 2, 4, 8 … µs.",
    )

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.method} from {self.start:%Y-%m-%d %H:%M}"


class UsageBucket(UsageFields):
    """Usage of one key."""

    api_key = models.ForeignKey(
        ApiKey,
        db_index=False,  # the constraint's index begins with it
        on_delete=models.CASCADE,
        related_name="usage",
    )

    class Meta:
        verbose_name = "usage row"
        constraints = [
            models.UniqueConstraint(
                fields=["api_key", "span", "start", "network", "method", "outcome"],
                name="usage_once",
            )
        ]
        indexes = [models.Index(fields=["span", "start"], name="usage_by_age")]


class UsageTotal(UsageFields):
    """Usage of all keys together. Adding it up on demand would take too long."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["span", "start", "network", "method", "outcome"],
                name="usage_total_once",
            )
        ]


class DailyUse(models.Model):
    """Usage of a key on one day (UTC) in a single row, for lists of many keys."""

    day = models.DateField()
    api_key = models.ForeignKey(
        ApiKey, db_index=False, on_delete=models.CASCADE, related_name="+"
    )
    calls = models.BigIntegerField()
    failed = models.BigIntegerField(
        help_text="Calls with another outcome than success."
    )
    credits = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["day", "api_key"], name="daily_use_once")
        ]
        indexes = [models.Index(fields=["day", "-credits"], name="daily_use_busiest")]

    def __str__(self) -> str:
        return f"{self.calls} calls on {self.day}"


class KeyVersionUse(models.Model):
    """Time of a secret's last use.

    It is not in KeyVersion, whose rows are locked by changes.
    """

    version = models.OneToOneField(
        KeyVersion, primary_key=True, on_delete=models.CASCADE, related_name="use"
    )
    last_used_at = models.DateTimeField()
    last_network = models.ForeignKey(
        Network,
        null=True,
        db_index=False,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The network of the last use. None: it was deleted.",
    )

    def __str__(self) -> str:
        return f"{self.last_used_at:%Y-%m-%d %H:%M:%S}"
