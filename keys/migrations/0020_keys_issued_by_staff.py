from django.db import migrations, models
from django.db.models import F, Q


def mark_issued_keys(apps, schema_editor):
    """Mark the keys that someone other than their owner has created."""
    keys = apps.get_model("keys", "ApiKey").objects
    keys.filter(Q(created_by=None) | ~Q(created_by=F("owner"))).update(
        is_issued_by_staff=True
    )


class Migration(migrations.Migration):
    dependencies = [("keys", "0017_opcode_tracers")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="is_issued_by_staff",
            field=models.BooleanField(
                default=False,
                db_default=False,
                editable=False,
                help_text="Does not count against the keys that a customer can create.",
            ),
        ),
        migrations.RunPython(mark_issued_keys, migrations.RunPython.noop),
    ]
