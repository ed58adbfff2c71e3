"""Groups of staff, made when the database is migrated.

They are made once, and stay as staff change them.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db.models import Q

SUPPORT = "support"
KEY_OFFICER = "key officer"
AUDITOR = "auditor"

_LOOK = ("user", "apikey", "keyversion", "entitlement", "allowlistentry")
_LOOK_ALSO = ("accessrequest", "keyevent")

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
"""What groups may do besides what Django lets any staff do; by codename.

Who may change users can make himself anything: no group may.
"""


def make_groups(**kwargs: Any) -> None:
    """Make the groups that are not there."""
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
