"""Output and errors of `manage.py import_chain` and `audit_state`."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from evm import rlp
from evm.blocks import Block as EvmBlock
from evm.blocks import decode_block, encode_block
from evm.headers import EMPTY_UNCLES_HASH
from evm.public import PUBLIC_NETWORKS
from networks.models import Network
from networks.services import create_network
from nodeapi.chain import networks
from nodeapi.chain.database import import_lock, importer_connection
from nodeapi.chain.networks import open_network
from nodeapi.management.commands import import_chain as command
from nodeapi.models import AccountVersion, Block, StorageVersion, TrieNode
from samples.sample import FIRST_BLOCKS
from tests.support import chains, sample

pytestmark = pytest.mark.django_db(transaction=True)

BLOCKS = 20
"""Number of the sample chain's blocks that most tests import."""


def import_chain(*files: Path, **options: Any) -> str:
    """Import into a network with the sample's genesis, and return the output on stderr."""
    stderr = io.StringIO()
    given = {"network": "net", "genesis": sample.GENESIS_FILE, **options}
    call_command("import_chain", *map(str, files), stderr=stderr, **given)
    return stderr.getvalue()


def refusal(*files: Path, **options: Any) -> str:
    """Run `import_chain`, which has to fail, and return its error message of one line."""
    with pytest.raises(CommandError) as error:
        import_chain(*files, **options)
    message = str(error.value)
    assert "\n" not in message
    return message


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Return a function that writes blocks to a file."""

    def write_file(name: str, data: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write_file


def test_second_network_of_a_chain_is_created_on_demand_only(write: Any) -> None:
    """A misspelt slug, for example, does not create a second network."""
    blocks = write("chain.rlp", sample.raw_blocks()[0])
    import_chain(blocks)
    assert refusal(blocks, network="nte") == (
        "the network net has the same chain id and genesis; --second creates another one"
    )
    assert [network.slug for network in Network.objects.all()] == ["net"]
    import_chain(blocks)  # imports into the network itself continue
    import_chain(blocks, network="twin", second=True)
    assert Network.objects.count() == 2


def test_it_imports_files_and_says_how_fast(write: Any) -> None:
    raw = sample.raw_blocks()[:BLOCKS]
    first = write("first.rlp", b"".join(raw[:8]))
    second = write("second.rlp", b"".join(raw[8:]))
    lines = import_chain(first, second)
    assert "imported 20 blocks in " in lines
    assert " blocks/s " in lines
    assert " Mgas/s" in lines
    assert lines.endswith("the head is 20\n")
    assert import_chain(first).endswith("8 were already stored; the head is 20\n")


def test_it_reads_what_gzip_has_compressed(write: Any) -> None:
    packed = write(
        "chain.rlp.gz", gzip.compress(b"".join(sample.raw_blocks()[:BLOCKS]))
    )
    assert import_chain(packed).endswith("the head is 20\n")


def test_a_file_that_is_cut_short_is_kept_as_far_as_it_goes(write: Any) -> None:
    raw = sample.raw_blocks()
    cut = write("cut.rlp", b"".join(raw[:20]) + raw[20][:-10])
    message = refusal(cut)
    assert message.startswith("after block 20: ")
    assert chains.head("net")[0] == 20


def test_a_gzip_file_that_is_cut_short_is_kept_as_far_as_it_goes(write: Any) -> None:
    packed = gzip.compress(b"".join(sample.raw_blocks()[:BLOCKS]))
    message = refusal(write("cut.rlp.gz", packed[: len(packed) // 2]))
    assert message.startswith("after block ")
    assert chains.head("net")[0] > 0
    assert chains.audit_all("net") > 1


def test_garbage_is_refused_with_its_place(write: Any) -> None:
    raw = sample.raw_blocks()
    message = refusal(write("garbage.rlp", b"".join(raw[:3]) + b"garbage"))
    assert message.startswith("after block 3: ")
    assert str(len(b"".join(raw[:3]))) in message
    assert chains.head("net")[0] == 3


def test_an_item_that_is_no_block_is_refused(write: Any) -> None:
    raw = sample.raw_blocks()
    message = refusal(write("list.rlp", raw[0] + b"\xc2\x01\x02"))
    assert message.startswith("after block 1: ")


def test_a_wrong_block_is_named_with_its_number_hash_and_field(write: Any) -> None:
    raw = sample.raw_blocks()
    block = decode_block(raw[4])
    wrong = replace(block, header=replace(block.header, state_root=bytes(32)))
    message = refusal(write("wrong.rlp", b"".join(raw[:4]) + encode_block(wrong)))
    assert message.startswith(f"block 5 (0x{wrong.header.hash.hex()}): state root: ")
    assert chains.head("net")[0] == 4


def test_a_block_of_another_chain_is_refused(write: Any) -> None:
    raw = sample.raw_blocks()
    block = decode_block(raw[0])
    other = replace(block, header=replace(block.header, parent_hash=b"\x11" * 32))
    message = refusal(write("other.rlp", encode_block(other)))
    assert f"unknown ancestor 0x{'11' * 32}" in message
    assert f"block 0 of this network is {sample.genesis_hash()}" in message


def first_block(**changes: Any) -> EvmBlock:
    """Return a block 0 that the sample chain does not have."""
    block = decode_block(sample.raw_blocks()[0])
    header = replace(block.header, number=0, parent_hash=bytes(32), **changes)
    return replace(block, header=header)


def test_a_file_with_another_block_0_is_refused_with_both_hashes(write: Any) -> None:
    other = first_block()
    message = refusal(write("other.rlp", encode_block(other)))
    assert message == (
        f"block 0 (0x{other.header.hash.hex()}): genesis: "
        f"block 0 of this network is {sample.genesis_hash()}"
    )


def test_a_failed_first_import_leaves_nothing_behind(write: Any) -> None:
    raw = sample.raw_blocks()
    block = decode_block(raw[0])
    wrong = replace(block, header=replace(block.header, state_root=bytes(32)))
    for name, data in (
        ("another chain", encode_block(first_block())),
        ("a later part", raw[3]),
        ("an invalid block", encode_block(wrong)),
        ("garbage", b"garbage"),
        ("a damaged gzip file", gzip.compress(raw[0])[:20]),
    ):
        refusal(write("chain.rlp", data))
        for model in (Network, Block, AccountVersion, StorageVersion, TrieNode):
            assert not model.objects.exists(), (name, model)
    import_chain(write("chain.rlp", raw[0]))
    assert chains.head("net")[0] == 1


def test_a_network_whose_genesis_can_not_be_stored_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        assert Network.objects.filter(slug="net").exists()
        raise psycopg.errors.DiskFull("no space left")

    monkeypatch.setattr(networks, "store_genesis", fail)
    assert "no space left" in refusal()
    assert not Network.objects.exists()


def test_a_network_that_was_there_before_is_kept_by_a_failed_import(
    write: Any,
) -> None:
    import_chain()
    refusal(write("chain.rlp", b"garbage"))
    assert chains.head("net")[0] == 0


def test_a_network_with_blocks_is_kept_by_a_failed_first_import(write: Any) -> None:
    raw = sample.raw_blocks()
    refusal(write("chain.rlp", raw[0] + b"garbage"))
    assert chains.head("net")[0] == 1


def test_a_new_network_needs_a_genesis() -> None:
    with pytest.raises(CommandError, match="--genesis or --public is required"):
        call_command("import_chain", network="nowhere")


def test_a_genesis_that_is_none_is_refused(write: Any) -> None:
    for name, text, reason in (
        ("text", "no json", "line 1 column 1"),
        ("deep", "[" * 100_000, "depth limit exceeded"),
        ("list", "[]", "a genesis.json must be a JSON object"),
        ("empty", "{}", "no config"),
        (
            "clique",
            json.dumps({"config": {"chainId": 1, "clique": {"period": 5}}}),
            "clique",
        ),
        (
            "nul",  # PostgreSQL can't store this character
            json.dumps({"config": {"chainId": 1}, "alloc": {}, "x": "\0"}),
            "the database failed",
        ),
    ):
        assert reason in refusal(genesis=write(name, text.encode()))
    assert not Network.objects.exists()


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match="No such file or directory"):
        import_chain(Path("nothing.rlp"))


def test_a_second_import_says_that_one_is_running() -> None:
    with chains.importer("net", sample.genesis()):
        assert refusal() == "another import into this network is running"


def test_forks_do_not_change_under_a_running_import(write: Any) -> None:
    genesis = sample.genesis()
    later = {**genesis, "config": {**genesis["config"], "bpo5Time": 2**40}}
    later["config"]["blobSchedule"] = {
        **genesis["config"].get("blobSchedule", {}),
        "bpo5": {"target": 20, "max": 30, "baseFeeUpdateFraction": 10**7},
    }
    file = write("later.json", json.dumps(later).encode())
    with chains.importer("net", genesis):
        running = "another import into this network is running"
        assert refusal(genesis=file) == running
        assert "bpo5Time" not in Network.objects.get(slug="net").genesis["config"]
    import_chain(genesis=file)
    assert "bpo5Time" in Network.objects.get(slug="net").genesis["config"]


def before_shanghai() -> dict[str, Any]:
    """Return the sample's genesis without the later forks in its configuration."""
    genesis = sample.genesis()
    config = {
        name: value
        for name, value in genesis["config"].items()
        if not name.endswith("Time")
    }
    return {**genesis, "config": config}


