"""Deletions of networks in the admin, read-only, with their progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from keys.admin.lists import ReadOnly
from networks.models import NetworkDeletion
from nodeapi.deletion.progress import decode
from nodeapi.status.troubles import percent_of

if TYPE_CHECKING:  # the class is generic for the type checker alone
    _DeletionAdmin = admin.ModelAdmin[NetworkDeletion]
else:
    _DeletionAdmin = admin.ModelAdmin


@admin.register(NetworkDeletion)
class NetworkDeletionAdmin(ReadOnly, _DeletionAdmin):
    """The deletions of networks, finished or not."""

    list_display = ["slug", "name", "state", "requested_by", "requested_at"]
    search_fields = ["slug", "name"]
    fields = [
        *("slug", "name", "chain_id", "requested_by", "requested_at"),
        *("state", "updated_at", "finished_at", "progress"),
    ]

    @admin.display(description="state")
    def state(self, deletion: NetworkDeletion) -> str:
        if deletion.finished_at is not None:
            return "finished"
        if deletion.updated_at is None:
            return "waiting for manage.py follow"
        return f"deleting, {percent_of(deletion)} %"

    @admin.display(description="tables")
    def progress(self, deletion: NetworkDeletion) -> SafeString:
        shown = [one for one in decode(deletion.tables) if one.about or one.deleted]
        context: dict[str, Any] = {"tables": shown, "has_begun": True}
        return render_to_string("admin/networks/network/tables.html", context)
