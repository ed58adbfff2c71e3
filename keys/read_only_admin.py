"""Base class of read-only admin pages."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from keys.long_lists import LongList


class ReadOnly(LongList):
    """An admin that shows objects and can't change them."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