def test_forks_that_were_scheduled_just_before_an_import_count_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chains.import_blocks("net", before_shanghai(), sample.raw_blocks()[:40])

    def lock(connection: Any, network_id: int) -> Any:
        """Take the lock just after another command has released it."""
        with importer_connection() as other:
            open_network(other, "net", genesis=sample.genesis())
        return import_lock(connection, network_id)

    monkeypatch.setattr(command, "import_lock", lock)
    assert import_chain(sample.CHAIN_FILE, genesis=None).endswith(
        f"the head is {sample.head()}\n"
    )


def test_forks_of_a_network_without_blocks_are_those_of_its_first_import() -> None:
    early = before_shanghai()
    del early["alloc"]
    create_network(
        slug="net",
        name="net",
        chain_id=early["config"]["chainId"],
        genesis=early,
        genesis_hash=decode_block(sample.raw_blocks()[0]).header.parent_hash,
    )
    import_chain()
    config = Network.objects.get(slug="net").genesis["config"]
    assert config == sample.genesis()["config"]


def test_a_forkchoice_sets_safe_and_finalized_blocks(write: Any) -> None:
    raw = sample.raw_blocks()[:BLOCKS]
    hashes = [f"0x{decode_block(one).header.hash.hex()}" for one in raw]
    state = {
        "headBlockHash": hashes[19],
        "safeBlockHash": hashes[10],
        "finalizedBlockHash": f"0x{'00' * 32}",
    }
    request = write("fcu.json", json.dumps({"params": [state, None]}).encode())
    import_chain(write("chain.rlp", b"".join(raw)), forkchoice=request)
    network = Network.objects.get(slug="net")
    assert bytes(network.safe_hash or b"").hex() == hashes[10][2:]
    assert network.finalized_hash is None


