"""Create indexes for the admin's filters by state concurrently."""

from __future__ import annotations

from django.db import migrations, models

from networks.migration_operations import AddIndexWhileServing


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("keys", "0014_last_network")]

    operations = [
        AddIndexWhileServing(
            model_name="apikey",
            index=models.Index(
                condition=models.Q(is_enabled=False), fields=["id"], name="key_disabled"
            ),
        ),
        AddIndexWhileServing(
            model_name="keyversion",
            index=models.Index(
                condition=models.Q(revoked_at__isnull=False),
                fields=["api_key"],
                name="version_revoked",
            ),
        ),
        AddIndexWhileServing(
            model_name="user",
            index=models.Index(
                condition=models.Q(is_active=False), fields=["id"], name="user_inactive"
            ),
        ),
    ]
