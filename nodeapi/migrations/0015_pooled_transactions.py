import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('networks', '0006_move_upstream_url'),
        ('nodeapi', '0013_trie_node_versions'),
    ]

    operations = [
        migrations.CreateModel(
            name='PooledTransaction',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hash', models.BinaryField(max_length=32)),
                ('sender', models.BinaryField(max_length=20)),
                ('nonce', models.DecimalField(decimal_places=0, max_digits=20)),
                ('type', models.SmallIntegerField()),
                ('cost', models.DecimalField(decimal_places=0, help_text='Wei that the sender needs: value, and the highest fees.', max_digits=160)),
                ('fee', models.DecimalField(decimal_places=0, help_text='Highest wei per gas.', max_digits=78)),
                ('tip', models.DecimalField(decimal_places=0, help_text='Highest priority fee, per gas.', max_digits=78)),
                ('blob_fee', models.DecimalField(decimal_places=0, help_text='Highest wei per blob gas, or 0.', max_digits=78)),
                ('authorities', django.contrib.postgres.fields.ArrayField(base_field=models.BinaryField(max_length=20), help_text='Signers of its authorizations (EIP-7702).', size=None)),
                ('size', models.IntegerField(help_text='Bytes of `raw`.')),
                ('raw', models.BinaryField(help_text='As EIP-2718 encodes it, without a sidecar.')),
                ('document', models.BinaryField(help_text='The pending transaction object as JSON.')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('network', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('network', 'hash'), name='pooled_hash'),
                    models.UniqueConstraint(fields=('network', 'sender', 'nonce'), name='pooled_nonce'),
                ],
            },
        ),
    ]
