"""The log of all keys in the admin, to be looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from keys.models import KeyEvent

if TYPE_CHECKING:  # the class is generic for the type checker alone
    _KeyEventAdmin = admin.ModelAdmin[KeyEvent]
else:
    _KeyEventAdmin = admin.ModelAdmin


@admin.register(KeyEvent)
class KeyEventAdmin(_KeyEventAdmin):
    """What became of keys."""

    list_display = ["at", "type", "api_key", "actor", "actor_ip", "data"]
    list_filter = ["type"]
    list_select_related = ["api_key", "actor"]
    search_fields = ["=api_key__id", "=actor__email", "=api_key__owner__email"]
    search_help_text = "Number of a key, or the whole address of its owner or an actor."
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False
