"""Create the tables of networks."""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import networks.models
import networks.validators
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('networks', '0001_initial'),
        ('networks', '0002_network_upstream_url'),
        ('networks', '0003_upstream_url_default'),
        ('networks', '0004_opcode_tracers'),
        ('networks', '0005_upstream'),
        ('networks', '0006_move_upstream_url'),
        ('networks', '0007_keep_proofs'),
        ('networks', '0008_network_state'),
        ('networks', '0009_public_explorer'),
        ('networks', '0009_wording'),
        ('networks', '0010_plain_help_texts'),
    ]

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Network',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(help_text='Part of the endpoint URL: /SLUG/v3/API_KEY.', unique=True, validators=[django.core.validators.RegexValidator('^[a-z0-9][a-z0-9-]*\\Z', 'Use lower-case letters, digits and hyphens, without a hyphen at the beginning.')])),
                ('name', models.CharField(help_text='Name of the network on pages.', max_length=100)),
                ('state', models.CharField(choices=[('preparing', 'preparing'), ('visible', 'visible'), ('hidden', 'hidden'), ('retired', 'retired')], db_default='visible', default='preparing', editable=False, help_text='A preparing network becomes visible to customers with its first imported block, or when its follower has connected to its upstreams.', max_length=16)),
                ('chain_id', models.PositiveBigIntegerField(help_text='EIP-155 chain id.')),
                ('genesis', models.JSONField(help_text="geth's genesis.json with its config, without the alloc, which is the state of block 0.")),
                ('genesis_hash', models.BinaryField(max_length=32)),
                ('tracers', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=networks.models.tracer_choices, max_length=32), blank=True, default=networks.models.all_tracers, help_text='Tracers that keys with an entitlement for tracing can use on this network.', size=None)),
                ('emit_total_difficulty', models.BooleanField(default=True, help_text='Whether block objects contain totalDifficulty. geth removed it in version 1.14.12, but many clients still read it.')),
                ('agree', models.PositiveSmallIntegerField(db_default=1, default=1, help_text='Number of upstreams that have to report a head or finalized block before the follower accepts it.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(16)])),
                ('keep_side_blocks', models.PositiveIntegerField(blank=True, help_text='Side blocks are deleted when they are this many blocks below the finalized block. Empty: they are never deleted.', null=True)),
                ('keep_proofs', models.PositiveIntegerField(blank=True, db_default=0, default=0, help_text='Number of blocks below the head for which trie nodes are kept, so that eth_getProof only has to read them. 0: none are kept, and proofs at older blocks are computed for each request. Empty: they are kept for all blocks from now on.', null=True)),
                ('public_explorer', models.BooleanField(db_default=False, default=False, help_text='Whether blocks, transactions and addresses under /explore/ are shown to everyone. Calls and state changes are only shown to customers with an entitlement for tracing, and to staff.', verbose_name='public explorer')),
                ('head_number', models.BigIntegerField(editable=False, help_text='Number of the newest canonical block.', null=True)),
                ('head_hash', models.BinaryField(max_length=32, null=True)),
                ('safe_hash', models.BinaryField(help_text='None: the head.', max_length=32, null=True)),
                ('finalized_hash', models.BinaryField(help_text='None: the head.', max_length=32, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='HostName',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='The network answers requests to /v3/API_KEY on this host.', max_length=253, unique=True, validators=[django.core.validators.RegexValidator('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?\\Z', 'Enter a host name in lower case, without scheme and port, such as mainnet.example.org.')])),
                ('network', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='host_names', to='networks.network')),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='NetworkDeletion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.CharField(editable=False, max_length=50)),
                ('name', models.CharField(editable=False, max_length=100)),
                ('chain_id', models.PositiveBigIntegerField(editable=False)),
                ('requested_by', models.CharField(blank=True, editable=False, help_text='Email address of the user. Empty: the command line.', max_length=254)),
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
        migrations.CreateModel(
            name='Upstream',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.CharField(help_text='JSON-RPC URL with the scheme http, https, ws or wss. It may contain a secret, so it is only shown to staff who may change it.', max_length=500, validators=[networks.validators.validate_upstream_url], verbose_name='URL')),
                ('headers', models.JSONField(blank=True, default=dict, help_text='HTTP headers of each request, such as Authorization.', validators=[networks.validators.validate_headers])),
                ('position', models.PositiveSmallIntegerField(default=0, help_text='Upstreams with lower numbers are used first.', verbose_name='order')),
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
