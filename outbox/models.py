"""The tables of the outbox.

SQL functions of the first migration write both of them; Python code only reads them and
deletes old entries.
"""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models


class Stream(models.Model):
    """A stream, and the number of its newest entry."""

    name = models.CharField(max_length=100, primary_key=True)
    epoch = models.UUIDField(
        help_text="Changes when numbers may have been assigned twice."
    )
    last_number = models.BigIntegerField()
    origin = models.CharField(
        max_length=50,
        help_text="Database and WAL timeline that assigned the last number. Another one,"
        " as after a failover or a restore, begins a new epoch.",
    )

    def __str__(self) -> str:
        return f"{self.name} at {self.last_number}"


class Entry(models.Model):
    """A change: what subscribers of the stream have to read again."""

    pk = models.CompositePrimaryKey("stream", "number")
    stream = models.CharField(max_length=100)
    number = models.BigIntegerField()
    subject = models.CharField(max_length=100)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "entries"
        indexes = [BrinIndex(fields=["created_at"], name="outbox_entry_by_time")]

    def __str__(self) -> str:
        return f"{self.stream} {self.number}: {self.subject}"
