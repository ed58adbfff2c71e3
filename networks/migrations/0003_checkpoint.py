"""Add the checkpoint and the history below it. Networks so far have started at block 0."""

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
        migrations.AddField(
            model_name='network',
            name='checkpoint_hash',
            field=models.BinaryField(max_length=32, null=True),
        ),
        migrations.AddField(
            model_name='network',
            name='history_blocks',
            field=models.PositiveIntegerField(db_default=8192, default=8192, editable=False, help_text='Number of blocks below the checkpoint that are stored. At least the 255 ancestors that later blocks can name are stored.'),
        ),
        migrations.AddField(
            model_name='network',
            name='oldest_number',
            field=models.BigIntegerField(editable=False, help_text='Number of the oldest stored block but block 0, if the network started at a checkpoint. None: no block between them is missing.', null=True),
        ),
    ]
