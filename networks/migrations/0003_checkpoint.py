"""Add the number of the checkpoint. Networks so far have started at block 0."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('networks', '0002_is_preparing'),
    ]

    operations = [
        migrations.AddField(
            model_name='network',
            name='checkpoint_number',
            field=models.BigIntegerField(editable=False, help_text='Number of the trusted block at which the network started, whose state is known only as far as it was proved. None: block 0, whose state is complete.', null=True),
        ),
    ]
