"""Create the table of former versions of trie nodes, for networks that keep proofs."""

import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('networks', '0007_keep_proofs'),
        ('nodeapi', '0011_fork_warnings'),
    ]

    operations = [
        migrations.CreateModel(
            name='TrieNodeVersion',
            fields=[
                ('pk', models.CompositePrimaryKey('network_id', 'owner', 'path', 'block_number', blank=True, editable=False, primary_key=True, serialize=False)),
                ('owner', models.BinaryField(help_text='As in a trie node.', max_length=32)),
                ('path', models.BinaryField(help_text='As in a trie node.', max_length=64)),
                ('block_number', models.BigIntegerField()),
                ('node', models.BinaryField(help_text='None: there was no node.', null=True)),
                ('network', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
            options={
                'verbose_name': 'trie node version',
                'indexes': [django.contrib.postgres.indexes.BrinIndex(autosummarize=True, fields=['block_number'], name='trie_node_version_block')],
            },
        ),
    ]
