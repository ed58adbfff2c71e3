from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('keys', '0002_entitlement'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='apikey',
            name='may_trace',
        ),
    ]
