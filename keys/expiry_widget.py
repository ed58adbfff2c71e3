"""The fields of an expiry in the admin: a date and a time, each with a label."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.widgets import AdminSplitDateTime


class ExpiryWidget(AdminSplitDateTime):
    """Django's fields of a date and a time, whose words are no labels to programs."""

    def __init__(self) -> None:
        super().__init__()
        for widget, label in zip(
            self.widgets, ("Date of the expiry", "Time of the expiry"), strict=True
        ):
            widget.attrs["aria-label"] = label

    def decompress(self, value: Any) -> tuple[Any, Any]:
        """Return the date and the time of a value. A link's text for the field has none."""
        return super().decompress(None if isinstance(value, str) else value)
