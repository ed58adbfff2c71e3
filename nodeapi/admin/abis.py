"""Uploaded ABIs in the admin. They are uploaded on the pages of the explorer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from abi.addresses import checksummed
from nodeapi.models import ContractAbi

if TYPE_CHECKING:  # the class is generic for the type checker alone
    _AbiAdmin = admin.ModelAdmin[ContractAbi]
else:
    _AbiAdmin = admin.ModelAdmin


@admin.register(ContractAbi)
class ContractAbiAdmin(_AbiAdmin):
    """ABIs of staff and customers. Staff can delete them."""

    list_display = ["name", "network", "contract", "size", "owner", "uploaded_at"]
    list_filter = ["network"]
    list_select_related = ["network", "owner"]
    search_fields = ["name"]
    show_full_result_count = False
    fields = [
        "name",
        "network",
        "contract",
        "size",
        "owner",
        "uploaded_by",
        "uploaded_at",
    ]

    @admin.display(description="contract")
    def contract(self, abi: ContractAbi) -> str:
        address = bytes(abi.address)
        return checksummed(address) if address else "all contracts"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
