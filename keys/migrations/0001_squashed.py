"""Create the tables of users, API keys, limits and usage."""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import networks.models
from django.conf import settings
from django.db import migrations, models


_HISTORY = """
CREATE FUNCTION keys_event_stays() RETURNS trigger AS $$
BEGIN
    RAISE integrity_constraint_violation USING
        MESSAGE = 'events of keys are neither changed nor deleted',
        CONSTRAINT = 'event_stays';
END
$$ LANGUAGE plpgsql;

CREATE TRIGGER event_stays BEFORE UPDATE OR DELETE ON keys_keyevent
    FOR EACH ROW EXECUTE FUNCTION keys_event_stays();

CREATE TRIGGER event_stays BEFORE UPDATE OR DELETE ON keys_memberevent
    FOR EACH ROW EXECUTE FUNCTION keys_event_stays();

CREATE UNIQUE INDEX late_use_once_a_day
    ON keys_keyevent ((data ->> 'version'), ((at AT TIME ZONE 'UTC')::date))
    WHERE type = 'key.used_after_revocation';

CREATE FUNCTION keys_revocation_stays() RETURNS trigger AS $$
BEGIN
    RAISE integrity_constraint_violation USING
        MESSAGE = 'a revocation is final',
        CONSTRAINT = 'revocation_stays';
END
$$ LANGUAGE plpgsql;

CREATE TRIGGER revocation_stays BEFORE UPDATE OF revoked_at ON keys_keyversion
    FOR EACH ROW
    WHEN (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at)
    EXECUTE FUNCTION keys_revocation_stays();
"""
"""Events and revocations are final, and a revoked secret is reported once a day."""

_USAGE = """
CREATE FUNCTION keys_add(a int8[], b int8[]) RETURNS int8[] AS $$
    SELECT ARRAY(SELECT coalesce(x, 0) + coalesce(y, 0)
        FROM unnest(a, b) WITH ORDINALITY AS t (x, y, i) ORDER BY i)
$$ LANGUAGE sql IMMUTABLE PARALLEL SAFE;

CREATE AGGREGATE keys_sum(int8[]) (
    SFUNC = keys_add, STYPE = int8[], INITCOND = '{}', PARALLEL = SAFE);

ALTER TABLE keys_usagebucket SET (fillfactor = 85);
ALTER TABLE keys_usagetotal SET (fillfactor = 85);
"""
"""Arrays of numbers are added element by element. Rows of the current day are updated every
five seconds; free space keeps these updates in their page."""


