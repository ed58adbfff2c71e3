"""Let the BRIN indexes of the version tables summarize new pages by themselves.

A reorganisation finds the versions above its fork point in these indexes. It reads all
pages that are not summarized. Without the setting those are the pages since the last
vacuum, which may be a fifth of the table.
"""

from django.contrib.postgres.indexes import BrinIndex
from django.db import migrations


def _summarized(model, name):
    """Change the setting in place, because a new index would take a scan of the table."""
    index = BrinIndex(autosummarize=True, fields=["block_number"], name=name)
    return migrations.SeparateDatabaseAndState(
        [
            migrations.RunSQL(
                f"ALTER INDEX {name} SET (autosummarize = on)",
                f"ALTER INDEX {name} RESET (autosummarize)",
            )
        ],
        [migrations.RemoveIndex(model, name), migrations.AddIndex(model, index)],
    )


class Migration(migrations.Migration):
    dependencies = [("nodeapi", "0009_following")]

    operations = [
        _summarized("accountversion", "account_version_block"),
        _summarized("storageversion", "storage_version_block"),
    ]
