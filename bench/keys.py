"""API keys for benchmarks, on a plan without limits."""

from __future__ import annotations

from keys.models import Plan
from keys.services import get_or_create_customer, issue_key
from keys.services.limits import set_limits


def new_key(*, may_trace: bool = False, **terms: int) -> str:
    """Create a key, and return its secret.

    terms: limits of this key, as keyword arguments of `keys.services.limits.set_limits`.
    """
    owner = get_or_create_customer(email="bench@example.org")
    issued = issue_key(owner=owner, name="bench", may_trace=may_trace)
    plan = Plan.objects.get(slug="custom")
    set_limits(api_key=issued.api_key, plan=plan, **terms)
    return issued.secret
