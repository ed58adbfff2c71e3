"""Find the busiest keys of a day in an index. It is created concurrently."""

from __future__ import annotations

from django.db import migrations, models

from networks.migration_operations import AddIndexWhileServing


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("keys", "0022_notices")]

    operations = [
        AddIndexWhileServing(
            model_name="dailyuse",
            index=models.Index(fields=["day", "-credits"], name="daily_use_busiest"),
        ),
    ]
