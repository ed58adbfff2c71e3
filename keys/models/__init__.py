"""Models of users, API keys, their entitlements, usage and events."""

from keys.models.access import AccessRequest, AccessStatus
from keys.models.accounts import AccountMail, LoginFailure
from keys.models.allowlists import AllowlistEntry, AllowlistKind
from keys.models.api_keys import ApiKey, KeyVersion
from keys.models.entitlements import Capability, Entitlement
from keys.models.events import EventType, KeyEvent
from keys.models.failures import KeyFailures, Refusal
from keys.models.members import (
    Invitation,
    MemberEvent,
    MemberEventType,
    Membership,
    Role,
)
from keys.models.notice_kinds import NoticeKind
from keys.models.notices import Notice, NoticeCheck
from keys.models.plans import KeyLimits, Plan
from keys.models.tokens import ApiToken, RepeatedRequest, Scope
from keys.models.usage import (
    DailyUse,
    KeyVersionUse,
    Outcome,
    Span,
    UsageBucket,
    UsageTotal,
)
from keys.models.users import User, UserManager

__all__ = [
    "AccessRequest",
    "AccessStatus",
    "AccountMail",
    "AllowlistEntry",
    "AllowlistKind",
    "ApiKey",
    "ApiToken",
    "Capability",
    "DailyUse",
    "Entitlement",
    "EventType",
    "Invitation",
    "KeyEvent",
    "KeyFailures",
    "KeyLimits",
    "KeyVersion",
    "KeyVersionUse",
    "LoginFailure",
    "MemberEvent",
    "MemberEventType",
    "Membership",
    "Notice",
    "NoticeCheck",
    "NoticeKind",
    "Outcome",
    "Plan",
    "Refusal",
    "RepeatedRequest",
    "Role",
    "Scope",
    "Span",
    "UsageBucket",
    "UsageTotal",
    "User",
    "UserManager",
]
