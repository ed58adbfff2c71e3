"""The wallet's admin: dapps, sockets, sessions, requests and logs.

Staff can end and block, but not extend what a user has decided. Codes, tokens and their
digests are not shown.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.postgres.expressions import ArraySubquery
from django.core.exceptions import ValidationError
from django.db.models import Func, IntegerField, Max, Model, OuterRef, Q, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.template.defaultfilters import pluralize
from django.utils import timezone

from abi.addresses import with_checksum
from keys.admin.lists import LongList, ReadOnly
from keys.models import User
from wallets.changes import Cause
from wallets.models import (
    Account,
    Activity,
    Actor,
    BlockedDapp,
    ConsentRequest,
    Dapp,
    DappToken,
    LiveSocket,
    Pairing,
    Session,
)
from wallets.pages.words import ASKS
from wallets.services.dapps import (
    block_dapp,
    block_for_all,
    disconnect_dapp,
    unblock_dapp,
)
from wallets.services.sessions import revoke_session

if TYPE_CHECKING:  # the classes are generic for the type checker alone
    _DappAdmin = admin.ModelAdmin[Dapp]
    _SessionAdmin = admin.ModelAdmin[Session]
    _BlockedDappAdmin = admin.ModelAdmin[BlockedDapp]
    _LiveSocketAdmin = admin.ModelAdmin[LiveSocket]
    _AnyAdmin = admin.ModelAdmin[Any]
    _TokenInline = admin.TabularInline[DappToken, Dapp]
else:
    _DappAdmin = _SessionAdmin = _BlockedDappAdmin = admin.ModelAdmin
    _LiveSocketAdmin = _AnyAdmin = admin.ModelAdmin
    _TokenInline = admin.TabularInline


LATEST = 100_000
"""Newest lines of the log that are searched if the term is no user's email address."""


def dapps_named(term: str) -> QuerySet[Dapp, Any]:
    """Return the ids of dapps whose user's email, identity or label is the term."""
    dapps = Dapp.objects.order_by().values("pk")
    of_user = dapps.filter(user__in=_users_named(term))
    known = dapps.filter(ident__in=[term, term.lower()])
    # The index excludes empty labels, and so has to the query.
    labelled = dapps.filter(label__iexact=term).exclude(label="")
    return of_user.union(known, labelled, all=True)


def accounts_named(term: str) -> Q:
    """Return the condition for accounts whose user's email or address is the term."""
    accounts = Account.objects.order_by().values("pk")
    of_user = accounts.filter(user__in=_users_named(term))
    with_address = accounts.filter(address__in=[term, term.lower()])
    return Q(pk__in=of_user.union(with_address, all=True))


def activities_named(term: str) -> Q:
    """Return the condition for log lines of a user, else of a dapp or IP address."""
    if users := _users_named(term):
        return Q(user__in=users)
    newest = Activity.objects.aggregate(pk=Max("pk"))["pk"] or 0
    said = Q(dapp_name__iexact=term) | Q(remote_address__iexact=term)
    return Q(pk__gt=newest - LATEST) & said


def pairings_named(term: str) -> Q:
    """Return the condition for pairings of a user or an identity."""
    return Q(user__in=_users_named(term)) | Q(ident__in=[term, term.lower()])


def _users_named(term: str) -> list[int]:
    email = User.objects.normalize_email(term)
    return list(User.objects.filter(email=email).values_list("pk", flat=True))


def rows_of_dapps_named(term: str) -> Q:
    """Return the condition for rows that belong to dapps selected by `dapps_named`."""
    return Q(dapp__in=dapps_named(term))


