"""Fields of pages that hold what they have shown, beside what was typed since.

A form says by it what was changed on its page, whoever has changed the row meanwhile.
"""

from __future__ import annotations

from typing import Any

from django import forms


class ShownField(forms.BoundField):
    """A field whose page holds what it showed first, however often it comes back.

    With a mistake elsewhere on the page Django puts what was typed in the place of a
    value of several inputs, such as a date, and of a choice of which there was none:
    neither would seem changed the next time.
    """

    def as_widget(
        self,
        widget: forms.Widget | None = None,
        attrs: Any = None,
        only_initial: bool = False,
    ) -> Any:
        """Return the input, or those that hold what was shown."""
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
