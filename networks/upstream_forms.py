"""The admin's form of an upstream, in which stored header values stay hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError

from networks.models import Upstream
from networks.validators import parse_headers, validate_headers

if TYPE_CHECKING:  # the class is generic for the type checker alone
    _UpstreamForm = forms.ModelForm[Upstream]
else:
    _UpstreamForm = forms.ModelForm

HIDDEN = "••••••••"
"""Shown in place of a header's stored value."""


def masked_headers(headers: Mapping[str, str]) -> str:
    """Return a line `Name: ••••••••` for each header."""
    return "\n".join(f"{name}: {HIDDEN}" for name in headers)


class HeadersField(forms.CharField):
    """Lines of `Name: value`. `HIDDEN` as a value keeps the stored value."""

    widget = forms.Textarea

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether the lines differ. Browsers send CR LF at their ends."""
        return (initial or "").splitlines() != (data or "").splitlines()


class UpstreamForm(_UpstreamForm):
    """The form of an upstream. It shows the URL and the names of the headers."""

    headers = HeadersField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off"}),
        help_text="HTTP headers of each request, one per line, such as Authorization: "
        f"Bearer TOKEN. Stored values are shown as {HIDDEN}. Leave a line unchanged to keep "
        "its value.",
    )

    class Meta:
        """The fields of the page, in their order."""

        model = Upstream
        fields = ["url", "headers", "position", "is_enabled", "note"]
        widgets = {
            "url": forms.TextInput(
                attrs={"size": 80, "autocomplete": "off", "spellcheck": "false"}
            )
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stored = dict(self.instance.headers)
        self.initial["headers"] = masked_headers(self._stored)

    def clean_headers(self) -> dict[str, str]:
        """Parse the lines into headers. Hidden values become the stored ones.

        Raises: ValidationError. The message contains no header's value.
        """
        headers = parse_headers(self.cleaned_data["headers"].splitlines())
        for name, value in headers.items():
            if value == HIDDEN:
                if name not in self._stored:
                    raise ValidationError(
                        f"The header {name} is new. Enter its value in place of {HIDDEN}."
                    )
                headers[name] = self._stored[name]
        validate_headers(headers)
        return headers
