"""Create the table of block access lists."""

import django.db.models.deletion
from django.db import migrations, models

_STORAGE = """
ALTER TABLE nodeapi_blockaccesslist
    ALTER COLUMN list SET STORAGE EXTERNAL,
    ALTER COLUMN gas SET STORAGE EXTERNAL,
    SET (toast_tuple_target = 8160);
"""
"""As for trace records, which are compressed as well."""


class Migration(migrations.Migration):

    dependencies = [
        ('nodeapi', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='BlockAccessList',
            fields=[
                ('block', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='access_list', serialize=False, to='nodeapi.block')),
                ('list', models.BinaryField(help_text='RLP of the list, packed by `evm.tracers`.')),
                ('gas', models.BinaryField(help_text='From Amsterdam on, RLP of [execution gas, state gas] of each transaction. Before, there is one kind of gas, and this is empty.')),
            ],
        ),
        migrations.RunSQL(_STORAGE, migrations.RunSQL.noop),
    ]
