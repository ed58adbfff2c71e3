"""The sample chain of `make run`, after an upgrade to a version with another one."""

from __future__ import annotations

import pytest

from config.demo import remove_earlier_chain
from keys.models import User
from keys.services import issue_key
from networks.models import Network
from nodeapi.models import Block
from tests.support import chains, sample

pytestmark = pytest.mark.django_db(transaction=True)

BLOCKS = 12


def test_an_earlier_sample_chain_is_replaced_and_its_network_kept() -> None:
    for slug in ("sample", "other"):
        chains.import_blocks(
            slug, sample.earlier_genesis(), sample.earlier_raw_blocks(BLOCKS)
        )
    network = Network.objects.get(slug="sample")
    owner = User.objects.create_user("owner@example.org")
    key = issue_key(owner=owner, name="one", networks=[network], may_trace=True).api_key
    other = chains.rows("other")

    remove_earlier_chain(sample.genesis())
    assert not Block.objects.filter(network=network).exists()
    chains.import_blocks("sample", sample.genesis(), sample.raw_blocks()[:3])
    remove_earlier_chain(sample.genesis())
    assert chains.audit_all("sample") == 4
    assert list(key.networks.all()) == [network]
    assert key.entitlements.filter(network=network).exists()
    assert chains.rows("other") == other


def test_another_chain_in_the_sample_network_is_kept() -> None:
    genesis = sample.genesis() | {"extraData": "0x6f776e"}
    chains.import_blocks("sample", genesis, [])
    own = chains.rows("sample")
    remove_earlier_chain(sample.genesis())
    assert chains.rows("sample") == own
