"""The fields of an expiry in the admin: a date and a time, each with a label."""

from __future__ import annotations

from django.contrib.admin.widgets import AdminSplitDateTime


class ExpiryWidget(AdminSplitDateTime):
    """Django's fields of a date and a time, whose words are no labels to programs."""

    def __init__(self) -> None:
        super().__init__()
        for widget, label in zip(
            self.widgets, ("Date of the expiry", "Time of the expiry"), strict=True
        ):
            widget.attrs["aria-label"] = label
