"""Remove the tables of blocks that an index lacked.

Such blocks were imported before the index existed. `config.E003` refuses a database that
has some.
"""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('nodeapi', '0002_access_lists'),
    ]

    operations = [
        migrations.DeleteModel(name='AppearanceBackfill'),
        migrations.DeleteModel(name='LogBackfill'),
    ]
