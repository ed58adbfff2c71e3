"""Reports of the followers: status, reorganisations, quarantined blocks, timings.

The rows are for pages, metrics and `network_status`. The import does not read them.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from networks.models import Network, Upstream


class FollowerStatus(models.Model):
    """The state of a network's follower: one row for each followed network."""

    network = models.OneToOneField(
        Network,
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="follower_status",
    )
    process_started_at = models.DateTimeField()
    updated_at = models.DateTimeField(
        help_text="Written every second while the follower runs."
    )
    best_number = models.BigIntegerField(
        null=True, help_text="Highest head that the upstreams report."
    )
    best_hash = models.BinaryField(max_length=32, null=True)
    starting_number = models.BigIntegerField(
        null=True, help_text="The head when catching up began. None: up to date."
    )
    alarm = models.TextField(
        blank=True, default="", help_text="Why following has stopped. Empty: it runs."
    )

    class Meta:
        verbose_name = "follower status"
        verbose_name_plural = "follower statuses"

    def __str__(self) -> str:
        return f"follower of {self.network_id}"


class UpstreamStatus(models.Model):
    """The last observations of an upstream."""

    upstream = models.OneToOneField(
        Upstream, primary_key=True, on_delete=models.CASCADE, related_name="status"
    )
    head_number = models.BigIntegerField(null=True)
    head_hash = models.BinaryField(max_length=32, null=True)
    client_version = models.CharField(
        max_length=200, blank=True, default="", help_text="web3_clientVersion."
    )
    latency_ms = models.FloatField(
        null=True, help_text="Moving average over the last requests."
    )
    requests = models.BigIntegerField(default=0, help_text="Since the follower began.")
    errors = models.BigIntegerField(default=0, help_text="Of these requests.")
    last_error = models.TextField(
        blank=True, default="", help_text="Without the upstream's URL."
    )
    last_error_at = models.DateTimeField(null=True)
    backing_off_until = models.DateTimeField(
        null=True, help_text="No requests are sent before."
    )
    checked_at = models.DateTimeField(null=True, help_text="Last request.")
    fork_warnings = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="Differences of its fork schedule from ours, one a line.",
    )
    unsupported_fork_time = models.DecimalField(
        max_digits=20,
        decimal_places=0,
        null=True,
        help_text="Unix time of the first fork that it schedules and we lack.",
    )

    class Meta:
        verbose_name = "upstream status"
        verbose_name_plural = "upstream statuses"

    def __str__(self) -> str:
        return f"status of upstream {self.upstream_id}"


class Reorganisation(models.Model):
    """A change of the canonical chain that demoted blocks, written in its commit."""

    network = models.ForeignKey(
        Network,
        on_delete=models.CASCADE,
        related_name="reorganisations",
        db_index=False,  # the index below begins with it
    )
    at = models.DateTimeField(db_default=Now())
    fork_number = models.BigIntegerField(
        help_text="Number of the newest block of both branches."
    )
    old_hash = models.BinaryField(max_length=32, help_text="The head before.")
    new_hash = models.BinaryField(max_length=32, help_text="The head afterwards.")
    depth = models.PositiveIntegerField(
        help_text="Number of blocks that became side blocks."
    )
    added = models.PositiveIntegerField(
        help_text="Number of blocks that became canonical. 0: the head went back."
    )

    class Meta:
        indexes = [models.Index(fields=["network", "at"], name="reorganisation_time")]

    def __str__(self) -> str:
        return f"{self.depth} blocks above {self.fork_number}"


class QuarantinedBlock(models.Model):
    """An invalid block that an upstream has sent. It is not fetched again."""

    network = models.ForeignKey(
        Network, on_delete=models.CASCADE, related_name="quarantined_blocks"
    )
    hash = models.BinaryField(max_length=32)
    number = models.BigIntegerField()
    upstream = models.ForeignKey(
        Upstream,
        null=True,
        on_delete=models.SET_NULL,
        related_name="quarantined_blocks",
        help_text="The upstream that sent it. None: it was deleted.",
    )
    reason = models.TextField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["network", "hash", "upstream"], name="quarantined_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.number} 0x{bytes(self.hash).hex()}"


class ImportTiming(models.Model):
    """The time that the import of one followed block took, by phase.

    The follower keeps the rows of the last day.
    """

    network = models.ForeignKey(
        Network,
        on_delete=models.CASCADE,
        related_name="import_timings",
        db_index=False,  # the index below begins with it
    )
    number = models.BigIntegerField()
    at = models.DateTimeField(db_default=Now())
    fetch_ms = models.FloatField(help_text="From the first request to the last byte.")
    execute_ms = models.FloatField(help_text="Verification, with the execution.")
    commit_ms = models.FloatField(help_text="The transaction with the head.")
    transactions = models.PositiveIntegerField()
    gas_used = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["network", "at"], name="import_timing_time")]

    def __str__(self) -> str:
        return f"import of {self.number}"
