"""The records of transactions, kept as they are written.

They come compressed (EXTERNAL: PostgreSQL doesn't try again), and a part of a long one
can be read by itself. Short ones stay in the row, out of the TOAST table.
"""

import django.db.models.deletion
from django.db import migrations, models

_COLUMNS = ["receipt", "calls", "prestate", "details"]

_STORAGE = [
    "ALTER TABLE nodeapi_transactionrecord SET (toast_tuple_target = 8160)",
    *(
        f"ALTER TABLE nodeapi_transactionrecord ALTER COLUMN {column}"
        " SET STORAGE EXTERNAL"
        for column in _COLUMNS
    ),
]


class Migration(migrations.Migration):
    """Add the table."""

    dependencies = [
        ('nodeapi', '0002_storage'),
    ]

    operations = [
        migrations.CreateModel(
            name='TransactionRecord',
            fields=[
                ('pk', models.CompositePrimaryKey('block_id', 'index', blank=True, editable=False, primary_key=True, serialize=False)),
                ('index', models.IntegerField(help_text="The transaction's place in the block.")),
                ('calls_size', models.BigIntegerField(help_text='Size in bytes of the callTracer answer.')),
                ('prestate_size', models.BigIntegerField(help_text='Size in bytes of the prestateTracer answer.')),
                ('receipt', models.BinaryField(help_text='The receipt object.')),
                ('calls', models.BinaryField(help_text='The callTracer answer, without the input.')),
                ('prestate', models.BinaryField(help_text="The prestateTracer answer, without the contracts' code.")),
                ('details', models.BinaryField(help_text="Additional data for the answers of other tracers.")),
                ('block', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='records', to='nodeapi.block')),
            ],
            options={
                'verbose_name': 'transaction record',
                'constraints': [models.CheckConstraint(condition=models.Q(('calls_size__gte', 0), ('index__gte', 0), ('prestate_size__gte', 0)), name='record_sizes')],
            },
        ),
        *(
            migrations.RunSQL(statement, migrations.RunSQL.noop)
            for statement in _STORAGE
        ),
    ]
