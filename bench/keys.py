"""Keys for benchmarks: of the plan that limits nothing, with terms of their own."""

from __future__ import annotations

from keys.models import Plan
from keys.services import get_or_create_customer, issue_key
from keys.services.limits import set_limits


def new_key(*, may_trace: bool = False, **terms: int) -> str:
    """Return a new key's secret; terms: as `set_limits` takes them."""
    owner = get_or_create_customer(email="bench@example.org")
    issued = issue_key(owner=owner, name="bench", may_trace=may_trace)
    plan = Plan.objects.get(slug="custom")
    set_limits(api_key=issued.api_key, plan=plan, **terms)
    return issued.secret
