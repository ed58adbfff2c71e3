"""The admin site, which handles conflicts of two forms sent at the same time.

Django validates a form against existing rows and saves it afterwards. A row that another
user saves in between causes an error in the database or in a service, which would be a
500. This site runs the view again, so that validation finds the conflict and the form
shows it beside its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

View = Callable[..., HttpResponse]

_FORMS = {"add_view", "change_view"}
"""Names of the views that save a form, each in one transaction."""


class Selector(AutocompleteJsonView):
    """Options of a selection field, labelled by the model admin's `selector_label`."""

    def serialize_result(self, obj: Any, to_field_name: str) -> dict[str, str]:
        """Return the id and the label of an option."""
        found: dict[str, str] = super().serialize_result(  # type: ignore[misc]  # not in the stubs
            obj, to_field_name
        )
        label = getattr(self.model_admin, "selector_label", str)
        return found | {"text": label(obj)}


class Site(AdminSite):
    """Runs a form view again if saving failed because of a concurrent change."""

    def index(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Show open tasks of staff, and the list of models."""
        from config.front_page import sections  # needs loaded models

        context = {"sections": sections(request), **(extra_context or {})}
        return super().index(request, context)

    def autocomplete_view(self, request: HttpRequest) -> Any:
        """Return the options of a selection field."""
        return Selector.as_view(admin_site=self)(request)

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Return a view that only staff can open."""
        is_form = getattr(view, "__name__", "") in _FORMS
        return super().admin_view(_again(view) if is_form else view, cacheable)


def _again(view: View) -> View:
    @wraps(view)
    def answer(request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        try:
            return view(request, *arguments, **options)
        except (IntegrityError, ValidationError):
            pass  # the transaction was rolled back
        try:
            return view(request, *arguments, **options)
        except ValidationError as error:
            # It is about the object as a whole, so that no field of the form shows it.
            messages.error(request, " ".join(error.messages))
            return HttpResponseRedirect(request.path)

    return answer
