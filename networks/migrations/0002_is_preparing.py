"""Separate the first import of a network from the state that the provider chooses.

A network that was in the state `preparing` is visible now. It is still preparing only if it
has no block but block 0.
"""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('networks', '0001_squashed'),
    ]

    operations = [
        migrations.AddField(
            model_name='network',
            name='is_preparing',
            field=models.BooleanField(db_default=False, default=False, editable=False, help_text="Whether the network is being imported for the first time. It ends when the head is within 2 blocks of the upstreams' head, or with the end of an imported file, and never begins again.", verbose_name='preparing'),
        ),
        migrations.RunSQL(
            [
                "UPDATE networks_network SET is_preparing = true"
                " WHERE state = 'preparing' AND coalesce(head_number, 0) = 0",
                "UPDATE networks_network SET state = 'visible' WHERE state = 'preparing'",
            ],
            migrations.RunSQL.noop,
        ),
        migrations.AlterField(
            model_name='network',
            name='state',
            field=models.CharField(choices=[('visible', 'visible'), ('hidden', 'hidden'), ('retired', 'retired')], db_default='visible', default='visible', editable=False, help_text='Whether customers see the network, and requests are answered.', max_length=16),
        ),
    ]
