"""Old entries are deleted, in batches; streams keep their numbers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models import F

from outbox import pruning
from outbox.append import append
from outbox.models import Entry, Stream
from outbox.pruning import KEEP, prune

pytestmark = pytest.mark.django_db(transaction=True)


def test_old_entries_are_deleted_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "AT_ONCE", 3)
    with transaction.atomic():
        for number in range(10):
            append("s", str(number))
    old = Entry.objects.filter(number__lte=8)
    old.update(created_at=F("created_at") - KEEP - timedelta(seconds=1))
    assert prune() == 8
    assert prune() == 0
    assert list(Entry.objects.values_list("number", flat=True)) == [9, 10]
    assert Stream.objects.get().last_number == 10


def test_command_reports_the_number_of_entries(capsys: Any) -> None:
    append("s", "a")
    call_command("prune_outbox")
    call_command("prune_outbox", "--keep", "0")
    assert capsys.readouterr().out == "Deleted 0 entries.\nDeleted 1 entries.\n"
    with pytest.raises(CommandError, match="must be 0 or more"):
        call_command("prune_outbox", "--keep", "-1")
