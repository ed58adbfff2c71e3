"""Users, API keys, limits and members in Django's admin."""

from __future__ import annotations

from keys.admin import access, api_keys, events, limits, members, tokens, users

__all__ = ["access", "api_keys", "events", "limits", "members", "tokens", "users"]
