"""Form fields that also submit their initial value.

A form can then detect the fields that the user has changed, even if another user has
changed the row in the meantime.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime


class ShownField(forms.BoundField):
    """A field with a hidden copy of its initial value, kept over repeated submissions.

    After an error elsewhere in the form, Django would replace the initial value of
    multi-value widgets (such as a date) and of empty selections by the input. The field
    would then not be detected as changed at the next submission.
    """

    def as_widget(
        self,
        widget: forms.Widget | None = None,
        attrs: Any = None,
        only_initial: bool = False,
    ) -> Any:
        """Return the widget, or the hidden widget with the initial value."""
        if not (only_initial and self.form.is_bound):
            return super().as_widget(widget, attrs, only_initial)
        hidden = self.field.hidden_widget()
        name = self.html_initial_name
        shown = hidden.value_from_datadict(self.form.data, self.form.files, name)
        return hidden.render(
            name=name,
            value=shown,
            attrs={"id": self.html_initial_id, **(attrs or {})},
            renderer=self.form.renderer,
        )


class ExpiryWidget(AdminSplitDateTime):
    """Django's date and time fields, with labels that screen readers announce."""

    def __init__(self) -> None:
        super().__init__()
        for widget, label in zip(
            self.widgets, ("Date of the expiry", "Time of the expiry"), strict=True
        ):
            widget.attrs["aria-label"] = label
