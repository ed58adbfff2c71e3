"""Blocks in the admin, read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from evm.hexadecimal import to_hex
from keys.admin.lists import LongList
from networks.models import Network
from nodeapi.models import Block

if TYPE_CHECKING:  # the class is generic for the type checker alone
    _BlockAdmin = admin.ModelAdmin[Block]
else:
    _BlockAdmin = admin.ModelAdmin


@admin.register(Block)
class BlockAdmin(LongList, _BlockAdmin):
    """Blocks. The search by number or hash is exact, so that it uses an index."""

    list_display = [
        "number",
        "hash_start",
        "network",
        "transaction_count",
        "gas_used",
        "is_canonical",
    ]
    list_display_links = ["number", "hash_start"]
    list_filter = ["network", "is_canonical"]
    list_select_related = ["network"]
    sortable_by = ()  # sorting by another column would read all blocks
    search_fields = ["number"]
    search_help_text = "A block number or a full hash."
    fields = [
        "network",
        "number",
        "hash_hex",
        "parent_hex",
        "is_canonical",
        "timestamp",
        "total_difficulty",
        "state_root_hex",
        "gas_used",
        "transaction_count",
        "page",
    ]

    @admin.display(description="transactions and traces")
    def page(self, block: Block) -> SafeString:
        place = block.network.slug, bytes(block.hash)
        return format_html(
            '<a href="{}">View</a>', reverse("explore:block", args=place)
        )

    @admin.display(description="hash")
    def hash_start(self, block: Block) -> str:
        return f"0x{bytes(block.hash)[:6].hex()}…"

    @admin.display(description="hash")
    def hash_hex(self, block: Block) -> str:
        return to_hex(block.hash)

    @admin.display(description="parent hash")
    def parent_hex(self, block: Block) -> str:
        return to_hex(block.parent_hash)

    @admin.display(description="state root")
    def state_root_hex(self, block: Block) -> str:
        return to_hex(block.state_root)

    def get_ordering(self, request: HttpRequest) -> list[str]:
        # There is an index on network and number, and one on the time of the import.
        return ["-number"] if "network__id__exact" in request.GET else ["-id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Block]:
        # The RLP of a block may be large, and no column of the list shows it.
        long = ("header", "body", "document", "full_document")
        return super().get_queryset(request).defer(*long)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Block], search_term: str
    ) -> tuple[QuerySet[Block], bool]:
        term = search_term.strip().lower()
        if not term:
            return queryset, False
        # The indexes begin with the network.
        queryset = queryset.filter(
            network__in=list(Network.objects.values_list("pk", flat=True))
        )
        if term.isdecimal():
            # No block has a number that exceeds the column's type.
            number = min(int(term[:20]), 2**63 - 1)
            return queryset.filter(number=number), False
        try:
            block_hash = bytes.fromhex(term.removeprefix("0x"))
        except ValueError:
            return queryset.none(), False
        return queryset.filter(hash=block_hash), False

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
