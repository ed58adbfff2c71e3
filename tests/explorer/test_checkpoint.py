"""The pages of a network that has started at a checkpoint."""

from __future__ import annotations

import pytest
from django.test import Client

from evm.blocks import decode_block
from keys.models import User
from networks.services import finish_preparing
from tests.support import copies, sample
from tests.support.proved import start_at_checkpoint, trace_later

pytestmark = pytest.mark.django_db(transaction=True)


def test_pages_say_what_is_not_known(client: Client) -> None:
    copies.sample_chain("full")
    network = start_at_checkpoint("sparse", "full", sample.genesis(), 70, oldest=65)
    finish_preparing(network.pk)
    client.force_login(User.objects.create_superuser("staff@example.org"))

    def page(path: str) -> str:
        return client.get(f"/explore/sparse/{path}").content.decode()

    block = next(
        one for one in map(decode_block, sample.raw_blocks()[66:]) if one.transactions
    )
    transaction = block.transactions[0]
    shown = page(f"tx/0x{transaction.hash.hex()}")
    assert "was proved, not executed" in shown
    assert "too large" not in shown
    trace_later("sparse", "full", block.header.hash)
    shown = page(f"tx/0x{transaction.hash.hex()}")
    assert "was proved, not executed" not in shown
    assert "too large" not in shown
    shown = page(f"address/0x{transaction.sender.hex()}")
    assert "This account is not known yet" in shown
    assert "does not exist" not in shown
    assert "Blocks below 71 were not executed" in shown
    assert "The address appears" not in shown
    name = transaction.sender.hex()
    found = client.get(f"/explore/search?q=0x{name}").content.decode().lower()
    assert all(
        f"/explore/{slug}/address/0x{name}" in found for slug in ("full", "sparse")
    )
