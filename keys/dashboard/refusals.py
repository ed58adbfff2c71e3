"""Recent rejections of calls by reason, with advice for the key's owner."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from keys.models import ApiKey, Refusal

SHOWN_DAYS = 7
"""Age in days of the oldest rejections shown."""

MAX_SHOWN = 20
"""Most reasons shown, the latest first."""

MENDING = {
    "addresses_not_indexed": "Ask for newer blocks.",
    "batch_too_costly": "Send fewer calls in one batch.",
    "contract_not_allowed": "Add the contract to the allowlist.",
    "daily_quota": "Wait for 00:00 UTC, spend less, or ask support for more.",
    "ip_not_allowed": "Add the address of your server to the allowlist.",
    "key_disabled": "Enable the key on this page, or ask support if they disabled it.",
    "key_expired": "Use the newest secret, or roll the key to get one.",
    "key_revoked": "Use another secret. Is it you who still uses the revoked one?",
    "log_search_timed_out": "Ask for fewer blocks, or name addresses and topics.",
    "logs_not_indexed": "Ask for newer blocks, or for one block at a time.",
    "method_not_allowed": "Add the method to the allowlist.",
    "method_not_entitled": "Request access under Tracing.",
    "network_not_enabled": "Create a key that opens this network.",
    "origin_not_allowed": "Add the origin of your page to the allowlist.",
    "rate_limited": "Wait for the time in Retry-After, and distribute calls evenly.",
    "response_too_large": "Ask for less at a time.",
    "too_many_calls": "Wait for answers before you send more calls on a socket.",
    "too_many_executions": "Wait for the answers of calls before you send more of them.",
    "too_many_concurrent": "Wait for a trace before you ask for the next one.",
    "too_many_connections": "Reuse connections, and close those you no longer need.",
    "too_many_filters": "Uninstall filters, or poll fewer of them.",
    "too_many_relayed_calls": "Wait for answers before you send more transactions.",
    "too_many_subscriptions": "End subscriptions, or open another socket.",
    "too_much_unread": "Read long answers to their end, or close their connections.",
    "trace_too_large": "Ask with another tracer; this transaction did too much for it.",
    "tracer_not_available": "Use a tracer that the network offers, see Tracing.",
    "tracer_not_entitled": "Request access to this tracer under Tracing.",
    "unavailable": "Try again: the fault was ours.",
    "upstreams_unavailable": "Try again: the network's own nodes did not respond.",
    "user_agent_not_allowed": "Add your program's User-Agent to the allowlist.",
}
"""Advice by reason; `/docs/errors` describes each error."""


@dataclass(frozen=True, slots=True)
class RefusalLine:
    """A reason with advice. mending: the advice, or "" if there is none."""

    refusal: Refusal
    mending: str


def latest_refusals(key: ApiKey) -> list[RefusalLine]:
    """Return the reasons of the last SHOWN_DAYS days, the latest first."""
    since = timezone.now() - timedelta(days=SHOWN_DAYS)
    found = Refusal.objects.filter(api_key=key, last_at__gt=since)
    return [
        RefusalLine(refusal, MENDING.get(refusal.reason, ""))
        for refusal in found.select_related("network")[:MAX_SHOWN]
    ]