def test_a_forkchoice_whose_head_is_not_reached_is_left_alone(write: Any) -> None:
    raw = sample.raw_blocks()[:BLOCKS]
    hashes = [f"0x{decode_block(one).header.hash.hex()}" for one in raw]
    state = {
        "headBlockHash": hashes[10],
        "safeBlockHash": hashes[2],
        "finalizedBlockHash": hashes[1],
    }
    request = write("fcu.json", json.dumps(state).encode())
    said = import_chain(write("some.rlp", b"".join(raw[:5])), forkchoice=request)
    assert said.endswith(f"its head was not imported: the head is {hashes[4]}\n")
    assert Network.objects.get(slug="net").safe_hash is None
    said = import_chain(write("all.rlp", b"".join(raw)), forkchoice=request)
    assert said.endswith("the head is 11\n")


def test_a_forkchoice_names_blocks_of_its_own_chain(write: Any) -> None:
    raw = sample.raw_blocks()[:BLOCKS]
    hashes = [f"0x{decode_block(one).header.hash.hex()}" for one in raw]
    file = write("chain.rlp", b"".join(raw))
    strange = f"0x{'5a' * 32}"
    for name, number, other in (("finalized", 12, 9), ("safe", 16, 11)):
        state = {
            "headBlockHash": hashes[number],
            "safeBlockHash": hashes[other],
            "finalizedBlockHash": hashes[other],
            f"{name}BlockHash": strange,
        }
        request = write(f"{name}.json", json.dumps(state).encode())
        # At the second attempt, the blocks before the batch are stored.
        for _ in range(2):
            message = refusal(file, forkchoice=request, batch=4)
            assert message == (
                f"the {name} block {strange} is not on the chain of the "
                f"head {hashes[number]}"
            )
        network = Network.objects.get(slug="net")
        assert network.safe_hash is None and network.finalized_hash is None
        assert (network.head_number or 0) < number + 1
    import_chain(file)
    assert chains.audit_all("net") == BLOCKS + 1


