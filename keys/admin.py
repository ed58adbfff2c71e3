"""Users and API keys in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import AdminUserCreationForm
from django.contrib.auth.forms import UserChangeForm as DjangoUserChangeForm
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.cache import add_never_cache_headers

import keys.limits_admin  # noqa: F401  # registers its pages
from keys.entitlement_admin import EntitlementInline, TracingFilter, save_entitlements
from keys.models import ApiKey, Entitlement, KeyVersion, User
from keys.services import (
    Actor,
    IssuedKey,
    create_key,
    disable_key,
    enable_key,
    note_activation,
    reveal_key,
    revoke_version,
    update_key,
)

if TYPE_CHECKING:  # the classes are generic for the type checker alone
    _ApiKeyAdmin = admin.ModelAdmin[ApiKey]
    _KeyVersionInline = admin.TabularInline[KeyVersion, ApiKey]
    _UserAdmin = DjangoUserAdmin[User]
    _UserChangeForm = DjangoUserChangeForm[User]
else:
    _ApiKeyAdmin = admin.ModelAdmin
    _KeyVersionInline = admin.TabularInline
    _UserAdmin = DjangoUserAdmin
    _UserChangeForm = DjangoUserChangeForm


class UserCreationForm(AdminUserCreationForm):
    """A new user, known by his e-mail address."""

    class Meta:
        model = User
        fields = ["email"]


class UserChangeForm(_UserChangeForm):
    """A user, without a name to log in with."""

    class Meta:
        model = User
        fields = "__all__"  # the admin's fieldsets choose
        field_classes: dict[str, type[forms.Field]] = {}


@admin.register(User)
class UserAdmin(_UserAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    ordering = ["email"]
    list_display = ["email", "first_name", "last_name", "is_staff", "is_active"]
    search_fields = ["email", "first_name", "last_name"]
    show_full_result_count = False
    fieldsets = [
        (None, {"fields": ["email", "password"]}),
        ("Person", {"fields": ["first_name", "last_name"]}),
        (
            "Permissions",
            {
                "fields": [
                    "is_active",
                    "is_staff",
                    "is_superuser",
                    "groups",
                    "user_permissions",
                ]
            },
        ),
        ("Dates", {"fields": ["last_login", "date_joined"]}),
    ]
    add_fieldsets = [
        (None, {"fields": ["email", "usable_password", "password1", "password2"]})
    ]

    def save_model(
        self, request: HttpRequest, obj: User, form: ModelForm[User], change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        if change and "is_active" in form.changed_data:
            note_activation(user=obj, actor=_actor(request))


class KeyVersionInline(_KeyVersionInline):
    model = KeyVersion
    fk_name = "api_key"
    extra = 0
    fields = ["hint", "created_at", "expires_at", "revoked_at", "revoke_reason"]
    readonly_fields = [
        "hint",
        "created_at",
        "expires_at",
        "revoked_at",
        "revoke_reason",
    ]
    can_delete = False

    def has_add_permission(
        self, request: HttpRequest, obj: ApiKey | None = None
    ) -> bool:
        return False


class RevokeForm(forms.Form):
    """Why keys are revoked."""

    reason = forms.CharField(max_length=200)


@admin.register(ApiKey)
class ApiKeyAdmin(_ApiKeyAdmin):
    """API keys. The secret of a new one is shown on the page after it, and never again."""

    inlines = [EntitlementInline, KeyVersionInline]
    list_display = ["__str__", "owner", "hints", "is_enabled", "tracing"]
    list_filter = ["is_enabled", "networks", TracingFilter]
    list_select_related = ["owner"]
    search_fields = ["owner__email", "name", "=versions__hint"]
    show_full_result_count = False
    autocomplete_fields = ["owner"]
    filter_horizontal = ["networks"]
    fields = ["owner", "name", "is_enabled", "networks", "expires_at", "staff_note"]
    actions = ["revoke"]

    @admin.display(description="live secrets")
    def hints(self, api_key: ApiKey) -> str:
        return ", ".join(v.hint for v in api_key.versions.live()) or "-"

    @admin.display(description="may trace on")
    def tracing(self, api_key: ApiKey) -> str:
        granted = api_key.entitlements.live().select_related("network")
        return ", ".join(e.network.slug for e in granted) or "-"

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False  # what hangs on a key is kept: disable it, or revoke its secrets

    def save_model(
        self, request: HttpRequest, obj: ApiKey, form: ModelForm[ApiKey], change: bool
    ) -> None:
        """Have a service write what the form says; it knows what that changes."""
        told = form.cleaned_data
        terms = {
            name: told[name]
            for name in ("name", "networks", "expires_at", "staff_note")
            if name in told
        }
        if change:
            update_key(api_key=obj, actor=_actor(request), **terms)
        else:
            made = create_key(owner=told["owner"], actor=_actor(request), **terms)
            obj.pk = made.pk
        if "is_enabled" in told:
            switch = enable_key if told["is_enabled"] else disable_key
            switch(api_key=obj, actor=_actor(request))
        obj.refresh_from_db()

    def save_formset(
        self, request: HttpRequest, form: Any, formset: Any, change: bool
    ) -> None:
        if formset.model is not Entitlement:
            super().save_formset(request, form, formset, change)
            return
        for fault in save_entitlements(formset, actor=_actor(request)):
            self.message_user(request, fault, messages.ERROR)

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the secret in the answer itself, so that it is kept nowhere."""
        issued = reveal_key(api_key=obj, actor=_actor(request))
        return self._show(request, issued)

    def _show(self, request: HttpRequest, issued: IssuedKey) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": "API key issued",
            "opts": self.opts,
            "issued": issued,
        }
        response = TemplateResponse(request, "admin/keys/apikey/issued.html", context)
        add_never_cache_headers(response)
        return response

    @admin.action(
        description="Revoke all secrets of the selected keys", permissions=["change"]
    )
    def revoke(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        """Ask for a reason, then revoke."""
        versions = KeyVersion.objects.live().filter(api_key__in=queryset)
        form = RevokeForm(request.POST if "reason" in request.POST else None)
        if form.is_valid():
            for version in versions:
                revoke_version(
                    version=version,
                    reason=form.cleaned_data["reason"],
                    actor=_actor(request),
                )
            self.message_user(request, "Revoked.", messages.SUCCESS)
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": "Revoke secrets",
            "opts": self.opts,
            "api_keys": queryset,
            "versions": versions.select_related("api_key__owner"),
            "form": form,
        }
        return TemplateResponse(request, "admin/keys/apikey/revoke.html", context)


def _actor(request: HttpRequest) -> Actor:
    """Return who works in the admin, and from where."""
    assert isinstance(request.user, User)
    return Actor(request.user, request.META.get("REMOTE_ADDR") or None)
