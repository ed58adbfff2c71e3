"""Let networks keep trie nodes of older blocks. Existing networks keep none."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('networks', '0006_move_upstream_url'),
    ]

    operations = [
        migrations.AddField(
            model_name='network',
            name='keep_proofs',
            field=models.PositiveIntegerField(blank=True, db_default=0, default=0, help_text='Number of blocks below the head whose trie nodes are kept, so that their state is proven at once. 0: none, proofs of older states are computed. Empty: all blocks from now on.', null=True),
        ),
    ]
