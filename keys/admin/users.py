"""Users in the admin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import AdminUserCreationForm
from django.contrib.auth.forms import UserChangeForm as DjangoUserChangeForm
from django.contrib.auth.models import Group
from django.db.models import Prefetch, Sum
from django.forms import ModelForm
from django.http import HttpRequest

from keys.accounts.acting import actor_of
from keys.admin.lists import LongList
from keys.admin.members import ShowsMembers
from keys.models import ApiKey, DailyUse, KeyLimits, KeyVersion, User
from keys.services import note_activation
from keys.states import State, live_versions, state_of
from keys.usage.daily import credits_today, today
from legible.fields import validate_name

if TYPE_CHECKING:  # the classes are generic for the type checker alone
    _UserAdmin = DjangoUserAdmin[User]
    _GroupForm = ModelForm[Group]
    _UserChangeForm = DjangoUserChangeForm[User]
else:
    _UserAdmin = DjangoUserAdmin
    _GroupForm = ModelForm
    _UserChangeForm = DjangoUserChangeForm


SHOWN_KEYS = 50
"""Number of keys on the page, the newest first. Usage is summed over these keys."""

DAYS = 30
"""Number of days over which usage is summed."""


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """A key of the customer."""

    key: ApiKey
    hints: str
    state: State
    plan: str
    credits_today: int
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class CustomerFacts:
    """Keys and usage of a customer.

    has_more: whether the customer has older keys, which are not listed.
    calls, failed, credits: sums of the last DAYS days.
    """

    keys: list[KeyFacts]
    has_more: bool
    calls: int
    failed: int
    credits: int


def customer_facts(user: User) -> CustomerFacts:
    """Return the keys of a customer that were not deleted, and their usage."""
    versions = KeyVersion.objects.select_related("use")
    kept = ApiKey.objects.kept().filter(owner=user).select_related("owner")
    found = list(
        kept.prefetch_related(Prefetch("versions", versions))[: SHOWN_KEYS + 1]
    )
    keys = found[:SHOWN_KEYS]
    ids = [key.pk for key in keys]
    limits = KeyLimits.objects.select_related("plan").in_bulk(ids)
    spent = credits_today(keys)
    since = today() - timedelta(days=DAYS - 1)
    used = DailyUse.objects.filter(day__gte=since, api_key__in=ids).aggregate(
        calls=Sum("calls", default=0),
        failed=Sum("failed", default=0),
        credits=Sum("credits", default=0),
    )
    return CustomerFacts(
        keys=[_facts(key, limits.get(key.pk), spent.get(key.pk, 0)) for key in keys],
        has_more=len(found) > SHOWN_KEYS,
        calls=int(used["calls"]),
        failed=int(used["failed"]),
        credits=int(used["credits"]),
    )


def _facts(key: ApiKey, limits: KeyLimits | None, spent: int) -> KeyFacts:
    uses = [v.use.last_used_at for v in key.versions.all() if hasattr(v, "use")]
    return KeyFacts(
        key=key,
        hints=", ".join(version.hint for version in live_versions(key)),
        state=state_of(key),
        plan=str(limits) if limits else "the default plan",
        credits_today=spent,
        last_used_at=max(uses, default=None),
    )


class UserCreationForm(AdminUserCreationForm):
    """A new user, identified by their email address."""

    class Meta:
        model = User
        fields = ["email"]


class UserChangeForm(_UserChangeForm):
    """The form of an existing user. Users have no user name."""

    class Meta:
        model = User
        fields = "__all__"  # the admin's fieldsets select the fields
        field_classes: dict[str, type[forms.Field]] = {}


class GroupForm(_GroupForm):
    """A group whose name has no hidden characters."""

    def clean_name(self) -> str:
        """Return the name. Raises: ValidationError if it has hidden characters."""
        name: str = self.cleaned_data["name"]
        validate_name(name)
        return name


admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin):
    form = GroupForm


@admin.register(User)
class UserAdmin(ShowsMembers, LongList, _UserAdmin):
    form = UserChangeForm
    change_form_template = "admin/keys/user/change_form.html"
    add_form = UserCreationForm
    ordering = ["email"]
    list_display = ["email", "first_name", "last_name", "is_staff", "is_active"]
    search_fields = ["email", "first_name", "last_name"]
    fieldsets = [
        (None, {"fields": ["email", "password"]}),
        ("Person", {"fields": ["first_name", "last_name"]}),
        ("Account", {"fields": ["is_active", "members_shown", "accounts_shown"]}),
        (
            "Permissions",
            {
                "fields": ["is_staff", "is_superuser", "groups", "user_permissions"],
                # Customers have no permissions, and the selection would push their keys down.
                "classes": ["collapse"],
            },
        ),
        ("Dates", {"fields": ["last_login", "date_joined"]}),
    ]
    readonly_fields = ["members_shown", "accounts_shown"]
    add_fieldsets = [
        (None, {"fields": ["email", "usable_password", "password1", "password2"]})
    ]

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Show the form of a user, with their keys if staff may see those."""
        context = dict(extra_context or {})
        if object_id is not None and request.user.has_perm("keys.view_apikey"):
            user = self.get_object(request, object_id)
            context["customer"] = None if user is None else customer_facts(user)
        return super().changeform_view(request, object_id, form_url, context)

    def save_model(
        self, request: HttpRequest, obj: User, form: ModelForm[User], change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        if change and "is_active" in form.changed_data:
            note_activation(user=obj, actor=actor_of(request))
