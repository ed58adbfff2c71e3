"""The customer account that a request to the dashboard acts for."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import Http404, HttpRequest

from keys.models import ApiKey, Role, User
from keys.selectors import AccountRole, roles_of
from keys.services import Actor

SESSION_KEY = "customer_account"
"""Name of the session's entry with the id of the account that was chosen last."""

FIELD = "account"
"""Name of the form field with the id of the account that a page was shown for.

Forms that name no object of the account contain this field, so that the choice of another
account in another window does not change the effect of the form."""

_LOST = "You no longer have access to the selected account. This is your own account."


@dataclass(frozen=True, slots=True)
class Acting:
    """The account that a request acts for, and the user's role in it.

    choices: all accounts that the user can act for, their own first.
    """

    user: User
    account: User
    role: Role
    choices: list[AccountRole]

    @property
    def is_own(self) -> bool:
        """Whether the account is the user's own."""
        return self.account.pk == self.user.pk

    @property
    def may_change(self) -> bool:
        """Whether the user may change keys."""
        return self.role.includes(Role.DEVELOPER)

    @property
    def may_manage(self) -> bool:
        """Whether the user may change members."""
        return self.role.includes(Role.OWNER)


def resolve_acting(request: HttpRequest, user: User, key: int | None) -> Acting:
    """Return the account that a request acts for, and remember it for the session.

    It is the account of the requested API key. Without a key, it is the one in the field
    `account` of the form or query, or else the one that was chosen last.

    key: id of an API key, or None.

    Raises: Http404 if the user is not a member of the account of the key or field.
    """
    choices = roles_of(user)
    roles = {one.account.pk: one for one in choices}
    if key is not None:
        kept = ApiKey.objects.kept().filter(pk=key, owner__in=list(roles))
        chosen = kept.values_list("owner", flat=True).first()
    else:
        named = request.POST.get(FIELD) or request.GET.get(FIELD)
        chosen = _number(named) if named else _remembered(request, user, roles)
    if chosen is None or chosen not in roles:
        raise Http404
    if request.session.get(SESSION_KEY, user.pk) != chosen:
        request.session[SESSION_KEY] = chosen
    account, role = roles[chosen]
    acting = Acting(user, account, role, choices)
    request.acting = acting  # type: ignore[attr-defined]  # read by acting_of and templates
    return acting


def acting_of(request: HttpRequest) -> Acting:
    """Return the account of a dashboard page, which `dashboard_page` has resolved."""
    acting = getattr(request, "acting", None)
    assert isinstance(acting, Acting)
    return acting


def role_for_log(request: HttpRequest) -> str:
    """Return the user's role for the audit log: "" in their own account."""
    acting = getattr(request, "acting", None)
    return acting.role if isinstance(acting, Acting) and not acting.is_own else ""


def _remembered(
    request: HttpRequest, user: User, roles: dict[int, AccountRole]
) -> int | None:
    """Return the account of the session, or the user's own if they have lost access."""
    chosen = request.session.get(SESSION_KEY, user.pk)
    if chosen in roles:
        return int(chosen)
    del request.session[SESSION_KEY]
    messages.warning(request, _LOST)
    return user.pk


def _number(text: str) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) < 20
    return int(text) if is_number else None


def user_of(request: HttpRequest) -> User:
    """Return the logged-in user. The page must require a log-in."""
    assert isinstance(request.user, User)
    return request.user


def actor_of(request: HttpRequest) -> Actor:
    """Return the logged-in user as the author of a change.

    The actor has their IP address, and on the dashboard their role in the account.
    """
    return Actor(
        user_of(request),
        request.META.get("REMOTE_ADDR") or None,
        role=role_for_log(request),
    )
