"""Add the index of accounts in call frames.

Blocks that are stored already have no rows in it. They are noted in AppearanceBackfill,
and `manage.py backfill_appearances` adds their rows while the service runs.
"""

import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("networks", "0006_move_upstream_url"),
        ("nodeapi", "0016_logs"),
    ]

    operations = [
        migrations.CreateModel(
            name="Appearance",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "network_id",
                        "address",
                        "block_number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "address",
                    models.BinaryField(
                        help_text="Empty: transactions without a complete trace record.",
                        max_length=20,
                    ),
                ),
                ("block_number", models.BigIntegerField()),
                (
                    "places",
                    models.BinaryField(
                        help_text="Four bytes for each transaction: 16 × its index + the "
                        "roles."
                    ),
                ),
                (
                    "is_creation",
                    models.BooleanField(
                        help_text="Whether one of the transactions created the contract."
                    ),
                ),
                (
                    "is_author",
                    models.BooleanField(
                        help_text="Whether the account got a mining reward of the block."
                    ),
                ),
                (
                    "network",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="networks.network",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AppearanceBackfill",
            fields=[
                (
                    "network",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="appearance_backfill",
                        serialize=False,
                        to="networks.network",
                    ),
                ),
                (
                    "missing_below",
                    models.BigIntegerField(
                        help_text="Canonical blocks below this number have no rows."
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="appearance",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["block_number"], name="appearance_block"
            ),
        ),
        migrations.AddIndex(
            model_name="appearance",
            index=models.Index(
                condition=models.Q(("is_creation", True)),
                fields=["network", "address", "block_number"],
                name="appearance_creation",
            ),
        ),
        migrations.RunSQL(
            "INSERT INTO nodeapi_appearancebackfill (network_id, missing_below)"
            " SELECT id, head_number + 1 FROM networks_network"
            " WHERE head_number IS NOT NULL",
            migrations.RunSQL.noop,
        ),
    ]
