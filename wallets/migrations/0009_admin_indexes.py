"""What staff's lists, filters and searches look into, made while the service goes on."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models.functions import Upper

from networks.migration_operations import AddIndexWhileServing


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("wallets", "0008_token_defaults")]

    operations = [
        AddIndexWhileServing(
            model_name="account",
            index=models.Index(fields=["address"], name="wallet_account_by_address"),
        ),
        AddIndexWhileServing(
            model_name="activity",
            index=models.Index(fields=["event", "-id"], name="wallet_log_by_event"),
        ),
        AddIndexWhileServing(
            model_name="consentrequest",
            index=models.Index(fields=["state", "-id"], name="wallet_request_by_state"),
        ),
        AddIndexWhileServing(
            model_name="dapp",
            index=models.Index(fields=["ident", "kind"], name="wallet_dapp_by_ident"),
        ),
        AddIndexWhileServing(
            model_name="dapp",
            index=models.Index(
                Upper("label"),
                condition=~models.Q(label=""),
                name="wallet_dapp_by_label",
            ),
        ),
        AddIndexWhileServing(
            model_name="session",
            index=models.Index(
                condition=~models.Q(stored_scopes=[]),
                fields=["id"],
                name="wallet_session_granted",
            ),
        ),
    ]
