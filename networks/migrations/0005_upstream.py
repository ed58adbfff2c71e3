import django.core.validators
import django.db.models.deletion
import networks.validators
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('networks', '0004_opcode_tracers'),
    ]

    operations = [
        migrations.AddField(
            model_name='network',
            name='agree',
            field=models.PositiveSmallIntegerField(db_default=1, default=1, help_text='Number of upstreams that have to agree on the head and the finalized block. 1: each upstream is believed.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(16)]),
        ),
        migrations.AddField(
            model_name='network',
            name='keep_side_blocks',
            field=models.PositiveIntegerField(blank=True, help_text='Side blocks are deleted when they are this many blocks below the finalized block. Empty: they are kept for ever.', null=True),
        ),
        migrations.CreateModel(
            name='Upstream',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.CharField(help_text='JSON-RPC address: http, https, ws or wss. It may contain a secret; only staff who edit it see it.', max_length=500, validators=[networks.validators.validate_upstream_url], verbose_name='URL')),
                ('headers', models.JSONField(blank=True, default=dict, help_text='HTTP headers of each request, such as Authorization.', validators=[networks.validators.validate_headers])),
                ('position', models.PositiveSmallIntegerField(default=0, help_text='The lowest is asked first.', verbose_name='order')),
                ('is_enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('note', models.CharField(blank=True, default='', max_length=200)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('network', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='upstreams', to='networks.network')),
            ],
            options={
                'ordering': ['position', 'id'],
            },
        ),
    ]
