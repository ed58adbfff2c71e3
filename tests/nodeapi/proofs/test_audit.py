"""`audit_state` of a sparse network: sampled rows against fresh proofs."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from tests.nodeapi.proofs.pair import SPARSE, running_pair

pytestmark = pytest.mark.django_db(transaction=True)


def audit() -> str:
    out = StringIO()
    call_command("audit_state", network=SPARSE, sample=60, stdout=out)
    return out.getvalue()


def change_all(table: str, column: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE nodeapi_{table} SET {column} WHERE network_id ="
            " (SELECT id FROM networks_network WHERE slug = %s)",
            [SPARSE],
        )


def test_rows_are_compared_with_proofs() -> None:
    with running_pair() as pair:
        assert "all rows are correct" in audit()
        with pytest.raises(CommandError, match="started at a checkpoint"):
            call_command("audit_state", network=SPARSE, block=90)
        change_all("storageversion", "value = '\\x05'")
        with pytest.raises(CommandError, match="the row of slot 0x"):
            audit()
        change_all("accountversion", "balance = balance + 1")
        with pytest.raises(CommandError, match="the row of 0x"):
            audit()
        pair.upstream.lowest = 10**6
        with pytest.raises(CommandError, match="no upstream proves"):
            audit()
