"""What pages of the admin share that only show."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from keys.long_lists import LongList


class ReadOnly(LongList):
    """What staff may look at, and nothing else."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
