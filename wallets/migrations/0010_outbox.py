import django.db.models.functions.datetime
from django.db import migrations, models

# A user who is deactivated is disconnected at once, whoever writes it and however.
APPEND = """
CREATE OR REPLACE FUNCTION wallets_tell_of_user() RETURNS trigger AS $$
BEGIN
    PERFORM outbox_append('wallet.' || NEW.id, 'account');
    RETURN NULL;
END
$$ LANGUAGE plpgsql;
"""

NOTIFY = """
CREATE OR REPLACE FUNCTION wallets_tell_of_user() RETURNS trigger AS $$
BEGIN
    PERFORM pg_notify('portcullis_wallet_dapp', id::text)
        FROM wallets_dapp WHERE user_id = NEW.id;
    PERFORM pg_notify('portcullis_wallet_user', NEW.id::text);
    RETURN NULL;
END
$$ LANGUAGE plpgsql;
"""


class Migration(migrations.Migration):

    dependencies = [
        ("outbox", "0001_initial"),
        ("wallets", "0009_admin_indexes"),
    ]

    operations = [
        migrations.RunSQL(APPEND, NOTIFY),
        migrations.CreateModel(
            name="ServingProcess",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
                ("seen_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text="By the database's clock.")),
            ],
        ),
        migrations.AlterField(
            model_name="livesocket",
            name="process",
            field=models.BigIntegerField(db_index=True, help_text="Number of the process that serves it."),
        ),
    ]
