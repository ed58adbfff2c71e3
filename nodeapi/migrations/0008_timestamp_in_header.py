"""Remove the column for block timestamps, which bigint cannot hold above 2**63 - 1.

The header, which is stored as well, has the whole timestamp. A wider column would
make PostgreSQL write the whole table anew under an exclusive lock, for a value that
only pages and the health check read.
"""

from __future__ import annotations

import rlp
from django.db import migrations, models

_BLOCKS_AT_ONCE = 1000

_TIMESTAMP = 11
"""Index of the timestamp among a header's fields."""


def fill_timestamps(apps, schema_editor):
    """Fill the column again from the headers, when the migration is reversed.

    Raises: django.db.DataError for a block whose timestamp does not fit.
    """
    block = apps.get_model("nodeapi", "Block")
    blocks = block.objects.using(schema_editor.connection.alias).only("id", "header")
    batch = []
    for row in blocks.iterator(chunk_size=_BLOCKS_AT_ONCE):
        timestamp = rlp.decode(bytes(row.header))[_TIMESTAMP]
        row.timestamp = int.from_bytes(timestamp, "big")
        batch.append(row)
        if len(batch) == _BLOCKS_AT_ONCE:
            block.objects.bulk_update(batch, ["timestamp"])
            batch = []
    block.objects.bulk_update(batch, ["timestamp"])


class Migration(migrations.Migration):
    dependencies = [("nodeapi", "0007_lz4_documents")]

    # Nullable first, so that the column can be added again to a table with rows.
    operations = [
        migrations.AlterField(
            "block",
            "timestamp",
            models.BigIntegerField(null=True, help_text="Unix seconds."),
        ),
        migrations.RunPython(migrations.RunPython.noop, fill_timestamps),
        migrations.RemoveField("block", "timestamp"),
    ]
