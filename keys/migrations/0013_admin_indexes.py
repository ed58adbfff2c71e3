"""Create indexes for the admin's filters and searches concurrently."""

from __future__ import annotations

from django.db import migrations, models

from networks.migration_operations import AddIndexWhileServing


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("keys", "0012_refusals")]

    operations = [
        AddIndexWhileServing(
            model_name="apikey",
            index=models.Index(
                condition=models.Q(expires_at__isnull=False),
                fields=["expires_at"],
                name="key_by_expiry",
            ),
        ),
        AddIndexWhileServing(
            model_name="keyevent",
            index=models.Index(fields=["type", "-id"], name="event_by_type"),
        ),
        AddIndexWhileServing(
            model_name="keyversion",
            index=models.Index(fields=["hint"], name="version_by_hint"),
        ),
        AddIndexWhileServing(
            model_name="keyversion",
            index=models.Index(
                condition=models.Q(expires_at__isnull=False, revoked_at=None),
                fields=["expires_at"],
                name="version_by_expiry",
            ),
        ),
    ]
