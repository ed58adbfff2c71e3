"""URLs: `/explore/`, `/explore/search`, and the pages of `/explore/<network>/`."""

from __future__ import annotations

from django.urls import path, register_converter

from evm.hexadecimal import to_hex
from explorer import abi_views, views


class HashConverter:
    """A hash as 0x and 64 hexadecimal digits."""

    regex = "0x[0-9a-fA-F]{64}"

    def to_python(self, value: str) -> bytes:
        """Return the 32 bytes."""
        return bytes.fromhex(value[2:])

    def to_url(self, value: bytes | memoryview | str) -> str:
        """Return a hash as 0x…; text is returned unchanged."""
        return value if isinstance(value, str) else to_hex(value)


class AddressConverter(HashConverter):
    """An address as 0x and 40 hexadecimal digits, in any case."""

    regex = "0x[0-9a-fA-F]{40}"


class NumberConverter:
    """A block number that the database can hold."""

    regex = "[0-9]{1,18}"

    def to_python(self, value: str) -> int:
        """Return the number."""
        return int(value)

    def to_url(self, value: int) -> str:
        """Return the number as text."""
        return str(value)


register_converter(HashConverter, "hash")
register_converter(AddressConverter, "address")
register_converter(NumberConverter, "number")

app_name = "explore"
urlpatterns = [
    path("", views.index, name="index"),
    path("search", views.search_page, name="search"),
    path("<slug:slug>/", views.latest, name="network"),
    path("<slug:slug>/block/<hash:block_hash>", views.block, name="block"),
    path(
        "<slug:slug>/block/<number:number>",
        views.block_by_number,
        name="block_by_number",
    ),
    path("<slug:slug>/abis", abi_views.abis, name="abis"),
    path("<slug:slug>/abis/<int:pk>/delete", abi_views.delete, name="delete_abi"),
    path("<slug:slug>/tx/<hash:name>", views.transaction, name="transaction"),
    path("<slug:slug>/address/<address:account>", views.address, name="address"),
]
