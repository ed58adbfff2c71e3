"""How PostgreSQL keeps the tables that are read on every request.

Documents stay as they are (EXTERNAL): they are answered as stored, and PostgreSQL's own
compression would cost more time on each read than the space is worth. Rows of up to
8 kB stay in their page, out of the TOAST table.
"""

from django.db import migrations

_TABLES = {
    "nodeapi_block": ["document"],
    "nodeapi_transaction": ["document"],
}


def _statements():
    for table, columns in _TABLES.items():
        yield f"ALTER TABLE {table} SET (toast_tuple_target = 8160)"
        for column in columns:
            yield f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL"
    # Rows of the head's trie are replaced again and again, always in place.
    yield "ALTER TABLE nodeapi_trienode SET (fillfactor = 80)"


class Migration(migrations.Migration):
    """Set storage parameters, which Django's models can't express."""

    dependencies = [("nodeapi", "0001_initial")]

    operations = [
        migrations.RunSQL(statement, migrations.RunSQL.noop)
        for statement in _statements()
    ]
