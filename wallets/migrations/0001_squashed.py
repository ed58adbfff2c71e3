"""Create the tables of the wallet."""

import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


_USERS = """
CREATE FUNCTION wallets_tell_of_user() RETURNS trigger AS $$
BEGIN
    PERFORM outbox_append('wallet.' || NEW.id, 'account');
    RETURN NULL;
END
$$ LANGUAGE plpgsql;

CREATE TRIGGER wallets_user_changed
    AFTER UPDATE OF is_active ON keys_user
    FOR EACH ROW WHEN (OLD.is_active IS DISTINCT FROM NEW.is_active)
    EXECUTE FUNCTION wallets_tell_of_user();
"""
"""A user who is deactivated is disconnected at once, whichever program deactivates them."""



class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('wallets', '0001_initial'),
        ('wallets', '0002_failed_pairing'),
        ('wallets', '0003_live_sockets'),
        ('wallets', '0004_keystores'),
        ('wallets', '0005_signatures'),
        ('wallets', '0006_sending'),
        ('wallets', '0007_activity_by_time'),
        ('wallets', '0008_token_defaults'),
        ('wallets', '0009_admin_indexes'),
        ('wallets', '0010_outbox'),
        ('wallets', '0011_wording'),
        ('wallets', '0012_event_labels'),
        ('wallets', '0013_plain_help_texts'),
    ]

    dependencies = [
        ('outbox', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='FailedPairing',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('remote_address', models.GenericIPAddressField(null=True)),
                ('at', models.DateTimeField(auto_now_add=True, db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name='ServingProcess',
            fields=[
                ('number', models.BigIntegerField(primary_key=True, serialize=False)),
                ('seen_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text="By the database's clock.")),
            ],
        ),
        migrations.CreateModel(
            name='Account',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('namespace', models.CharField(default='eip155', help_text='CAIP-2 namespace of its chains.', max_length=8)),
                ('address', models.CharField(help_text='In lower case if the namespace ignores case.', max_length=128)),
                ('label', models.CharField(blank=True, max_length=60)),
                ('position', models.PositiveIntegerField(help_text='The account with the lowest position is the primary one, which dapps see first.')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='wallet_accounts', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['position', 'id'],
            },
        ),
        migrations.CreateModel(
            name='BlockedDapp',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('web', 'web page'), ('app', 'program')], default='web', max_length=3)),
                ('ident', models.CharField(help_text='The origin of a web page, such as https://dapp.example, or the id of a program.', max_length=300, verbose_name='identity')),
                ('reason', models.CharField(blank=True, max_length=200)),
                ('blocked_at', models.DateTimeField(auto_now_add=True)),
                ('blocked_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Dapp',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('web', 'web page'), ('app', 'program')], max_length=3)),
                ('ident', models.CharField(help_text='The origin of a web page as sent by the browser, or the random id of a program.', max_length=300, verbose_name='identity')),
                ('label', models.CharField(blank=True, help_text='The name that the user gave to a program.', max_length=60)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_from', models.GenericIPAddressField(blank=True, help_text='IP address of the dapp when it was paired.', null=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('blocked_at', models.DateTimeField(blank=True, help_text='When the user blocked the dapp.', null=True)),
                ('rejections', models.PositiveSmallIntegerField(default=0, help_text='Consecutive rejections within a short time.')),
                ('last_rejected_at', models.DateTimeField(blank=True, null=True)),
                ('muted_until', models.DateTimeField(blank=True, help_text='Requests are rejected automatically until this time, after too many rejections.', null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='wallet_dapps', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-last_used_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='ConsentRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('method', models.CharField(help_text='Name of the called method.', max_length=64)),
                ('body', models.JSONField(help_text='The parameters, in a form that depends on the method.')),
                ('state', models.CharField(choices=[('pending', 'pending'), ('approved', 'approved'), ('rejected', 'rejected'), ('expired', 'expired'), ('withdrawn', 'withdrawn'), ('sending', 'being sent'), ('failed', 'failed')], default='pending', max_length=9)),
                ('outcome', models.JSONField(blank=True, help_text='The result of an approved call.', null=True)),
                ('socket', models.CharField(help_text='Id of the socket that receives the response.', max_length=36)),
                ('asked_from', models.GenericIPAddressField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('decided_at', models.DateTimeField(blank=True, null=True)),
                ('dapp', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='requests', to='wallets.dapp')),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Activity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('dapp_name', models.CharField(blank=True, max_length=300)),
                ('event', models.CharField(choices=[('paired', 'dapp connected'), ('asked', 'request made'), ('rejected', 'request rejected'), ('expired', 'request expired'), ('withdrawn', 'request withdrawn'), ('granted', 'session granted'), ('changed', 'session changed'), ('revoked', 'session ended'), ('session_expired', 'session expired'), ('disconnected', 'dapp disconnected'), ('blocked', 'dapp blocked'), ('unblocked', 'dapp unblocked'), ('account_added', 'account added'), ('account_removed', 'account removed'), ('key_added', 'key added'), ('key_saved', 'keystore downloaded'), ('key_locked', 'key locked after wrong passphrases'), ('key_deleted', 'key deleted'), ('signed', 'signature given'), ('not_sent', 'transaction failed')], max_length=16)),
                ('actor', models.CharField(choices=[('user', 'you'), ('dapp', 'the dapp'), ('staff', 'support'), ('system', 'the wallet')], max_length=6)),
                ('remote_address', models.GenericIPAddressField(blank=True, null=True)),
                ('details', models.JSONField(blank=True, default=dict)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='wallet_activities', to=settings.AUTH_USER_MODEL)),
                ('dapp', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='activities', to='wallets.dapp')),
            ],
            options={
                'verbose_name_plural': 'activities',
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='DappToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(editable=False, help_text='Hex SHA-256 of the token.', max_length=64, unique=True)),
                ('former_digest', models.CharField(blank=True, db_default='', db_index=True, default='', editable=False, help_text='Digest of the former secret, valid until the new one is used.', max_length=64)),
                ('renewed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), default=django.utils.timezone.now, help_text='When the current secret was created.')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_from', models.GenericIPAddressField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_from', models.GenericIPAddressField(blank=True, null=True)),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('dapp', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to='wallets.dapp')),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Keystore',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('document', models.JSONField(editable=False, help_text='Web3 Secret Storage, version 3, created by this wallet.')),
                ('tries', models.PositiveSmallIntegerField(default=0, help_text='Wrong passphrases since the last correct one.')),
                ('locked_until', models.DateTimeField(blank=True, help_text='Every passphrase is rejected until this time.', null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('account', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='keystore', to='wallets.account')),
            ],
        ),
        migrations.CreateModel(
            name='LiveSocket',
            fields=[
                ('name', models.CharField(max_length=36, primary_key=True, serialize=False)),
                ('process', models.BigIntegerField(db_index=True, help_text='Number of the process that serves it.')),
                ('remote_address', models.GenericIPAddressField(blank=True, null=True)),
                ('opened_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('dapp', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sockets', to='wallets.dapp')),
                ('token', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sockets', to='wallets.dapptoken')),
            ],
            options={
                'ordering': ['opened_at', 'name'],
            },
        ),
        migrations.CreateModel(
            name='Pairing',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('web', 'web page'), ('app', 'program')], max_length=3)),
                ('ident', models.CharField(max_length=300, verbose_name='identity')),
                ('label', models.CharField(blank=True, max_length=60)),
                ('digest', models.CharField(editable=False, help_text='Hex SHA-256 of the code.', max_length=64, unique=True)),
                ('challenge', models.CharField(blank=True, editable=False, max_length=43)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Session',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('stored_scopes', models.JSONField(db_column='scopes', default=list, help_text='The granted scopes. Empty: there is no session.', verbose_name='scopes')),
                ('version', models.PositiveBigIntegerField(default=0, help_text='Number of changes, by which stale copies are detected.')),
                ('changed_by', models.CharField(blank=True, help_text='Id of the socket whose call made the last change. Empty: the wallet.', max_length=36)),
                ('changed_at', models.DateTimeField(blank=True, null=True)),
                ('expires_at', models.DateTimeField(blank=True, db_index=True, null=True)),
                ('dapp', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='session', to='wallets.dapp')),
            ],
        ),
        migrations.AddIndex(
            model_name='account',
            index=models.Index(fields=['address'], name='wallet_account_by_address'),
        ),
        migrations.AddConstraint(
            model_name='account',
            constraint=models.UniqueConstraint(fields=('user', 'namespace', 'address'), name='wallet_account_once', violation_error_message='You already have this account.'),
        ),
        migrations.AddConstraint(
            model_name='blockeddapp',
            constraint=models.UniqueConstraint(fields=('kind', 'ident'), name='wallet_blocked_dapp_once', violation_error_message='The dapp is already blocked.'),
        ),
        migrations.AddIndex(
            model_name='dapp',
            index=models.Index(fields=['ident', 'kind'], name='wallet_dapp_by_ident'),
        ),
        migrations.AddIndex(
            model_name='dapp',
            index=models.Index(django.db.models.functions.text.Upper('label'), condition=models.Q(('label', ''), _negated=True), name='wallet_dapp_by_label'),
        ),
        migrations.AddConstraint(
            model_name='dapp',
            constraint=models.UniqueConstraint(fields=('user', 'kind', 'ident'), name='wallet_dapp_once'),
        ),
        migrations.AddIndex(
            model_name='consentrequest',
            index=models.Index(condition=models.Q(('state', 'pending')), fields=['socket'], name='wallet_pending_by_socket'),
        ),
        migrations.AddIndex(
            model_name='consentrequest',
            index=models.Index(fields=['state', '-id'], name='wallet_request_by_state'),
        ),
        migrations.AddConstraint(
            model_name='consentrequest',
            constraint=models.UniqueConstraint(condition=models.Q(('method', 'wallet_createSession'), ('state', 'pending')), fields=('dapp',), name='wallet_one_pending_session'),
        ),
        migrations.AddIndex(
            model_name='activity',
            index=models.Index(fields=['user', '-id'], name='wallet_log_of_user'),
        ),
        migrations.AddIndex(
            model_name='activity',
            index=models.Index(fields=['event', '-id'], name='wallet_log_by_event'),
        ),
        migrations.AddIndex(
            model_name='activity',
            index=models.Index(fields=['at', 'event'], name='wallet_log_by_time'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(condition=models.Q(('stored_scopes', []), _negated=True), fields=['id'], name='wallet_session_granted'),
        ),
        migrations.RunSQL(_USERS),
    ]
