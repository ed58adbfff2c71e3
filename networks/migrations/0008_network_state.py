"""Let networks be hidden, retired and deleted. Existing networks are visible."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('networks', '0009_public_explorer'),
    ]

    operations = [
        migrations.AddField(
            model_name='network',
            name='state',
            field=models.CharField(choices=[('preparing', 'preparing'), ('visible', 'visible'), ('hidden', 'hidden'), ('retired', 'retired')], db_default='visible', default='preparing', editable=False, help_text='preparing: becomes visible with its first imported block, or when its follower has reached its upstreams.', max_length=16),
        ),
        migrations.CreateModel(
            name='NetworkDeletion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.CharField(editable=False, max_length=50)),
                ('name', models.CharField(editable=False, max_length=100)),
                ('chain_id', models.PositiveBigIntegerField(editable=False)),
                ('requested_by', models.CharField(blank=True, editable=False, help_text='The mail address of the user. Empty: the command line.', max_length=254)),
                ('requested_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(editable=False, help_text='When rows were last deleted.', null=True)),
                ('finished_at', models.DateTimeField(editable=False, null=True)),
                ('tables', models.JSONField(default=list, editable=False, help_text='The progress of each table; see `nodeapi.deletion.progress`.')),
                ('network', models.OneToOneField(editable=False, help_text='None: the network is deleted.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='deletion', to='networks.network')),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
    ]
