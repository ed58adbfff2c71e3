import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


_OUTCOMES = [('ok', 'answered'), ('client_error', 'wrong request'), ('denied', 'not granted'), ('limited', 'over a limit'), ('server_error', 'failed here'), ('timeout', 'took too long')]
_SPANS = [(60, 'Minute'), (3600, 'Hour'), (86400, 'Day')]

_ADD_UP = """
INSERT INTO keys_usagetotal (span, start, network_id, method, outcome, calls, credits,
    duration_us, bytes_out, latencies)
SELECT span, start, network_id, method, outcome, sum(calls), sum(credits),
    sum(duration_us), sum(bytes_out), keys_sum(latencies)
FROM keys_usagebucket GROUP BY 1, 2, 3, 4, 5;

INSERT INTO keys_dailyuse (day, api_key_id, calls, failed, credits)
SELECT (start AT TIME ZONE 'UTC')::date, api_key_id, sum(calls),
    coalesce(sum(calls) FILTER (WHERE outcome <> 'ok'), 0), sum(credits)
FROM keys_usagebucket GROUP BY 1, 2;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('keys', '0010_account_mails'),
        ('networks', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='UsageTotal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('method', models.CharField(max_length=100)),
                ('outcome', models.CharField(choices=_OUTCOMES, max_length=16)),
                ('span', models.IntegerField(choices=_SPANS)),
                ('start', models.DateTimeField()),
                ('calls', models.BigIntegerField()),
                ('credits', models.BigIntegerField()),
                ('duration_us', models.BigIntegerField(help_text='Microseconds of all calls.')),
                ('bytes_out', models.BigIntegerField(help_text='Total size of all answers.')),
                ('latencies', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), help_text='Calls of less than 1, 2, 4, 8 … µs; see keys.latencies.', size=None)),
                ('network', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('span', 'start', 'network', 'method', 'outcome'), name='usage_total_once')],
            },
        ),
        migrations.CreateModel(
            name='DailyUse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('calls', models.BigIntegerField()),
                ('failed', models.BigIntegerField(help_text='Calls that were not answered.')),
                ('credits', models.BigIntegerField()),
                ('api_key', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='keys.apikey')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('day', 'api_key'), name='daily_use_once')],
            },
        ),
        migrations.AlterField(
            model_name='usagebucket',
            name='api_key',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='usage', to='keys.apikey'),
        ),
        migrations.AlterField(
            model_name='usagebucket',
            name='network',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network'),
        ),
        migrations.RunSQL(_ADD_UP, migrations.RunSQL.noop),
    ]
