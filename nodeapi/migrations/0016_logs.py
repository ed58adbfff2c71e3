"""The index of logs.

Blocks that are stored already have no rows in it. They are noted in LogBackfill, and
`manage.py backfill_logs` adds their rows while the service runs.
"""

import django.db.models.deletion
from django.db import migrations, models


def _index(key, **options):
    return models.Index(
        fields=["network", key, "block_number"], name=f"log_{key}", **options
    )


def _partial_index(key):
    return _index(key, condition=models.Q(**{f"{key}__isnull": False}))


class Migration(migrations.Migration):
    dependencies = [
        ("networks", "0007_keep_proofs"),
        ("nodeapi", "0015_pooled_transactions"),
    ]

    operations = [
        migrations.CreateModel(
            name="Log",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "network_id",
                        "position",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
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
                (
                    "position",
                    models.BigIntegerField(
                        help_text="Block number × 2**24 + index of the log in its block."
                    ),
                ),
                ("block_number", models.BigIntegerField()),
                ("transaction_index", models.IntegerField()),
                ("address", models.BigIntegerField()),
                (
                    "event",
                    models.BigIntegerField(
                        help_text="Key of the address and topic 0 together.", null=True
                    ),
                ),
                ("topic0", models.BigIntegerField(null=True)),
                ("topic1", models.BigIntegerField(null=True)),
                ("topic2", models.BigIntegerField(null=True)),
                ("topic3", models.BigIntegerField(null=True)),
            ],
            options={
                "indexes": [
                    _index("address"),
                    _partial_index("event"),
                    _partial_index("topic0"),
                    _partial_index("topic1"),
                    _partial_index("topic2"),
                    _partial_index("topic3"),
                ],
            },
        ),
        migrations.CreateModel(
            name="LogBackfill",
            fields=[
                (
                    "network",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="log_backfill",
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
        migrations.RunSQL(
            "INSERT INTO nodeapi_logbackfill (network_id, missing_below)"
            " SELECT id, head_number + 1 FROM networks_network"
            " WHERE head_number IS NOT NULL",
            migrations.RunSQL.noop,
        ),
    ]
