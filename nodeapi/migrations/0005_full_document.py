"""Each block has its object with transaction objects in one column, compressed.

Blocks of old get theirs out of the rows of their transactions. PostgreSQL is to leave
the column as it is (EXTERNAL): it is compressed already.
"""

import zstandard
from django.db import migrations, models

_BLOCKS_AT_ONCE = 100

_FIELD = {"help_text": "The document with transaction objects, in a zstd frame."}

_FULL = """
    SELECT b.id, substring(b.document FROM 1 FOR b.transactions_offset) || '['::bytea
        || coalesce(
            (SELECT string_agg(t.document, ','::bytea ORDER BY t.index)
             FROM nodeapi_transaction t WHERE t.block_id = b.id),
            ''::bytea
        ) || ']}'::bytea
    FROM nodeapi_block b WHERE b.id > %s ORDER BY b.id LIMIT %s
"""


def pack_blocks_of_old(apps, schema_editor):
    """Fill the column."""
    compress = zstandard.ZstdCompressor(level=-1).compress
    last_id = -1
    with schema_editor.connection.cursor() as cursor:
        while True:
            cursor.execute(_FULL, [last_id, _BLOCKS_AT_ONCE])
            blocks = cursor.fetchall()
            if not blocks:
                return
            cursor.executemany(
                "UPDATE nodeapi_block SET full_document = %s WHERE id = %s",
                [
                    (compress(bytes(document)), block_id)
                    for block_id, document in blocks
                ],
            )
            last_id = blocks[-1][0]


class Migration(migrations.Migration):
    """Add the column, fill it, and have every block need it."""

    dependencies = [("nodeapi", "0004_record_for_each_transaction")]

    operations = [
        migrations.AddField(
            "block", "full_document", models.BinaryField(null=True, **_FIELD)
        ),
        migrations.RunSQL(
            "ALTER TABLE nodeapi_block ALTER COLUMN full_document SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
        migrations.RunPython(pack_blocks_of_old, migrations.RunPython.noop),
        migrations.AlterField("block", "full_document", models.BinaryField(**_FIELD)),
    ]
