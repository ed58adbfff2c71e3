"""The admin's site, where two may send the same form at one instant.

Django looks for rows that are in a form's way, and saves it afterwards. What somebody
else saves in between is found by the database, or by a service: that would be a page
which says 500. Sent again, the form finds it by itself, and says so beside its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

View = Callable[..., HttpResponse]

_FORMS = {"add_view", "change_view"}
"""Of any model. They save all or nothing."""


class Site(AdminSite):
    """Sends a form again that met what it could not know of."""

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Return a view for those alone who may use the admin."""
        is_form = getattr(view, "__name__", "") in _FORMS
        return super().admin_view(_again(view) if is_form else view, cacheable)


def _again(view: View) -> View:
    @wraps(view)
    def answer(request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        try:
            return view(request, *arguments, **options)
        except (IntegrityError, ValidationError):
            pass  # nothing of it is saved
        try:
            return view(request, *arguments, **options)
        except ValidationError as error:  # of something that is no field's
            messages.error(request, " ".join(error.messages))
            return HttpResponseRedirect(request.path)

    return answer
