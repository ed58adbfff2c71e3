"""Members of customer accounts in the admin, read-only: their owners change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from keys.admin.lists import ReadOnly
from keys.audit_sentences import member_sentence
from keys.models import Invitation, MemberEvent, Membership, User

if TYPE_CHECKING:  # the classes are generic for the type checker alone
    _MembershipAdmin = admin.ModelAdmin[Membership]
    _InvitationAdmin = admin.ModelAdmin[Invitation]
    _MemberEventAdmin = admin.ModelAdmin[MemberEvent]
else:
    _MembershipAdmin = _InvitationAdmin = _MemberEventAdmin = admin.ModelAdmin


class SearchByUsers:
    """Mixin for admins that are searched by the whole email address of a user.

    by_user: names of the foreign keys to users that are searched.
    by_text: names of the columns with email addresses that are searched.
    """

    by_user: tuple[str, ...] = ()
    by_text: tuple[str, ...] = ()
    search_fields: Any = ["account"]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows that name the user, without duplicates."""
        if term := search_term.strip():
            email = User.objects.normalize_email(term)
            users = list(User.objects.filter(email=email).values_list("pk", flat=True))
            found = Q(pk__in=[])
            for name in self.by_user:
                found |= Q(**{f"{name}__in": users})
            for name in self.by_text:
                found |= Q(**{name: email})
            queryset = queryset.filter(found)
        return queryset, False


@admin.register(Membership)
class MembershipAdmin(SearchByUsers, ReadOnly, _MembershipAdmin):
    """Members of customer accounts."""

    list_display = ["member", "role", "account", "joined_at"]
    list_filter = ["role"]
    list_select_related = ["account", "member"]
    by_user = ("account", "member")
    search_help_text = "Full email address of the owner of an account, or of a member."


@admin.register(Invitation)
class InvitationAdmin(SearchByUsers, ReadOnly, _InvitationAdmin):
    """Pending invitations to customer accounts."""

    list_display = ["email", "role", "account", "invited_by", "expires_at"]
    list_select_related = ["account", "invited_by"]
    by_user = ("account",)
    by_text = ("email",)
    search_help_text = (
        "Full email address of the owner of an account, or of an invited person."
    )


@admin.register(MemberEvent)
class MemberEventAdmin(SearchByUsers, ReadOnly, _MemberEventAdmin):
    """The audit log of members."""

    list_display = ["at", "sentence"]
    list_filter = ["type"]
    list_select_related = ["account", "actor", "member"]
    by_user = ("account", "actor")
    search_help_text = "Full email address of the owner of an account, or of an actor."

    @admin.display(description="event")
    def sentence(self, event: MemberEvent) -> str:
        return member_sentence(event)


class ShowsMembers:
    """Mixin of the admin of users: the members of their account, and their accounts."""

    @admin.display(description="members of their account")
    def members_shown(self, user: User) -> SafeString | str:
        """Return a link and the role for each member."""
        found = user.members.select_related("member").order_by("pk")
        return _lines([(one.member, one.role) for one in found])

    @admin.display(description="member of")
    def accounts_shown(self, user: User) -> SafeString | str:
        """Return a link and the role for each account of another user."""
        found = user.memberships.select_related("account").order_by("pk")
        return _lines([(one.account, one.role) for one in found])


def _lines(users: list[tuple[User, str]]) -> SafeString | str:
    links = (
        (
            format_html(
                '<a href="{}">{}</a>',
                reverse("admin:keys_user_change", args=[user.pk]),
                user,
            ),
            role,
        )
        for user, role in users
    )
    return format_html_join("", "{} ({})<br>", links) or "-"
