"""The open sockets of dapps, and the processes that serve them."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from wallets.models.dapps import Dapp, DappToken

DEAD_AFTER = timedelta(seconds=10)
"""Age of `seen_at` from which a process counts as killed; five times the interval of its
renewal."""


class ServingProcess(models.Model):
    """A process that serves sockets, for as long as it renews its row."""

    number = models.BigIntegerField(primary_key=True)
    seen_at = models.DateTimeField(
        db_default=Now(), help_text="By the database's clock."
    )

    def __str__(self) -> str:
        return f"process {self.number}"


class LiveSocketQuerySet(models.QuerySet["LiveSocket"]):
    """Queries for dapps' sockets."""

    def open(self) -> LiveSocketQuerySet:
        """Return the sockets whose process is alive."""
        return self.filter(process__in=living_processes())

    def left(self) -> LiveSocketQuerySet:
        """Return the sockets whose process was killed before it could delete them."""
        return self.exclude(process__in=living_processes())


class LiveSocket(models.Model):
    """A dapp's open connection. The row is valid while the serving process is alive."""

    name = models.CharField(max_length=36, primary_key=True)
    dapp = models.ForeignKey(Dapp, on_delete=models.CASCADE, related_name="sockets")
    token = models.ForeignKey(
        DappToken, on_delete=models.CASCADE, related_name="sockets"
    )
    process = models.BigIntegerField(
        db_index=True, help_text="Number of the process that serves it."
    )
    remote_address = models.GenericIPAddressField(null=True, blank=True)
    opened_at = models.DateTimeField(default=timezone.now)

    objects = LiveSocketQuerySet.as_manager()

    class Meta:
        ordering = ["opened_at", "name"]

    def __str__(self) -> str:
        return f"socket of {self.dapp}"


def living_processes() -> models.QuerySet[ServingProcess, int]:
    """Return the numbers of the processes that are alive."""
    alive = ServingProcess.objects.filter(seen_at__gt=Now() - DEAD_AFTER)
    return alive.values_list("number", flat=True)
