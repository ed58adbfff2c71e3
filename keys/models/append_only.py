"""Rows of a log, which are inserted and never modified."""

from __future__ import annotations

from typing import Any

from django.db import models


class AppendOnly(models.Model):
    """A row that can only be inserted. Each table also has a trigger against changes."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert a new row. Raises: TypeError for an existing one."""
        if self.pk is not None:
            raise TypeError("events are not changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Raise TypeError, because rows can't be deleted."""
        raise TypeError("events are not deleted")
