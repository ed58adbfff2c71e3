"""`audit_blocks`: stored blocks are executed again by py-evm and by our engine."""

from __future__ import annotations

import re

import pytest
from django.core.management import CommandError, call_command

from nodeapi.documents.receipt_codec import pack, unpack
from nodeapi.models import StorageVersion, TransactionRecord
from tests.scenarios import SCENARIOS
from tests.support import chains, copies, sample

pytestmark = pytest.mark.django_db(transaction=True)

ENGINES = ["own", "py-evm"]


def audit(blocks: str, engine: str, network: str = "sample") -> None:
    call_command(
        "audit_blocks",
        f"--network={network}",
        f"--blocks={blocks}",
        f"--engine={engine}",
    )


def refusal(blocks: str, engine: str, network: str = "sample") -> CommandError:
    with pytest.raises(CommandError) as refused:
        audit(blocks, engine, network)
    return refused.value


def test_our_engine_agrees_with_every_block(capsys: pytest.CaptureFixture[str]) -> None:
    copies.sample_chain()
    head = sample.head()
    audit(f"1-{head}", "own")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == head + 1
    assert lines[91] == "block 92: own agrees (osaka, 120 transactions, 4054848 gas)"
    assert lines[-1] == f"own agrees with blocks 1 to {head} of sample"


# py-evm takes seconds for the precompiled contracts in blocks 49 and 71.
@pytest.mark.parametrize("blocks", ["1-48", "50-70", "72-86"])
def test_py_evm_agrees_with_the_blocks_of_its_forks(
    blocks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    copies.sample_chain()
    audit(blocks, "py-evm")
    last = blocks.partition("-")[2]
    assert f"block {last}: py-evm agrees" in capsys.readouterr().out


@pytest.mark.parametrize("engine", ENGINES)
def test_the_ether_of_the_dao_moves(engine: str) -> None:
    genesis, blocks = SCENARIOS["dao_fork"]()
    chains.import_blocks("net", genesis, blocks)
    audit(f"1-{len(blocks)}", engine, "net")


def test_a_fork_after_prague_is_unknown_to_py_evm(
    capsys: pytest.CaptureFixture[str],
) -> None:
    copies.sample_chain()
    refused = refusal("86-88", "py-evm")
    assert str(refused) == "block 87 has the rules of osaka, and py-evm ends at prague"
    assert refused.returncode == 2
    assert "block 86: py-evm agrees" in capsys.readouterr().out


def test_a_blob_schedule_of_its_own_is_unknown_to_py_evm() -> None:
    genesis, blocks = SCENARIOS["withdrawals_cancun"]()
    genesis["config"]["blobSchedule"]["cancun"]["max"] = 7
    chains.import_blocks("net", genesis, blocks)
    audit("1", "own", "net")
    refused = refusal("1", "py-evm", "net")
    assert str(refused) == (
        "block 1 has rules that the network's config changes, and py-evm only has "
        "mainnet's cancun"
    )
    assert refused.returncode == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_changed_receipt_is_found(engine: str) -> None:
    copies.sample_chain()
    record = TransactionRecord.objects.get(block__number=22, index=3)
    receipt = unpack(bytes(record.receipt))
    found = re.search(rb'"cumulativeGasUsed":"0x(\w+)"', receipt)
    assert found is not None
    record.receipt = pack(receipt.replace(found[1], b"%x" % 7, 1))
    record.save()
    refused = refusal("21-23", engine)
    assert str(refused) == (
        "block 22: cumulative gas used of transaction 3 is 7, but executing gives "
        f"{int(found[1], 16)}"
    )
    assert refused.returncode == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_changed_slot_is_found(engine: str) -> None:
    """Block 70 only reads it."""
    copies.sample_chain()
    before = StorageVersion.objects.filter(slot=(2).to_bytes(32), block_number__lt=70)
    slot = before.latest("block_number")
    slot.value = b"\5"
    slot.save()
    lines = str(refusal("70", engine)).splitlines()
    assert lines[:3] == [
        f"block 70: {field}, but executing gives {computed}"
        for field, computed in (
            ("cumulative gas used of transaction 0 is 27621", 30421),
            ("gas used of transaction 0 is 27621", 30421),
            ("cumulative gas used of transaction 1 is 55242", 58042),
        )
    ]
    texts = (
        "gas used: invalid gas used (remote: 55242 local: 58042)",
        "receipts root: invalid receipt root hash (remote: ",
        "state root: invalid merkle root (remote: ",
    )
    for line, text in zip(lines[3:], texts, strict=True):
        assert line.startswith(f"block 70: {text}")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_changed_slot_of_a_changed_trie_is_found(engine: str) -> None:
    copies.sample_chain()
    slots = StorageVersion.objects.filter(block_number=58)
    slots.update(value=b"\5")
    address = bytes(slots.earliest("address").address)
    assert str(refusal("75", engine)).startswith(
        f"block 75: the rows of 0x{address.hex()} do not give its storage root after"
    )


def test_bad_ranges_are_refused() -> None:
    copies.sample_chain(blocks=2)
    assert str(refusal("2-3", "own")) == "there is no block 3"
    for blocks in ("0-1", "2-1", "1-", "x"):
        assert "must be two block numbers from 1 on" in str(refusal(blocks, "own"))
    assert str(refusal("1", "own", "none")) == "there is no network 'none' with blocks"
