import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("keys", "0018_members")]

    operations = [
        migrations.CreateModel(
            name="KeyFailures",
            fields=[
                (
                    "api_key",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="failures",
                        serialize=False,
                        to="keys.apikey",
                    ),
                ),
                (
                    "latest",
                    models.JSONField(
                        default=list,
                        help_text="[Unix seconds, network id, method, code, reason or error class].",
                    ),
                ),
                (
                    "unknown_methods",
                    models.JSONField(
                        default=dict,
                        help_text="Name → [calls, Unix seconds of the last one].",
                    ),
                ),
            ],
            options={"verbose_name_plural": "key failures"},
        ),
    ]
