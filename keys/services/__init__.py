"""Services that change keys and related objects.

Each change and its event are written in one transaction. The commit notifies the
serving processes. A change locks its API key first, so concurrent changes of a key are
serialized.
"""

from keys.services.access import (
    approve_access,
    decline_access,
    request_access,
    withdraw_request,
)
from keys.services.allowlists import set_allowlist, set_allowlists
from keys.services.api_keys import (
    create_key,
    delete_key,
    disable_key,
    enable_key,
    update_key,
)
from keys.services.customers import (
    get_or_create_customer,
    note_activation,
    switch_customer,
)
from keys.services.entitlements import grant_entitlement, withdraw_entitlement
from keys.services.events import SYSTEM, Actor, announce_key, announce_plan
from keys.services.members import (
    InvitationUseless,
    IssuedInvitation,
    accept_invitation,
    change_role,
    find_invitation,
    invite,
    leave_account,
    remove_member,
    withdraw_invitation,
)
from keys.services.secrets import (
    DEFAULT_OVERLAP,
    MAX_LIVE_VERSIONS,
    OVERLAP_WORDS,
    OVERLAPS,
    IssuedKey,
    add_secret,
    issue_key,
    issue_version,
    note_use_after_revocation,
    reveal_key,
    revoke_version,
    roll_key,
)
from keys.services.tokens import IssuedToken, issue_token, revoke_token

__all__ = [
    "DEFAULT_OVERLAP",
    "MAX_LIVE_VERSIONS",
    "OVERLAPS",
    "OVERLAP_WORDS",
    "SYSTEM",
    "Actor",
    "InvitationUseless",
    "IssuedInvitation",
    "IssuedKey",
    "IssuedToken",
    "accept_invitation",
    "add_secret",
    "announce_key",
    "announce_plan",
    "approve_access",
    "change_role",
    "create_key",
    "decline_access",
    "delete_key",
    "disable_key",
    "enable_key",
    "find_invitation",
    "get_or_create_customer",
    "grant_entitlement",
    "invite",
    "issue_key",
    "issue_token",
    "issue_version",
    "leave_account",
    "note_activation",
    "note_use_after_revocation",
    "remove_member",
    "request_access",
    "reveal_key",
    "revoke_token",
    "revoke_version",
    "roll_key",
    "set_allowlist",
    "set_allowlists",
    "switch_customer",
    "update_key",
    "withdraw_entitlement",
    "withdraw_invitation",
    "withdraw_request",
]
