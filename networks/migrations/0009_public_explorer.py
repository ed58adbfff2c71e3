"""Let networks show blocks and transactions to everyone. Existing networks do not."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("networks", "0007_keep_proofs"),
    ]

    operations = [
        migrations.AddField(
            model_name="network",
            name="public_explorer",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Whether anyone sees blocks, transactions and addresses under /explore/. Calls and state changes always need a key that may trace.",
                verbose_name="public explorer",
            ),
        ),
    ]
