"""Every transaction of a block has its record, or the commit is refused.

Blocks come in first and their records after them, in one transaction: whether a record
is one of its block's is looked at when it comes, whether they are complete at the
commit. Records of one block have different indexes, from 0 on; so as many as the block
has transactions, all below that number, are one for each.

Blocks that were imported before there were records can't get them here: a migration
executes no blocks. A database that has such blocks is refused, by `nodeapi.checks`
before any migration is applied.
"""

from django.core.management.base import CommandError
from django.db import migrations

_FUNCTIONS = """
CREATE FUNCTION nodeapi_records_complete(of_block bigint) RETURNS void AS $$
DECLARE
    due integer;
    found integer;
BEGIN
    SELECT transaction_count INTO due FROM nodeapi_block WHERE id = of_block;
    IF due IS NULL THEN
        RETURN;  -- the block went as well
    END IF;
    SELECT count(*) INTO found FROM nodeapi_transactionrecord
        WHERE block_id = of_block;
    IF found <> due THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = format('block %s has %s transactions, and records of %s',
                of_block, due, found),
            CONSTRAINT = 'record_for_each_transaction';
    END IF;
END
$$ LANGUAGE plpgsql;

CREATE FUNCTION nodeapi_block_has_records() RETURNS trigger AS $$
BEGIN
    PERFORM nodeapi_records_complete(NEW.id);
    RETURN NULL;
END
$$ LANGUAGE plpgsql;

CREATE FUNCTION nodeapi_record_has_gone() RETURNS trigger AS $$
BEGIN
    PERFORM nodeapi_records_complete(OLD.block_id);
    RETURN NULL;
END
$$ LANGUAGE plpgsql;

CREATE FUNCTION nodeapi_records_belong() RETURNS trigger AS $$
DECLARE
    stray record;
BEGIN
    SELECT came.block_id, came.index INTO stray FROM came
        LEFT JOIN nodeapi_block AS block ON block.id = came.block_id
        WHERE block.id IS NULL OR came.index >= block.transaction_count LIMIT 1;
    IF FOUND THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = format('block %s has no transaction %s to be recorded',
                stray.block_id, stray.index),
            CONSTRAINT = 'record_for_each_transaction';
    END IF;
    RETURN NULL;
END
$$ LANGUAGE plpgsql;
"""

_TRIGGERS = """
CREATE CONSTRAINT TRIGGER record_for_each_transaction
    AFTER INSERT OR UPDATE OF transaction_count ON nodeapi_block
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION nodeapi_block_has_records();

CREATE CONSTRAINT TRIGGER record_for_each_transaction
    AFTER DELETE OR UPDATE OF block_id, index ON nodeapi_transactionrecord
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION nodeapi_record_has_gone();

CREATE TRIGGER records_belong
    AFTER INSERT ON nodeapi_transactionrecord REFERENCING NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION nodeapi_records_belong();

CREATE TRIGGER records_belong_after_update
    AFTER UPDATE ON nodeapi_transactionrecord REFERENCING NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION nodeapi_records_belong();
"""

_REVERSE = """
DROP TRIGGER record_for_each_transaction ON nodeapi_block;
DROP TRIGGER record_for_each_transaction ON nodeapi_transactionrecord;
DROP TRIGGER records_belong ON nodeapi_transactionrecord;
DROP TRIGGER records_belong_after_update ON nodeapi_transactionrecord;
DROP FUNCTION nodeapi_records_belong;
DROP FUNCTION nodeapi_record_has_gone;
DROP FUNCTION nodeapi_block_has_records;
DROP FUNCTION nodeapi_records_complete;
"""


def refuse_blocks_without_records(apps, schema_editor):
    """Raise CommandError when there are blocks that were imported without records."""
    block = apps.get_model("nodeapi", "Block")
    recorded = apps.get_model("nodeapi", "TransactionRecord")
    old = block.objects.filter(transaction_count__gt=0).exclude(
        id__in=recorded.objects.values("block_id")
    )
    if old.exists():
        raise CommandError(
            "this database has blocks that were imported before traces were recorded; "
            "run `manage.py flush_chains`, which keeps customers, keys and networks, "
            "then migrate and import the chains again"
        )


class Migration(migrations.Migration):
    """Add the triggers, to a database whose blocks have records or no transactions."""

    dependencies = [("nodeapi", "0003_transactionrecord")]

    operations = [
        migrations.RunPython(refuse_blocks_without_records, migrations.RunPython.noop),
        migrations.RunSQL(_FUNCTIONS + _TRIGGERS, _REVERSE),
    ]
