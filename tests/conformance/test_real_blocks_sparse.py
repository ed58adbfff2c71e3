"""Real blocks are imported on a checkpoint, from a node that only sends their witness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evm.blocks import Block as EvmBlock
from evm.blocks import encode_block, encode_body
from evm.headers import Header, decode_header
from networks.models import Network
from networks.services import Checkpoint, create_network
from nodeapi.models import AccountVersion, Block, TransactionRecord
from tests.support import real_blocks
from tests.support.sparse import sparse_importer

pytestmark = pytest.mark.django_db(transaction=True)


PATHS = [path for path in real_blocks.paths() if path.name.startswith("hoodi-")]
"""Of the blocks since Cancun, only these have their parent's header and all code."""


@pytest.mark.skipif(not PATHS, reason=f"no blocks in {real_blocks.folder()}")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name.split(".")[0])
def test_a_real_block_is_imported_from_its_witness(path: Path) -> None:
    data, real = real_blocks.read(path), real_blocks.load(path)
    block = real.origin.block
    network = make_network(data, decode_header(bytes.fromhex(data["parent"])))
    witness = {
        "state": [f"0x{node}" for node in data["nodes"]],
        "codes": [f"0x{code.hex()}" for code in real_blocks.codes_of(data).values()],
        "headers": [],
        "keys": None,
    }
    methods = {"debug_executionWitness": lambda _block: witness}
    with sparse_importer(network.slug, methods) as importer:
        assert importer.add(encode_block(block)) is not None
    network.refresh_from_db()
    assert bytes(network.head_hash or b"") == block.header.hash
    records = TransactionRecord.objects.filter(block__hash=block.header.hash)
    assert records.count() == len(block.transactions)
    number = block.header.number
    assert AccountVersion.objects.filter(block_number=number).exists()


def make_network(data: dict[str, Any], parent: Header) -> Network:
    """Create a network whose head and checkpoint is the parent of a block.

    The hashes of further ancestors are stored as far as they are known.
    """
    config = real_blocks.genesis_config(data["network"])
    network = create_network(
        slug="real",
        name="real",
        chain_id=config["config"]["chainId"],
        genesis=config,
        genesis_hash=bytes(32),
        checkpoint=Checkpoint(parent.number, parent.hash),
    )
    names = {int(n): bytes.fromhex(h) for n, h in data["ancestors"].items()}
    names[parent.number] = parent.hash
    for number in range(min(names), parent.number + 1):
        before = names.get(number - 1, (number - 1).to_bytes(32))
        Block.objects.create(
            network=network,
            hash=names.get(number, number.to_bytes(32)),
            number=number,
            parent_hash=before,
            is_canonical=True,
            total_difficulty=10**24,
            state_root=parent.state_root,
            gas_used=0,
            transaction_count=0,
            header=parent.encode(),
            body=encode_body(EvmBlock(parent, [], [], [])),
            document=b"{}",
            transactions_offset=0,
            full_document=b"",
        )
    Network.objects.filter(pk=network.pk).update(
        head_number=parent.number, head_hash=parent.hash
    )
    return network
