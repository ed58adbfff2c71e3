from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('wallets', '0011_wording'),
    ]

    operations = [
        migrations.AlterField(
            model_name='activity',
            name='event',
            field=models.CharField(choices=[('paired', 'dapp connected'), ('asked', 'request made'), ('rejected', 'request rejected'), ('expired', 'request expired'), ('withdrawn', 'request withdrawn'), ('granted', 'session granted'), ('changed', 'session changed'), ('revoked', 'session ended'), ('session_expired', 'session expired'), ('disconnected', 'dapp disconnected'), ('blocked', 'dapp blocked'), ('unblocked', 'dapp unblocked'), ('account_added', 'account added'), ('account_removed', 'account removed'), ('key_added', 'key added'), ('key_saved', 'keystore downloaded'), ('key_locked', 'key locked after wrong passphrases'), ('key_deleted', 'key deleted'), ('signed', 'signature given'), ('not_sent', 'transaction failed')], max_length=16),
        ),
    ]
