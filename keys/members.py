"""Queries about the members of customer accounts.

A customer account is identified by the user who owns its keys. This user is an owner of
the account, and other users are members with a role. A deactivated account can't be used
by anyone, and a deactivated user can't use any account.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db.models import QuerySet

from keys.models import Membership, Role, User


class AccountRole(NamedTuple):
    """A customer account, and the role of one user in it."""

    account: User
    role: Role


def roles_of(user: User) -> list[AccountRole]:
    """Return the accounts that a user can act for, with roles, their own first."""
    if not user.is_active:
        return []
    found = Membership.objects.filter(member=user, account__is_active=True)
    joined = found.select_related("account").order_by("account__email")
    return [
        AccountRole(user, Role.OWNER),
        *(AccountRole(one.account, Role(one.role)) for one in joined),
    ]


def accounts_of(user: User) -> list[User]:
    """Return the accounts that a user can act for, their own first."""
    return [one.account for one in roles_of(user)]


def role_in(user: User, account: User) -> Role | None:
    """Return a user's role in an account, or None if they are not a member of it."""
    if not (user.is_active and account.is_active):
        return None
    if user.pk == account.pk:
        return Role.OWNER
    found = Membership.objects.filter(account=account, member=user).first()
    return None if found is None else Role(found.role)


def account_ids(user: User) -> QuerySet[Any, Any]:
    """Return a subquery of the ids of the accounts that a user is an owner or member of.

    Whether the user and the accounts are active is not checked.
    """
    own = User.objects.filter(pk=user.pk).order_by().values("pk")
    joined = Membership.objects.filter(member=user).order_by().values("account")
    return own.union(joined, all=True)