class Search:
    """Base of admins whose search adds one condition and no joins, which repeat rows."""

    condition: Callable[[str], Q]
    """Returns the condition for the rows that a search term selects."""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows that the search term selects, all rows for an empty one."""
        if term := search_term.strip():
            queryset = queryset.filter(self.condition(term))
        return queryset, False


class SearchByDapp(Search):
    """An admin of rows that belong to dapps."""

    search_fields: Any = ["dapp"]
    search_help_text: Any = "Full email address of a user, or origin or name of a dapp."
    condition = staticmethod(rows_of_dapps_named)


MAX_USERS = 1_000
"""Users of a blocked identity are counted up to this number."""


class TokenInline(ReadOnly, _TokenInline):
    model = DappToken
    extra = 0
    fields = readonly_fields = (
        "created_at",
        "created_from",
        "last_used_at",
        "last_used_from",
        "expires_at",
        "revoked_at",
    )


@admin.register(Dapp)
class DappAdmin(Search, ReadOnly, _DappAdmin):
    inlines = [TokenInline]
    list_display = ["name", "kind", "user", "has_session", "blocked_at", "last_used_at"]
    list_filter = ["kind", ("blocked_at", admin.EmptyFieldListFilter), "last_used_at"]
    list_select_related = ["user", "session"]
    search_fields = ["pk"]
    search_help_text = SearchByDapp.search_help_text
    ordering = ["-id"]
    fields = [
        "user",
        "kind",
        "ident",
        "label",
        "created_at",
        "created_from",
        "last_used_at",
        "blocked_at",
        "muted_until",
    ]
    actions = ["disconnect", "block", "unblock", "block_for_everybody"]

    @staticmethod
    def condition(term: str) -> Q:
        return Q(pk__in=dapps_named(term))

    @admin.display(boolean=True, description="session")
    def has_session(self, dapp: Dapp) -> bool:
        return bool(dapp.session.scopes)

    def has_end_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("wallets.change_dapp")

    @admin.action(description="Disconnect for its user", permissions=["end"])
    def disconnect(self, request: HttpRequest, queryset: QuerySet[Dapp]) -> None:
        dapps = queryset.order_by("pk")
        for dapp in dapps:
            disconnect_dapp(dapp=dapp, cause=_cause(request))
        _report(self, request, "Disconnected {} dapp{}.", len(dapps))

    @admin.action(description="Block for its user", permissions=["end"])
    def block(self, request: HttpRequest, queryset: QuerySet[Dapp]) -> None:
        dapps = queryset.order_by("pk")
        for dapp in dapps:
            block_dapp(dapp=dapp, cause=_cause(request))
        _report(self, request, "Blocked {} dapp{}.", len(dapps))

    def has_ban_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("wallets.add_blockeddapp")

    @admin.action(description="Block for all users", permissions=["ban"])
    def block_for_everybody(
        self, request: HttpRequest, queryset: QuerySet[Dapp]
    ) -> None:
        assert isinstance(request.user, User)
        named = dict.fromkeys(queryset.order_by("pk").values_list("kind", "ident"))
        banned = 0
        for kind, ident in named:
            blocked = BlockedDapp(kind=kind, ident=ident, blocked_by=request.user)
            with suppress(ValidationError):  # it is blocked already
                block_for_all(blocked=blocked, cause=_cause(request))
                banned += 1
        text = f"Dapps blocked for all users: {banned}."
        self.message_user(request, text, messages.SUCCESS)

    @admin.action(description="Unblock for its user", permissions=["end"])
    def unblock(self, request: HttpRequest, queryset: QuerySet[Dapp]) -> None:
        dapps = queryset.order_by("pk")
        for dapp in dapps:
            unblock_dapp(dapp=dapp, cause=_cause(request))
        _report(self, request, "Unblocked {} dapp{}.", len(dapps))


@admin.register(Session)
class SessionAdmin(SearchByDapp, ReadOnly, _SessionAdmin):
    list_display = ["dapp", "user", "networks", "changed_at", "expires_at"]
    list_filter = ["changed_at", ("expires_at", admin.EmptyFieldListFilter)]
    list_select_related = ["dapp__user"]
    fields = ["dapp", "stored_scopes", "version", "changed_at", "expires_at"]
    actions = ["end"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Session]:
        return super().get_queryset(request).exclude(stored_scopes=[])

    @admin.display(ordering="dapp__user__email")
    def user(self, session: Session) -> User:
        return session.dapp.user

    @admin.display
    def networks(self, session: Session) -> str:
        return ", ".join(session.scopes) or "expired"

    def has_end_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("wallets.change_session")

    @admin.action(description="End the session", permissions=["end"])
    def end(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        sessions = queryset.order_by("pk")
        for session in sessions:
            revoke_session(dapp_id=session.dapp_id, cause=_cause(request))
        _report(self, request, "Ended {} session{}.", len(sessions))


@admin.register(BlockedDapp)
class BlockedDappAdmin(LongList, _BlockedDappAdmin):
    """Identities that no user can pair. Deleting a row unblocks the identity."""

    list_display = ["ident", "kind", "users", "reason", "blocked_by", "blocked_at"]
    list_select_related = ["blocked_by"]
    search_fields = ["=ident"]
    fields = ["kind", "ident", "reason"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[BlockedDapp]:
        same = {"kind": OuterRef("kind"), "ident": OuterRef("ident")}
        known = Dapp.objects.filter(**same).order_by().values("pk")[: MAX_USERS + 1]
        users = Func(
            ArraySubquery(known), function="cardinality", output_field=IntegerField()
        )
        return super().get_queryset(request).annotate(known_to=users)

    @admin.display(description="users")
    def users(self, blocked: Any) -> str:
        users = int(blocked.known_to)
        return f"more than {MAX_USERS:,}" if users > MAX_USERS else f"{users:,}"

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return obj is None and super().has_change_permission(request)

    def save_model(
        self,
        request: HttpRequest,
        obj: BlockedDapp,
        form: ModelForm[BlockedDapp],
        change: bool,
    ) -> None:
        assert isinstance(request.user, User)
        obj.blocked_by = request.user
        block_for_all(blocked=obj, cause=_cause(request))


class MethodFilter(admin.SimpleListFilter):
    """Filter requests by method. Django's own filter would read all rows."""

    title = parameter_name = "method"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(method, method) for method in ASKS]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ConsentRequest]
    ) -> QuerySet[ConsentRequest]:
        if self.value() is None:
            return queryset
        return queryset.filter(method=self.value())


