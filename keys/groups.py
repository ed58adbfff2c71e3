"""Groups of staff, created after migrations.

Existing groups are not changed, because staff may have edited them.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db.models import Q

from networks.migrated import is_migrated

SUPPORT = "support"
KEY_OFFICER = "key officer"
AUDITOR = "auditor"

_LOOK = ("user", "apikey", "keyversion", "entitlement", "allowlistentry")
_LOOK_ALSO = ("accessrequest", "keyevent", "membership", "invitation", "memberevent")

PERMISSIONS = {
    SUPPORT: [
        *(f"view_{model}" for model in (*_LOOK, *_LOOK_ALSO)),
        "disable_apikey",
    ],
    KEY_OFFICER: [
        *(f"view_{model}" for model in (*_LOOK, *_LOOK_ALSO)),
        "disable_apikey",
        "add_apikey",
        "change_apikey",
        "delete_apikey",
        "grant_entitlement",
    ],
}
"""Codenames of the permissions of each group. No group may change users, because this
permission allows users to give themselves all others."""


def make_groups(**options: Any) -> None:
    """Create the groups that do not exist.

    options: of Django's signal `post_migrate`.
    """
    if not is_migrated(options.get("using"), "auth", "keys"):
        return
    of_keys = Q(content_type__app_label="keys")
    looks = Q(codename__startswith="view_")
    wanted = {
        name: of_keys & Q(codename__in=codenames)
        for name, codenames in PERMISSIONS.items()
    }
    wanted[AUDITOR] = (of_keys | Q(content_type__app_label="networks")) & looks
    for name, permissions in wanted.items():
        group, is_new = Group.objects.get_or_create(name=name)
        if is_new:
            group.permissions.set(Permission.objects.filter(permissions))
