"""Convert full documents from zstd frames to LZ4 blocks, which decompress twice as fast.

The migration works in batches, so that an interrupted one continues where it stopped. The
former version can't read LZ4 blocks: its web processes must not run during or after this
migration. The new version reads both formats.
"""

import lz4.block
import zstandard
from django.db import migrations, models, transaction

_BLOCKS_AT_ONCE = 100

_MAGIC = b"\x28\xb5\x2f\xfd"
"""Every zstd frame begins with it. Read as the length with which an LZ4 block begins it
would be 4 GB, more than a column holds. Source: RFC 8878, 3.1.1"""

_NEXT = """
    SELECT id, full_document FROM nodeapi_block
    WHERE id > %s AND substring(full_document FROM 1 FOR 4) = %s
    ORDER BY id LIMIT %s
"""


def pack_again(apps, schema_editor):
    """Convert all zstd frames to LZ4 blocks."""
    connection = schema_editor.connection
    last_id = -1
    while True:
        with transaction.atomic(connection.alias), connection.cursor() as cursor:
            cursor.execute(_NEXT, [last_id, _MAGIC, _BLOCKS_AT_ONCE])
            frames = [(block_id, bytes(frame)) for block_id, frame in cursor]
            if not frames:
                return
            cursor.executemany(
                "UPDATE nodeapi_block SET full_document = %s WHERE id = %s",
                [
                    (packed, block_id)
                    for block_id, frame in frames
                    if (packed := _packed(frame)) is not None
                ],
            )
            last_id = frames[-1][0]


def _packed(frame):
    """Convert a frame to an LZ4 block. Return None for a damaged frame.

    A damaged frame stays as it is, so that it does not prevent the migration. Reading it
    is an error before and afterwards.
    """
    try:
        return lz4.block.compress(zstandard.ZstdDecompressor().decompress(frame))
    except (zstandard.ZstdError, MemoryError):
        return None


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("nodeapi", "0006_side_blocks")]

    operations = [
        migrations.AlterField(
            "block",
            "full_document",
            models.BinaryField(
                help_text="The document with transaction objects, as an LZ4 block."
            ),
        ),
        migrations.RunPython(pack_again, migrations.RunPython.noop),
    ]
