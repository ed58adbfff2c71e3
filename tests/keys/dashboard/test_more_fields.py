"""Forms ignore fields that they do not have."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from keys.models import ApiKey, Entitlement, KeyLimits, KeyVersion, User
from tests.keys.dashboard.conftest import Customer

FORMS: dict[str, dict[str, str]] = {
    "/dashboard/keys/new": {"name": "Second"},
    "rename": {"name": "Renamed"},
    "disable": {},
    "enable": {},
    "reveal": {},
    "roll": {"overlap": "0"},
    "allowlists": {"typed-ip": "203.0.113.0/24"},
    "tracing/alpha": {"reason": "to debug"},
}


def planted(stranger: Customer) -> dict[str, Any]:
    """Return fields that no user may set, by their names in tables."""
    tomorrow = (timezone.now() + timedelta(days=1)).isoformat()
    return {
        **{"owner": stranger.user.pk, "owner_id": stranger.user.pk, "id": 1, "pk": 1},
        **{"staff_note": "planted", "deleted_at": tomorrow, "created_by": 1},
        **{"status": "approved", "answer": "planted", "decided_by": stranger.user.pk},
        **{"plan": "1", "credits_per_second": "999999", "burst": "999999"},
        **{"tracer": "callTracer", "capability": "trace", "granted_by": "1"},
        **{"digest": "00" * 32, "hint": "planted", "revoked_at": "", "api_key": "1"},
        **{"is_staff": "on", "is_superuser": "on", "groups": "1"},
    }


@pytest.mark.parametrize("path", FORMS)
def test_more_fields_change_nothing(
    customer: Customer, stranger: Customer, path: str
) -> None:
    address = path if path.startswith("/") else customer.path(path)
    answer = customer.client.post(address, {**planted(stranger), **FORMS[path]})
    assert answer.status_code in (200, 302)
    assert set(ApiKey.objects.filter(owner=stranger.user)) == {stranger.key}
    assert not ApiKey.objects.exclude(staff_note="").exists()
    assert not ApiKey.objects.exclude(deleted_at=None).exists()
    assert not Entitlement.objects.exists()
    assert not KeyLimits.objects.exists()
    assert not KeyVersion.objects.filter(hint="planted").exists()
    assert not User.objects.filter(is_staff=True).exists()
    assert not customer.key.access_requests.exclude(status="pending").exists()