def test_a_forkchoice_that_is_none_is_refused(write: Any) -> None:
    for text in ("[" * 100_000, "{}", "[]", "null", '{"headBlockHash": 1}'):
        request = write("fcu.json", text.encode())
        assert "a forkchoice must have headBlockHash" in refusal(forkchoice=request)


def test_a_network_that_no_path_leads_to_is_not_made() -> None:
    assert refusal(network="v3") == "v3 is reserved, because it is part of other URLs."
    assert not Network.objects.exists()


def test_the_audit_reports_every_block(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    import_chain(write("chain.rlp", b"".join(sample.raw_blocks()[:BLOCKS])))
    call_command("audit_state", network="net", sample=5)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[-1] == "5 blocks of net audited, all state roots are correct"
    call_command("audit_state", network="net", block=20)
    assert "block 20: " in capsys.readouterr().out
    with pytest.raises(CommandError, match="no block 21"):
        call_command("audit_state", network="net", block=21)
    with pytest.raises(CommandError, match="must be 1 or more, not '0'"):
        call_command("audit_state", "--network=net", "--sample=0")


def test_blocks_before_a_fork_that_we_lack_are_imported(tmp_path: Path) -> None:
    genesis = sample.genesis()
    last = decode_block(sample.raw_blocks()[-1]).header
    genesis["config"]["futureTime"] = last.timestamp
    path = tmp_path / "genesis.json"
    path.write_text(json.dumps(genesis))
    told = refusal(sample.CHAIN_FILE, genesis=path)
    assert told == f"block {last.number} needs future, which is not supported"
    assert Network.objects.get().head_number == last.number - 1
    assert Network.objects.get().genesis["config"]["futureTime"] == last.timestamp


def test_a_file_is_read_up_to_the_first_block_of_a_later_fork(write: Any) -> None:
    raw = sample.raw_blocks()[:5]
    block = decode_block(raw[-1])
    items = [*block.header.items()[:8], rlp.encode_int(5), *block.header.items()[9:]]
    items += [bytes(32)] * (21 - len(items))
    header = rlp.encode([*items, EMPTY_UNCLES_HASH, rlp.encode_int(7), bytes(32)])
    parts = [header, *rlp.list_items(raw[-1])[1:3], b"\xc0", b"\xc0"]
    path = write("chain.rlp", b"".join(raw[:4]) + rlp.wrap_list(b"".join(parts)))
    told = refusal(path)
    assert told == "block 5 needs a fork with 24 header fields, which is not supported"
    assert Network.objects.get().head_number == 4


def test_a_block_of_a_fork_that_the_config_lacks_is_not_called_invalid(
    write: Any,
) -> None:
    genesis, number = sample.genesis(), FIRST_BLOCKS["amsterdam"]
    del genesis["config"]["amsterdamTime"]
    old = write("genesis.json", json.dumps(genesis).encode())
    assert refusal(sample.CHAIN_FILE, genesis=old) == (
        f"block {number} needs amsterdam, which the network's config does not schedule"
    )
    assert Network.objects.get().head_number == number - 1


def test_an_access_list_that_the_header_does_not_have_is_refused(write: Any) -> None:
    raw = sample.raw_blocks()[:3]
    parts = [*rlp.list_items(raw[-1])[:3], b"\xc0", b"\xc0"]
    path = write("chain.rlp", b"".join(raw[:2]) + rlp.wrap_list(b"".join(parts)))
    told = refusal(path)
    assert told.startswith("block 3 (0x")
    assert told.endswith(": block had access list before Amsterdam")
    assert Network.objects.get().head_number == 2


def test_future_forks_of_a_public_network_are_replaced_by_the_built_in_ones(
    tmp_path: Path,
) -> None:
    hoodi = PUBLIC_NETWORKS["hoodi"]
    genesis = hoodi.genesis()
    del genesis["config"]["bpo2Time"]
    path = tmp_path / "genesis.json"
    path.write_text(json.dumps(genesis))
    import_chain(network="hoodi", genesis=path)
    assert "bpo2Time" not in Network.objects.get().genesis["config"]
    import_chain(network="hoodi", genesis=None, public="hoodi")
    network = Network.objects.get()
    assert network.genesis["config"] == hoodi.genesis()["config"]
    assert bytes(network.genesis_hash) == hoodi.genesis_hash
    told = refusal(network="hoodi", genesis=None, public="mainnet")
    assert "network hoodi has the genesis 0xbbe312868b37" in told
