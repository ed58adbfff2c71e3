"""Tokens of the management API in the admin: issue, show once, revoke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import pluralize
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.cache import add_never_cache_headers

from keys.accounts.acting import actor_of
from keys.admin.lists import LongList
from keys.models import ApiToken, Scope, User
from keys.services import issue_token, revoke_token
from keys.services.events import require_future
from keys.site import base_url

if TYPE_CHECKING:  # the classes are generic for the type checker alone
    _ApiTokenAdmin = admin.ModelAdmin[ApiToken]
    _ApiTokenForm = ModelForm[ApiToken]
else:
    _ApiTokenAdmin = admin.ModelAdmin
    _ApiTokenForm = ModelForm


class ApiTokenForm(_ApiTokenForm):
    """The form of a new token."""

    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, f"{scope.value}: {scope.label}") for scope in Scope],
        widget=forms.CheckboxSelectMultiple,
        help_text="A token never permits more than its owner's own permissions.",
    )

    class Meta:
        model = ApiToken
        fields = ["owner", "name", "scopes", "expires_at"]

    def clean_expires_at(self) -> Any:
        """Return the expiry. Raises: ValidationError if it is in the past."""
        require_future(self.cleaned_data["expires_at"])
        return self.cleaned_data["expires_at"]


@admin.register(ApiToken)
class ApiTokenAdmin(LongList, _ApiTokenAdmin):
    """API tokens. Staff create their own tokens, and superusers any user's."""

    form = ApiTokenForm
    list_display = [
        "name",
        "hint",
        "owner",
        "scopes",
        "expires_at",
        "revoked_at",
        "last_used_at",
    ]
    list_select_related = ["owner"]
    search_fields = ["name", "=owner__email", "=hint"]
    actions = ["revoke"]

    def get_readonly_fields(
        self, request: HttpRequest, obj: ApiToken | None = None
    ) -> list[str]:
        if obj is None:
            return []
        shown = ["hint", "created_at", "created_by", "revoked_at", "last_used_at"]
        return ["owner", "name", "scopes", "expires_at", *shown]

    def get_fields(
        self, request: HttpRequest, obj: ApiToken | None = None
    ) -> list[Any]:
        if obj is None:
            return list(ApiTokenForm.Meta.fields)
        return list(self.get_readonly_fields(request, obj))

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Offer only the owners for whom the logged-in user may create tokens."""
        if db_field.name == "owner":
            kwargs["queryset"] = _owners(request)
            kwargs["initial"] = request.user.pk
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False  # the scopes of a token never change

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False  # events refer to the token

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may revoke tokens."""
        return request.user.has_perm("keys.change_apitoken")

    @admin.action(description="Revoke permanently", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        """Revoke the selected tokens."""
        tokens = list(queryset)
        for token in tokens:
            revoke_token(token=token)
        revoked = f"Revoked {len(tokens)} token{pluralize(len(tokens))}."
        self.message_user(request, revoked, messages.SUCCESS)

    def save_model(
        self, request: HttpRequest, obj: ApiToken, form: Any, change: bool
    ) -> None:
        """Issue a token. The object carries its secret to `response_add`."""
        issued = issue_token(actor=actor_of(request), **form.cleaned_data)
        obj.pk, obj.hint = issued.token.pk, issued.token.hint
        obj.issued = issued  # type: ignore[attr-defined]  # for response_add alone

    def response_add(
        self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the secret in the response itself, so that it is not stored."""
        context = {
            **self.admin_site.each_context(request),
            "title": "API token issued",
            "opts": self.opts,
            "issued": obj.issued,  # type: ignore[attr-defined]  # see save_model
            "call": _curl(request, obj.issued.secret),  # type: ignore[attr-defined]
        }
        response = TemplateResponse(request, "admin/keys/apitoken/issued.html", context)
        add_never_cache_headers(response)
        return response


def _owners(request: HttpRequest) -> QuerySet[User]:
    staff = User.objects.filter(is_staff=True, is_active=True)
    assert isinstance(request.user, User)
    return staff if request.user.is_superuser else staff.filter(pk=request.user.pk)


def _curl(request: HttpRequest, secret: str) -> str:
    """Return a first call of the management API with a new token."""
    address = base_url(request) + reverse("api:openapi")
    address = address.replace("openapi.json", "networks")
    return f"curl -s {address} \\\n  -H 'Authorization: Bearer {secret}'"
