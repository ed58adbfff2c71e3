import django.contrib.postgres.indexes
from django.db import migrations, models

# Entries of transactions in progress. No other transaction sees them, and none remains after
# the end of its own, so that no write-ahead log is needed.
PENDING = """
CREATE UNLOGGED TABLE outbox_pending (
    transaction xid8 NOT NULL,
    stream text NOT NULL,
    subject text NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (transaction, stream, subject)
);
-- A commit updates the row of its stream. Free space keeps these updates in their page.
ALTER TABLE outbox_stream SET (fillfactor = 50);

-- A subject that is appended twice in a transaction becomes one entry.
CREATE FUNCTION outbox_append(stream text, subject text) RETURNS void AS $$
    INSERT INTO outbox_pending (transaction, stream, subject)
    VALUES (pg_current_xact_id(), stream, subject)
    ON CONFLICT DO NOTHING
$$ LANGUAGE sql;

-- The row with an empty stream stands for the commit. Its own trigger is deferred during the
-- commit, and therefore fires after all other deferred triggers of the transaction: no
-- foreign key waits for another transaction while a stream is locked.
CREATE FUNCTION outbox_at_commit() RETURNS trigger AS $$
BEGIN
    INSERT INTO outbox_pending (transaction, stream, subject)
    VALUES (NEW.transaction, '', '')
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$ LANGUAGE plpgsql;

CREATE CONSTRAINT TRIGGER outbox_appended AFTER INSERT ON outbox_pending
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.stream <> '') EXECUTE FUNCTION outbox_at_commit();

-- Locks the rows of the streams in the order of their names until the transaction has ended.
CREATE FUNCTION outbox_assign_numbers() RETURNS trigger AS $$
BEGIN
    INSERT INTO outbox_stream AS s (name, epoch, last_number, origin)
    SELECT p.stream, gen_random_uuid(), count(*), (
        SELECT d.oid || '.' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
        FROM pg_database d WHERE d.datname = current_database()
    )
    FROM outbox_pending p
    WHERE p.transaction = NEW.transaction AND p.stream <> ''
    GROUP BY p.stream ORDER BY p.stream
    ON CONFLICT (name) DO UPDATE SET
        last_number = s.last_number + EXCLUDED.last_number,
        epoch = CASE WHEN s.origin = EXCLUDED.origin THEN s.epoch ELSE EXCLUDED.epoch END,
        origin = EXCLUDED.origin;

    INSERT INTO outbox_entry (stream, number, subject, created_at)
    SELECT p.stream,
        s.last_number - count(*) OVER (PARTITION BY p.stream)
            + row_number() OVER (PARTITION BY p.stream ORDER BY p.id),
        p.subject, clock_timestamp()
    FROM outbox_pending p JOIN outbox_stream s ON s.name = p.stream
    WHERE p.transaction = NEW.transaction;

    DELETE FROM outbox_pending WHERE transaction = NEW.transaction;
    RETURN NULL;
END
$$ LANGUAGE plpgsql;

CREATE CONSTRAINT TRIGGER outbox_committing AFTER INSERT ON outbox_pending
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.stream = '') EXECUTE FUNCTION outbox_assign_numbers();
"""

NOT_PENDING = """
DROP TABLE outbox_pending;
DROP FUNCTION outbox_append;
DROP FUNCTION outbox_at_commit;
DROP FUNCTION outbox_assign_numbers;
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Stream",
            fields=[
                ("name", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("epoch", models.UUIDField(help_text="Changes when numbers may have been assigned twice.")),
                ("last_number", models.BigIntegerField()),
                ("origin", models.CharField(help_text="Database and WAL timeline that assigned the last number. Another one, as after a failover or a restore, begins a new epoch.", max_length=50)),
            ],
        ),
        migrations.CreateModel(
            name="Entry",
            fields=[
                ("pk", models.CompositePrimaryKey("stream", "number", blank=True, editable=False, primary_key=True, serialize=False)),
                ("stream", models.CharField(max_length=100)),
                ("number", models.BigIntegerField()),
                ("subject", models.CharField(max_length=100)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "entries",
                "indexes": [django.contrib.postgres.indexes.BrinIndex(fields=["created_at"], name="outbox_entry_by_time")],
            },
        ),
        migrations.RunSQL(PENDING, NOT_PENDING),
    ]
