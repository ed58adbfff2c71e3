"""Admin actions on an object's own page, in addition to those on rows of a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

if TYPE_CHECKING:  # the class is generic for the type checker alone
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin


class ConfirmForm(forms.Form):
    """Form of a confirmation without further fields."""

    confirmed = forms.BooleanField(widget=forms.HiddenInput, initial=True)


@dataclass(frozen=True, slots=True)
class ObjectAction:
    """A button on an object's page.

    label: its text. is_immediate: whether it acts without a confirmation page.
    """

    name: str
    label: str
    address: str
    is_immediate: bool


class ObjectActions(_ModelAdmin):
    """Offers actions on the page of the object.

    object_actions: names of actions with the labels of their buttons, in their order.
    immediate_actions: the actions without a confirmation page.
    """

    object_actions: dict[str, str] = {}
    immediate_actions: Sequence[str] = ()

    def applicable_actions(self, obj: Any) -> set[str]:
        """Return the names of the actions that make sense for an object now."""
        return set(self.object_actions)

    def get_urls(self) -> list[URLPattern]:
        """Add the address of an action on one object."""
        view = self.admin_site.admin_view(self.object_action_view)
        address = "<path:object_id>/do/<slug:action>/"
        return [path(address, view, name=self._url_name("do")), *super().get_urls()]

    def object_action_view(
        self, request: HttpRequest, object_id: str, action: str
    ) -> HttpResponse:
        """Show the confirmation page of an action on an object, or run the action."""
        if action not in self.object_actions:
            raise Http404
        obj = self.get_object(request, object_id)
        if obj is None:
            raise Http404
        offered = self.get_actions(request)
        if action not in offered or not self.has_view_permission(request, obj):
            raise PermissionDenied
        if action in self.immediate_actions and request.method != "POST":
            return HttpResponse(status=HTTPStatus.METHOD_NOT_ALLOWED)
        function: Any = offered[action][0]  # type: ignore[index]  # of the stubs
        chosen = self.get_queryset(request).filter(pk=obj.pk)
        response: HttpResponse | None = function(self, request, chosen)
        return response or HttpResponseRedirect(self._page_of(obj.pk))

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Show the form of an object with the buttons of its actions."""
        context = dict(extra_context or {})
        if object_id is not None and request.method == "GET":
            obj = self.get_object(request, object_id)
            if obj is not None:
                context["object_actions"] = self._buttons(request, obj)
        return super().changeform_view(request, object_id, form_url, context)

    def place_of(self, request: HttpRequest) -> str:
        """Return the address to which an action leads back: the object or the list."""
        match = request.resolver_match
        object_id = match.kwargs.get("object_id") if match else None
        if object_id:
            return self._page_of(object_id)
        return reverse(f"admin:{self._url_name('changelist')}")

    def _buttons(self, request: HttpRequest, obj: Model) -> list[ObjectAction]:
        offered = self.get_actions(request)
        applicable = self.applicable_actions(obj)
        return [
            ObjectAction(
                name,
                label,
                reverse(f"admin:{self._url_name('do')}", args=[obj.pk, name]),
                name in self.immediate_actions,
            )
            for name, label in self.object_actions.items()
            if name in offered and name in applicable
        ]

    def _page_of(self, object_id: Any) -> str:
        return reverse(f"admin:{self._url_name('change')}", args=[object_id])

    def _url_name(self, kind: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{kind}"
