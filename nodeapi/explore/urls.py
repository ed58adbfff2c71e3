"""URLs: `/explore/`, `/explore/<network>/`, `…/block/<hash>`, `…/tx/<hash>`."""

from __future__ import annotations

from django.urls import path, register_converter

from nodeapi.explore import views


class HashConverter:
    """A hash as 0x and 64 hexadecimal digits."""

    regex = "0x[0-9a-fA-F]{64}"

    def to_python(self, value: str) -> bytes:
        """Return the 32 bytes."""
        return bytes.fromhex(value[2:])

    def to_url(self, value: bytes | memoryview | str) -> str:
        """Return a hash as 0x…; text is returned unchanged."""
        return value if isinstance(value, str) else f"0x{bytes(value).hex()}"


register_converter(HashConverter, "hash")

app_name = "explore"
urlpatterns = [
    path("", views.index, name="index"),
    path("<slug:slug>/", views.latest, name="network"),
    path("<slug:slug>/block/<hash:block_hash>", views.block, name="block"),
    path("<slug:slug>/tx/<hash:name>", views.transaction, name="transaction"),
]
