from django.db import migrations

TABLES = ("keys_keyevent", "keys_memberevent")


class Migration(migrations.Migration):
    dependencies = [("keys", "0002_notices_rendered_when_sent")]

    operations = [
        migrations.RunSQL(
            [
                f"CREATE TRIGGER events_stay BEFORE TRUNCATE ON {table}"
                " FOR EACH STATEMENT EXECUTE FUNCTION keys_event_stays()"
                for table in TABLES
            ],
            [f"DROP TRIGGER events_stay ON {table}" for table in TABLES],
        )
    ]
