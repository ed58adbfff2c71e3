"""What the admin's filter by `is_canonical` looks into, made while imports go on."""

from __future__ import annotations

from django.db import migrations, models

from networks.migration_operations import AddIndexWhileServing


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("nodeapi", "0005_full_document")]

    operations = [
        AddIndexWhileServing(
            model_name="block",
            index=models.Index(
                condition=models.Q(is_canonical=False),
                fields=["network", "number"],
                name="block_side",
            ),
        ),
    ]