def add_plans(apps, schema_editor):
    """Create three plans, which staff can change."""
    create = apps.get_model('keys', 'Plan').objects.get_or_create
    create(slug='free', defaults={
        'name': 'Free', 'is_default': True,
        'credits_per_second': 500, 'burst': 1000, 'credits_per_day': 3_000_000,
    })
    create(slug='growth', defaults={
        'name': 'Growth',
        'credits_per_second': 4000, 'burst': 8000, 'credits_per_day': 15_000_000,
    })
    create(slug='custom', defaults={'name': 'Custom'})


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('keys', '0001_initial'),
        ('keys', '0002_entitlement'),
        ('keys', '0003_remove_apikey_may_trace'),
        ('keys', '0004_lifecycle'),
        ('keys', '0005_allowlists'),
        ('keys', '0006_access_requests'),
        ('keys', '0007_usage_and_plans'),
        ('keys', '0008_staff'),
        ('keys', '0009_api_tokens'),
        ('keys', '0010_account_mails'),
        ('keys', '0011_usage_totals'),
        ('keys', '0012_refusals'),
        ('keys', '0013_admin_indexes'),
        ('keys', '0014_last_network'),
        ('keys', '0015_state_indexes'),
        ('keys', '0016_usage_tiers'),
        ('keys', '0017_opcode_tracers'),
        ('keys', '0018_members'),
        ('keys', '0020_keys_issued_by_staff'),
        ('keys', '0021_key_failures'),
        ('keys', '0022_notices'),
        ('keys', '0023_busiest_keys'),
        ('keys', '0024_limits_in_words'),
        ('keys', '0025_wording'),
        ('keys', '0026_plain_help_texts'),
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('networks', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(blank=True, max_length=100)),
                ('is_enabled', models.BooleanField(default=True, help_text='A disabled key can be enabled again. Revoking is permanent.')),
                ('expires_at', models.DateTimeField(blank=True, help_text='Expiry of all secrets of the key. Empty: they do not expire.', null=True)),
                ('staff_note', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('is_issued_by_staff', models.BooleanField(db_default=False, default=False, editable=False, help_text='Whether the key does not count towards KEYS_PER_CUSTOMER.')),
                ('deleted_at', models.DateTimeField(editable=False, help_text='When the key was deleted. Its events and usage are kept.', null=True)),
            ],
            options={
                'verbose_name': 'API key',
                'ordering': ['-id'],
                'permissions': [('disable_apikey', 'Can disable and enable API keys')],
            },
        ),
        migrations.CreateModel(
            name='KeyVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(editable=False, help_text='Hex SHA-256 of the secret.', max_length=64, unique=True)),
                ('hint', models.CharField(editable=False, help_text='First seven and last four characters.', max_length=12)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('revoke_reason', models.CharField(blank=True, max_length=200)),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='NoticeCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('checked_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('email', models.EmailField(max_length=254, unique=True, verbose_name='email address')),
                ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                ('muted_notices', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('quota', "80 % and 100 % of a key's daily quota are used"), ('expiry', 'A key expires in 7 days, and in 1 day'), ('secrets', 'Support revokes or rolls a secret, or deletes a key'), ('tracing', 'Tracing is granted, declined, or about to expire')], max_length=16), blank=True, db_default=[], default=list, editable=False, help_text='Kinds of emails about keys that the user does not want.', size=None)),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'verbose_name': 'user',
                'verbose_name_plural': 'users',
            },
        ),
        migrations.CreateModel(
            name='AccountMail',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.CharField(max_length=254)),
                ('ip', models.GenericIPAddressField(help_text='The client address; the /64 network for IPv6.', null=True)),
                ('at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('used_at', models.DateTimeField(help_text='When the link was used to sign up.', null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['email', 'at'], name='account_mail_to_email'), models.Index(fields=['ip', 'at'], name='account_mail_from_ip')],
            },
        ),
        migrations.CreateModel(
            name='KeyFailures',
            fields=[
                ('api_key', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='failures', serialize=False, to='keys.apikey')),
                ('latest', models.JSONField(default=list, help_text='[Unix seconds, network id, method, code, reason or error class].')),
                ('unknown_methods', models.JSONField(default=dict, help_text='Name → [calls, Unix seconds of the last one].')),
            ],
            options={
                'verbose_name_plural': 'key failures',
            },
        ),
        migrations.CreateModel(
            name='KeyLimits',
            fields=[
                ('credits_per_second', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000000)])),
                ('burst', models.PositiveIntegerField(blank=True, help_text='Credits that can be spent at once. Empty: twice the credits per second.', null=True, validators=[django.core.validators.MinValueValidator(100), django.core.validators.MaxValueValidator(1000000000)])),
                ('credits_per_day', models.PositiveBigIntegerField(blank=True, help_text='Resets at 00:00 UTC.', null=True, validators=[django.core.validators.MinValueValidator(1)])),
                ('api_key', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='limits', serialize=False, to='keys.apikey')),
            ],
            options={
                'verbose_name_plural': 'limits',
                'abstract': False,
            },
        ),
        migrations.AddField(
            model_name='apikey',
            name='created_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='apikey',
            name='networks',
            field=models.ManyToManyField(blank=True, help_text='Networks for which the key is valid. Select none for all networks.', related_name='api_keys', to='networks.network'),
        ),
        migrations.AddField(
            model_name='apikey',
            name='owner',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='api_keys', to=settings.AUTH_USER_MODEL),
        ),
        migrations.CreateModel(
            name='AllowlistEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('origin', 'origin'), ('user_agent', 'user agent'), ('ip', 'IP address'), ('method', 'method'), ('contract', 'contract address')], max_length=16)),
                ('value', models.CharField(max_length=200)),
                ('api_key', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='allowlist', to='keys.apikey')),
            ],
            options={
                'ordering': ['kind', 'id'],
            },
        ),
        migrations.CreateModel(
            name='AccessRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tracers', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=networks.models.tracer_choices, max_length=32), blank=True, default=list, help_text='Empty: all tracers that the network offers.', size=None)),
                ('reason', models.TextField(help_text='What the customer needs tracing for.', validators=[django.core.validators.MaxLengthValidator(1000)])),
                ('requested_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('status', models.CharField(choices=[('pending', 'pending'), ('approved', 'approved'), ('declined', 'declined'), ('withdrawn', 'withdrawn by the customer')], default='pending', max_length=16)),
                ('decided_at', models.DateTimeField(blank=True, null=True)),
                ('answer', models.CharField(blank=True, help_text='A message for the customer.', max_length=500)),
                ('expires_at', models.DateTimeField(blank=True, help_text='Expiry of the entitlement. Empty: it does not expire.', null=True)),
                ('decided_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('network', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
                ('requested_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('api_key', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='access_requests', to='keys.apikey')),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='The program that uses the token.', max_length=100)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('customers:read', 'read customers'), ('customers:write', 'create customers, activate and deactivate them'), ('keys:read', 'read keys with hints, allowlists, entitlements and limits, and requests for access'), ('keys:write', 'issue, change, roll, revoke and delete keys'), ('limits:write', 'change plans, and the limits of keys'), ('entitlements:write', 'grant and withdraw tracing, decide requests for access'), ('usage:read', 'read usage'), ('events:read', 'read the audit log of keys')], max_length=32), size=None)),
                ('digest', models.CharField(editable=False, help_text='Hex SHA-256 of the token.', max_length=64, unique=True)),
                ('hint', models.CharField(editable=False, help_text='First seven and last four characters.', max_length=12)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, help_text='Empty: it does not expire.', null=True)),
                ('revoked_at', models.DateTimeField(editable=False, null=True)),
                ('last_used_at', models.DateTimeField(editable=False, help_text='Accurate to a minute.', null=True)),
                ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'API token',
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='DailyUse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('calls', models.BigIntegerField()),
                ('failed', models.BigIntegerField(help_text='Calls with another outcome than success.')),
                ('credits', models.BigIntegerField()),
                ('api_key', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='keys.apikey')),
            ],
        ),
        migrations.CreateModel(
            name='Entitlement',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('capability', models.CharField(choices=[('trace', 'tracing')], default='trace', max_length=32)),
                ('tracers', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=networks.models.tracer_choices, max_length=32), blank=True, default=list, help_text='Select none for all tracers that the network offers.', size=None)),
                ('expires_at', models.DateTimeField(blank=True, help_text='Empty: it does not expire.', null=True)),
                ('note', models.CharField(blank=True, help_text='Why it was granted. Visible to staff only.', max_length=200)),
                ('granted_at', models.DateTimeField(editable=False, help_text='When these terms were set.')),
                ('api_key', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entitlements', to='keys.apikey')),
                ('granted_by', models.ForeignKey(blank=True, editable=False, help_text='The user who set these terms. Empty: the command line.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('network', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
            options={
                'ordering': ['api_key', 'network', 'capability'],
                'permissions': [('grant_entitlement', 'Can grant tracing, and withdraw it')],
            },
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.EmailField(max_length=254, verbose_name='email address')),
                ('role', models.CharField(choices=[('owner', 'owner'), ('developer', 'developer'), ('viewer', 'viewer')], max_length=16)),
                ('digest', models.CharField(editable=False, help_text='Hex SHA-256 of the token in the emailed link.', max_length=64, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField()),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to=settings.AUTH_USER_MODEL)),
                ('invited_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='KeyEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('type', models.CharField(choices=[('key.created', 'created'), ('key.revealed', 'secret revealed'), ('key.updated', 'updated'), ('key.annotated', 'staff note changed'), ('key.rolled', 'rolled'), ('key.revoked', 'secret revoked'), ('key.disabled', 'disabled'), ('key.enabled', 'enabled'), ('key.deleted', 'deleted'), ('owner.disabled', "owner's account disabled"), ('owner.enabled', "owner's account enabled"), ('entitlement.granted', 'entitlement granted'), ('entitlement.changed', 'entitlement changed'), ('entitlement.revoked', 'entitlement withdrawn'), ('limits.changed', 'limits changed'), ('allowlist.changed', 'allowlist changed'), ('access.requested', 'access requested'), ('access.approved', 'access approved'), ('access.declined', 'access declined'), ('access.withdrawn', 'request for access withdrawn'), ('key.used_after_revocation', 'used after its revocation')], max_length=32)),
                ('actor_ip', models.GenericIPAddressField(blank=True, null=True)),
                ('actor_role', models.CharField(blank=True, choices=[('owner', 'owner'), ('developer', 'developer'), ('viewer', 'viewer')], db_default='', default='', help_text="The actor's role at that time, if they acted for the account of another user. Empty: their own account, or not a member.", max_length=16)),
                ('data', models.JSONField(blank=True, default=dict, help_text='The changed values, without secrets.')),
                ('actor', models.ForeignKey(blank=True, help_text='Empty: the command line, or the service itself.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('api_key', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='events', to='keys.apikey')),
                ('token', models.ForeignKey(blank=True, db_index=False, help_text='The API token with which the change was made. Empty: made without a token.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='keys.apitoken')),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='KeyVersionUse',
            fields=[
                ('version', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='use', serialize=False, to='keys.keyversion')),
                ('last_used_at', models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name='keyversion',
            name='api_key',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='keys.apikey'),
        ),
        migrations.AddField(
            model_name='keyversion',
            name='created_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='keyversion',
            name='revoked_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.CreateModel(
            name='LoginFailure',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.CharField(max_length=254)),
                ('ip', models.GenericIPAddressField(null=True)),
                ('at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
            ],
            options={
                'indexes': [models.Index(fields=['email', 'at'], name='login_failure_of_email'), models.Index(fields=['ip', 'at'], name='login_failure_from_ip')],
            },
        ),
        migrations.CreateModel(
            name='MemberEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('type', models.CharField(choices=[('member.invited', 'invited'), ('member.invitation_withdrawn', 'invitation withdrawn'), ('member.joined', 'joined'), ('member.role_changed', 'role changed'), ('member.removed', 'removed'), ('member.left', 'left')], max_length=32)),
                ('actor_ip', models.GenericIPAddressField(blank=True, null=True)),
                ('email', models.CharField(blank=True, help_text='The invited email address.', max_length=254)),
                ('role', models.CharField(choices=[('owner', 'owner'), ('developer', 'developer'), ('viewer', 'viewer')], max_length=16)),
                ('former_role', models.CharField(blank=True, choices=[('owner', 'owner'), ('developer', 'developer'), ('viewer', 'viewer')], max_length=16)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='member_events', to=settings.AUTH_USER_MODEL)),
                ('actor', models.ForeignKey(blank=True, help_text='Empty: the command line, or the service itself.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('member', models.ForeignKey(blank=True, db_index=False, help_text='The member who was changed. Empty: an invited person without an account.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('owner', 'owner'), ('developer', 'developer'), ('viewer', 'viewer')], max_length=16)),
                ('joined_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='members', to=settings.AUTH_USER_MODEL)),
                ('member', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('quota', "80 % and 100 % of a key's daily quota are used"), ('expiry', 'A key expires in 7 days, and in 1 day'), ('secrets', 'Support revokes or rolls a secret, or deletes a key'), ('tracing', 'Tracing is granted, declined, or about to expire')], max_length=16)),
                ('mark', models.CharField(help_text='The occasion, such as a day and a percentage. There is one email for each occasion.', max_length=100)),
                ('subject', models.CharField(max_length=200)),
                ('text', models.TextField()),
                ('created_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('until', models.DateTimeField(help_text='It is not sent after this time.')),
                ('sent_at', models.DateTimeField(null=True)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_at', models.DateTimeField(default=django.utils.timezone.now, help_text='It is not sent before this time.')),
                ('api_key', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='notices', to='keys.apikey')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notices', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Plan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('credits_per_second', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000000)])),
                ('burst', models.PositiveIntegerField(blank=True, help_text='Credits that can be spent at once. Empty: twice the credits per second.', null=True, validators=[django.core.validators.MinValueValidator(100), django.core.validators.MaxValueValidator(1000000000)])),
                ('credits_per_day', models.PositiveBigIntegerField(blank=True, help_text='Resets at 00:00 UTC.', null=True, validators=[django.core.validators.MinValueValidator(1)])),
                ('slug', models.SlugField(unique=True)),
                ('name', models.CharField(max_length=100)),
                ('is_default', models.BooleanField(default=False, help_text='Applies to keys without a plan.')),
            ],
            options={
                'ordering': ['credits_per_second'],
                'abstract': False,
                'constraints': [models.CheckConstraint(condition=models.Q(('credits_per_second', None), ('credits_per_second__range', (1, 1000000)), _connector='OR'), name='plan_rate'), models.CheckConstraint(condition=models.Q(('burst', None), ('burst__range', (100, 1000000000)), _connector='OR'), name='plan_burst'), models.CheckConstraint(condition=models.Q(('credits_per_day', None), ('credits_per_day__gte', 1), _connector='OR'), name='plan_day'), models.UniqueConstraint(condition=models.Q(('is_default', True)), fields=('is_default',), name='plan_one_default', violation_error_message='Another plan is the default. Unset it there first.')],
            },
        ),
        migrations.CreateModel(
            name='Refusal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.CharField(help_text='As in `data.reason`.', max_length=64)),
                ('method', models.CharField(blank=True, help_text='The method of the last call. Empty: all methods are rejected.', max_length=100)),
                ('last_at', models.DateTimeField()),
                ('calls', models.BigIntegerField(help_text='Number of calls on the day (UTC) of the last one.')),
                ('api_key', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='refusals', to='keys.apikey')),
                ('network', models.ForeignKey(help_text='None: the key itself was rejected, on all networks.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
            options={
                'verbose_name': 'rejection',
                'ordering': ['-last_at'],
            },
        ),
        migrations.CreateModel(
            name='RepeatedRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=255)),
                ('fingerprint', models.CharField(help_text='Hex SHA-256 of method, path and body.', max_length=64)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('body', models.JSONField(null=True)),
                ('at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('token', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='keys.apitoken')),
            ],
        ),
        migrations.CreateModel(
            name='UsageBucket',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('method', models.CharField(max_length=100)),
                ('outcome', models.CharField(choices=[('ok', 'success'), ('client_error', 'client error'), ('denied', 'denied'), ('limited', 'rate limited'), ('server_error', 'server error'), ('timeout', 'timeout')], max_length=16)),
                ('span', models.IntegerField(choices=[(60, 'Minute'), (3600, 'Hour'), (86400, 'Day')])),
                ('start', models.DateTimeField()),
                ('calls', models.BigIntegerField()),
                ('credits', models.BigIntegerField()),
                ('duration_us', models.BigIntegerField(help_text='Total duration of the calls in microseconds.')),
                ('bytes_out', models.BigIntegerField(help_text='Total size of the responses in bytes.')),
                ('latencies', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), help_text='Number of calls that took less than 1, 2, 4, 8 … µs.', size=None)),
                ('api_key', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='usage', to='keys.apikey')),
                ('network', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
            options={
                'verbose_name': 'usage row',
            },
        ),
        migrations.CreateModel(
            name='UsageTotal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('method', models.CharField(max_length=100)),
                ('outcome', models.CharField(choices=[('ok', 'success'), ('client_error', 'client error'), ('denied', 'denied'), ('limited', 'rate limited'), ('server_error', 'server error'), ('timeout', 'timeout')], max_length=16)),
                ('span', models.IntegerField(choices=[(60, 'Minute'), (3600, 'Hour'), (86400, 'Day')])),
                ('start', models.DateTimeField()),
                ('calls', models.BigIntegerField()),
                ('credits', models.BigIntegerField()),
                ('duration_us', models.BigIntegerField(help_text='Total duration of the calls in microseconds.')),
                ('bytes_out', models.BigIntegerField(help_text='Total size of the responses in bytes.')),
                ('latencies', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), help_text='Number of calls that took less than 1, 2, 4, 8 … µs.', size=None)),
                ('network', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
        ),
        migrations.AddIndex(
            model_name='user',
            index=models.Index(condition=models.Q(('is_active', False)), fields=['id'], name='user_inactive'),
        ),
        migrations.AddField(
            model_name='keylimits',
            name='plan',
            field=models.ForeignKey(blank=True, help_text='Empty: the default plan.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='keys.plan'),
        ),
        migrations.AddIndex(
            model_name='apikey',
            index=models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['expires_at'], name='key_by_expiry'),
        ),
        migrations.AddIndex(
            model_name='apikey',
            index=models.Index(condition=models.Q(('is_enabled', False)), fields=['id'], name='key_disabled'),
        ),
        migrations.AddConstraint(
            model_name='allowlistentry',
            constraint=models.UniqueConstraint(fields=('api_key', 'kind', 'value'), name='allowlist_entry_once', violation_error_message='The allowlist already has this entry.'),
        ),
        migrations.AddIndex(
            model_name='accessrequest',
            index=models.Index(fields=['status', '-id'], name='access_by_status'),
        ),
        migrations.AddConstraint(
            model_name='accessrequest',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'pending')), fields=('api_key', 'network'), name='access_asked_once', violation_error_message='The key already has a pending request for this network.'),
        ),
        migrations.AddIndex(
            model_name='dailyuse',
            index=models.Index(fields=['day', '-credits'], name='daily_use_busiest'),
        ),
        migrations.AddConstraint(
            model_name='dailyuse',
            constraint=models.UniqueConstraint(fields=('day', 'api_key'), name='daily_use_once'),
        ),
        migrations.AddConstraint(
            model_name='entitlement',
            constraint=models.UniqueConstraint(fields=('api_key', 'network', 'capability'), name='entitlement_once', violation_error_message='The key already has an entitlement for this network.'),
        ),
        migrations.AddConstraint(
            model_name='invitation',
            constraint=models.UniqueConstraint(fields=('account', 'email'), name='invited_once'),
        ),
        migrations.AddIndex(
            model_name='keyevent',
            index=models.Index(fields=['api_key', '-id'], name='event_of_key'),
        ),
        migrations.AddIndex(
            model_name='keyevent',
            index=models.Index(fields=['type', '-id'], name='event_by_type'),
        ),
        migrations.AddField(
            model_name='keyversionuse',
            name='last_network',
            field=models.ForeignKey(db_index=False, help_text='The network of the last use. None: it was deleted.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='networks.network'),
        ),
        migrations.AddIndex(
            model_name='keyversion',
            index=models.Index(fields=['hint'], name='version_by_hint'),
        ),
        migrations.AddIndex(
            model_name='keyversion',
            index=models.Index(condition=models.Q(('expires_at__isnull', False), ('revoked_at', None)), fields=['expires_at'], name='version_by_expiry'),
        ),
        migrations.AddIndex(
            model_name='keyversion',
            index=models.Index(condition=models.Q(('revoked_at__isnull', False)), fields=['api_key'], name='version_revoked'),
        ),
        migrations.AddIndex(
            model_name='memberevent',
            index=models.Index(fields=['account', '-id'], name='member_event_of_account'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.UniqueConstraint(fields=('account', 'member'), name='member_once'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.CheckConstraint(condition=models.Q(('account', models.F('member')), _negated=True), name='member_of_another'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(condition=models.Q(('sent_at', None)), fields=['next_at'], name='notice_waiting'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(fields=['user', 'created_at'], name='notice_of_user'),
        ),
        migrations.AddConstraint(
            model_name='notice',
            constraint=models.UniqueConstraint(fields=('api_key', 'kind', 'mark', 'user'), name='notice_once'),
        ),
        migrations.AddConstraint(
            model_name='refusal',
            constraint=models.UniqueConstraint(fields=('api_key', 'network', 'reason'), name='refusal_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='repeatedrequest',
            constraint=models.UniqueConstraint(fields=('token', 'key'), name='request_once'),
        ),
        migrations.AddIndex(
            model_name='usagebucket',
            index=models.Index(fields=['span', 'start'], name='usage_by_age'),
        ),
        migrations.AddConstraint(
            model_name='usagebucket',
            constraint=models.UniqueConstraint(fields=('api_key', 'span', 'start', 'network', 'method', 'outcome'), name='usage_once'),
        ),
        migrations.AddConstraint(
            model_name='usagetotal',
            constraint=models.UniqueConstraint(fields=('span', 'start', 'network', 'method', 'outcome'), name='usage_total_once'),
        ),
        migrations.AddConstraint(
            model_name='keylimits',
            constraint=models.CheckConstraint(condition=models.Q(('credits_per_second', None), ('credits_per_second__range', (1, 1000000)), _connector='OR'), name='keylimits_rate'),
        ),
        migrations.AddConstraint(
            model_name='keylimits',
            constraint=models.CheckConstraint(condition=models.Q(('burst', None), ('burst__range', (100, 1000000000)), _connector='OR'), name='keylimits_burst'),
        ),
        migrations.AddConstraint(
            model_name='keylimits',
            constraint=models.CheckConstraint(condition=models.Q(('credits_per_day', None), ('credits_per_day__gte', 1), _connector='OR'), name='keylimits_day'),
        ),
        migrations.RunSQL(_HISTORY),
        migrations.RunSQL(_USAGE),
        migrations.RunPython(add_plans, migrations.RunPython.noop),
    ]