@admin.register(ConsentRequest)
class ConsentRequestAdmin(SearchByDapp, ReadOnly, _AnyAdmin):
    list_display = ["dapp", "method", "state", "created_at", "decided_at", "is_waiting"]
    list_filter = ["state", MethodFilter, "created_at"]
    list_select_related = ["dapp__user"]
    fields = ["dapp", "method", "state", "created_at", "expires_at", "decided_at"]

    @admin.display(boolean=True, description="pending")
    def is_waiting(self, request: ConsentRequest) -> bool:
        return request.state == "pending" and request.expires_at > timezone.now()


@admin.register(LiveSocket)
class LiveSocketAdmin(SearchByDapp, ReadOnly, _LiveSocketAdmin):
    """The open sockets of dapps. An action disconnects a dapp with all its sockets."""

    list_display = ["dapp", "user", "remote_address", "opened_at", "process"]
    list_filter = ["opened_at"]
    list_select_related = ["dapp__user"]
    fields = ["dapp", "remote_address", "opened_at", "process"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[LiveSocket]:
        living = LiveSocket.objects.open()
        return super().get_queryset(request).filter(pk__in=living.values("pk"))

    @admin.display(ordering="dapp__user__email")
    def user(self, live: LiveSocket) -> User:
        return live.dapp.user


@admin.register(Pairing)
class PairingAdmin(Search, ReadOnly, _AnyAdmin):
    list_display = ["ident", "label", "user", "created_at", "expires_at", "used_at"]
    list_select_related = ["user"]
    search_fields = ["ident"]
    search_help_text = "Full email address of a user, or origin of a page."
    fields = ["user", "kind", "ident", "label", "created_at", "expires_at", "used_at"]

    condition = staticmethod(pairings_named)


@admin.register(Account)
class AccountAdmin(Search, ReadOnly, _AnyAdmin):
    list_display = ["shown_address", "namespace", "label", "user", "created_at"]
    list_select_related = ["user"]
    search_fields = ["address"]
    search_help_text = "Address of an account, or full email address of a user."
    ordering = ["-id"]
    fields = ["user", "namespace", "shown_address", "label", "position", "created_at"]

    condition = staticmethod(accounts_named)

    @admin.display(description="address", ordering="address")
    def shown_address(self, account: Account) -> str:
        """Return the account's address with its checksum."""
        return with_checksum(account.address)


@admin.register(Activity)
class ActivityAdmin(Search, ReadOnly, _AnyAdmin):
    list_display = ["at", "user", "event", "dapp_name", "actor", "remote_address"]
    list_filter = ["event", "actor", "at"]
    list_select_related = ["user"]
    search_fields = ["user"]
    search_help_text = (
        "Full email address of a user. Of the latest 100,000 entries, also the name of "
        "a dapp or an IP address."
    )
    fields = [
        "at",
        "user",
        "dapp",
        "dapp_name",
        "event",
        "actor",
        "remote_address",
        "details",
    ]

    condition = staticmethod(activities_named)


def _report(
    shown_by: admin.ModelAdmin[Any], request: HttpRequest, text: str, count: int
) -> None:
    """Show a message. text: with placeholders for the number and the plural's s."""
    done = text.format(count, pluralize(count))
    shown_by.message_user(request, done, messages.SUCCESS)


def _cause(request: HttpRequest) -> Cause:
    """Return staff as the cause of a change, without their IP address."""
    return Cause(Actor.STAFF)
