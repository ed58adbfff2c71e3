"""`audit_block`: each block's state root, computed only from rows."""

from __future__ import annotations

import pytest

from tests.scenarios import SCENARIOS
from tests.support import chains, copies, sample

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_rows_of_a_generated_chain_give_every_state_root(name: str) -> None:
    genesis, blocks = SCENARIOS[name]()
    assert any(block.transactions for block in blocks)
    chains.import_blocks("net", genesis, blocks, batch_blocks=3)
    assert chains.audit_all("net") == len(blocks) + 1


def test_the_rows_of_the_sample_chain_give_every_state_root() -> None:
    copies.sample_chain()
    assert chains.audit_all("sample") == sample.head() + 1
