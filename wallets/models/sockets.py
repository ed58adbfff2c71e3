"""The sockets of dapps that are open."""

from __future__ import annotations

from django.db import models
from django.db.models.expressions import RawSQL
from django.utils import timezone

from wallets.models.dapps import Dapp, DappToken

PROCESS_LOCKS = 0x77616C6C
"""The class of the advisory locks that serving processes hold, each its own number."""

_LIVING = """
    SELECT objid::bigint FROM pg_locks
    WHERE locktype = 'advisory' AND classid = %s AND objsubid = 2 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class LiveSocketQuerySet(models.QuerySet["LiveSocket"]):
    """Words of the trade for sockets."""

    def open(self) -> LiveSocketQuerySet:
        """Return the sockets whose process lives."""
        return self.filter(process__in=living_processes())

    def left(self) -> LiveSocketQuerySet:
        """Return what processes have left behind that were killed."""
        return self.exclude(process__in=living_processes())


class LiveSocket(models.Model):
    """A dapp's open connection, as long as the process that serves it lives."""

    name = models.CharField(max_length=36, primary_key=True)
    dapp = models.ForeignKey(Dapp, on_delete=models.CASCADE, related_name="sockets")
    token = models.ForeignKey(
        DappToken, on_delete=models.CASCADE, related_name="sockets"
    )
    process = models.BigIntegerField(
        db_index=True, help_text="Holds an advisory lock with this number."
    )
    remote_address = models.GenericIPAddressField(null=True, blank=True)
    opened_at = models.DateTimeField(default=timezone.now)

    objects = LiveSocketQuerySet.as_manager()

    class Meta:
        ordering = ["opened_at", "name"]

    def __str__(self) -> str:
        return f"socket of {self.dapp}"


def living_processes() -> RawSQL:
    """Return the numbers of the serving processes, as a subquery."""
    return RawSQL(_LIVING, [PROCESS_LOCKS])
