from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('nodeapi', '0010_summarize_versions'),
    ]

    operations = [
        migrations.AddField(
            model_name='upstreamstatus',
            name='fork_warnings',
            field=models.TextField(blank=True, db_default='', default='', help_text='Differences of its fork schedule from ours, one a line.'),
        ),
        migrations.AddField(
            model_name='upstreamstatus',
            name='unsupported_fork_time',
            field=models.DecimalField(decimal_places=0, help_text='Unix time of the first fork that it schedules and we lack.', max_digits=20, null=True),
        ),
    ]
