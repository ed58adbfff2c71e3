"""Blockchain and engine fixtures: what the runner accepts, and what it reports."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from eth_typing import Hash32

from evm.transactions import CREATE_ADDRESS
from evm.trie import ordered_root
from tests.consensus.blockchain import run_blockchain_test
from tests.consensus.engine import run_engine_test
from tests.consensus.networks import chain_config
from tests.consensus.verdict import Mismatch, UnknownNetwork
from tests.consensus.writing import (
    ALICE,
    BOB,
    KEEPER,
    block_entry,
    blockchain_fixture,
    header_fields,
    invalid_entry,
    new_chain,
    payload_entry,
)

FORKS = [
    "Frontier",
    "Homestead",
    "EIP150",
    "EIP158",
    "Byzantium",
    "Constantinople",
    "ConstantinopleFix",
    "Istanbul",
    "MuirGlacier",
    "Berlin",
    "London",
    "ArrowGlacier",
    "GrayGlacier",
    "Paris",
    "Merge",
    "Shanghai",
    "Cancun",
    "Prague",
    "Osaka",
    "BPO1",
    "BPO2",
]
BLOCK_TRANSITIONS = [
    "FrontierToHomesteadAt5",
    "HomesteadToEIP150At5",
    "HomesteadToDaoAt5",
    "EIP158ToByzantiumAt5",
    "ByzantiumToConstantinopleAt5",
    "ByzantiumToConstantinopleFixAt5",
    "ConstantinopleFixToIstanbulAt5",
    "BerlinToLondonAt5",
]
TIME_TRANSITIONS = [
    "ParisToShanghaiAtTime15k",
    "ShanghaiToCancunAtTime15k",
    "CancunToPragueAtTime15k",
    "PragueToOsakaAtTime15k",
    "OsakaToBPO1AtTime15k",
    "BPO1ToBPO2AtTime15k",
]
MERGE = "ArrowGlacierToParisAtDiffC0000"


def grown(network, blocks=7):
    """Return a chain beyond a fork transition at block 5 or at 15,000 s."""
    is_timed = network in TIME_TRANSITIONS
    chain = new_chain(network, seconds_per_block=2500 if is_timed else 12)
    for number in range(1, blocks + 1):
        chain.send(ALICE, KEEPER)
        chain.send(ALICE, BOB.address, value=number)
        is_dao = network == "HomesteadToDaoAt5" and number >= 5
        chain.block(extra_data=b"dao-hard-fork" if is_dao else b"")
    return chain


def check_mismatch(fixture, text, run=run_blockchain_test):
    with pytest.raises(Mismatch, match=re.escape(text)):
        run(fixture)


@pytest.fixture
def cancun():
    """Return a chain of two blocks, and its fixture."""
    chain = grown("Cancun", 2)
    return chain, blockchain_fixture("Cancun", chain)


@pytest.mark.parametrize(
    "network", [*FORKS, *BLOCK_TRANSITIONS, *TIME_TRANSITIONS, MERGE]
)
def test_valid_chains_of_every_network_pass(network):
    chain = grown(network)
    run_blockchain_test(blockchain_fixture(network, chain))


@pytest.mark.parametrize(
    ("network", "before", "after"),
    [
        ("FrontierToHomesteadAt5", "frontier", "homestead"),
        ("HomesteadToEIP150At5", "homestead", "tangerine_whistle"),
        ("EIP158ToByzantiumAt5", "spurious_dragon", "byzantium"),
        ("ByzantiumToConstantinopleAt5", "byzantium", "constantinople"),
        ("ByzantiumToConstantinopleFixAt5", "byzantium", "petersburg"),
        ("ConstantinopleFixToIstanbulAt5", "petersburg", "istanbul"),
        ("BerlinToLondonAt5", "berlin", "london"),
        ("MergeToShanghaiAtTime15k", "paris", "shanghai"),
        ("ShanghaiToCancunAtTime15k", "shanghai", "cancun"),
        ("CancunToPragueAtTime15k", "cancun", "prague"),
        ("PragueToOsakaAtTime15k", "prague", "osaka"),
        ("OsakaToBPO1AtTime15k", "osaka", "bpo1"),
        ("BPO1ToBPO2AtTime15k", "bpo1", "bpo2"),
    ],
)
def test_transitions_happen_at_their_place(network, before, after):
    config = chain_config(network)
    is_merged = config.is_merged(0)
    places = [(1, 14_999), (1, 15_000)] if is_merged else [(4, 0), (5, 0)]
    forks = [config.fork_at(*place, is_merged).name for place in places]
    assert forks == [before, after]


def test_the_dao_fork_comes_at_its_block():
    config = chain_config("HomesteadToDaoAt5")
    assert [config.is_dao_fork(number) for number in (4, 5, 6)] == [False, True, False]


def test_a_chain_is_rejected_under_another_networks_forks():
    chain = grown("ShanghaiToCancunAtTime15k")
    fixture = blockchain_fixture("Shanghai", chain)
    check_mismatch(fixture, "block entry 6 was rejected")


def test_the_merge_comes_with_the_difficulty_of_the_name():
    chain = grown(MERGE)
    assert {block.header.difficulty == 0 for block in chain.blocks} == {True, False}


@pytest.mark.parametrize(
    "network", ["Amsterdam", "CancunToAmsterdamAtTime15k", "Byzantium+1884", "BPO5"]
)
def test_unknown_networks_are_named(network):
    with pytest.raises(UnknownNetwork, match=re.escape(network)):
        chain_config(network)


def test_blob_schedule_and_chain_id_come_from_the_fixture():
    parameters = {"target": "0x1", "max": "0x2", "baseFeeUpdateFraction": "0x10"}
    settings = {"chainid": "0x7", "blobSchedule": {"BPO3": parameters}}
    config = chain_config("BPO3", settings)
    fork = config.fork_at(1, 1, is_merged=True)
    assert config.chain_id == 7
    assert fork.blob_parameters.max_gas == 2 * 2**17


def test_the_branch_with_the_greatest_total_difficulty_becomes_the_head():
    """Blocks arrive branch by branch, so that earlier states are needed again."""
    chain = new_chain("Frontier")
    chain.send(ALICE, KEEPER)
    first = chain.block()
    light, heavy = chain.fork(), chain.fork()
    for branch, seconds in ((light, 100), (heavy, 1)):
        for _ in range(2):
            branch.send(ALICE, KEEPER)
            branch.block(timestamp=branch.head.timestamp + seconds)
    assert heavy.total_difficulty > light.total_difficulty
    blocks = [first, light.blocks[1], heavy.blocks[1], light.blocks[2], heavy.blocks[2]]
    run_blockchain_test(blockchain_fixture("Frontier", heavy, blocks))
    wrong = blockchain_fixture("Frontier", light, blocks)
    check_mismatch(wrong, "last block hash: expected")


def test_a_wrong_genesis_is_reported(cancun):
    _, fixture = cancun
    fixture["pre"][f"0x{KEEPER.hex()}"]["balance"] = "0x1"
    check_mismatch(fixture, "genesis state root: expected")


def test_a_wrong_genesis_hash_is_reported(cancun):
    _, fixture = cancun
    fixture["genesisBlockHeader"]["hash"] = f"0x{'11' * 32}"
    check_mismatch(fixture, "genesis hash: expected")


def test_a_valid_block_that_should_be_rejected_is_reported(cancun):
    chain, fixture = cancun
    fixture["blocks"].append(invalid_entry(chain.blocks[-1], "BlockException.X"))
    chain.block()
    fixture["blocks"][-1] = invalid_entry(chain.blocks[-1], "BlockException.X")
    check_mismatch(fixture, "block entry 3 was accepted; expected BlockException.X")


def test_a_known_block_with_another_body_is_rejected(cancun):
    chain, fixture = cancun
    known = block_entry(chain.blocks[0])
    emptied = replace(chain.blocks[0], transactions=())
    fixture["blocks"] += [known, invalid_entry(emptied, "BlockException.X")]
    run_blockchain_test(fixture)
    fixture["blocks"][-1] = block_entry(emptied)
    check_mismatch(fixture, "transactions root: transaction root hash mismatch")


def test_a_block_without_header_in_the_fixture_must_be_rejected(cancun):
    _chain, fixture = cancun
    del fixture["blocks"][1]["blockHeader"]
    check_mismatch(fixture, "block entry 2 was accepted")


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("state_root", Hash32(bytes(32)), "state root: invalid merkle root"),
        ("gas_used", 21_000, "gas used: invalid gas used (remote: 21000 local: "),
        ("timestamp", 0, "timestamp: invalid timestamp (0 is not after"),
        ("gas_limit", 1, "gas used"),
        ("difficulty", 1, "difficulty: invalid terminal block"),
        (
            "receipts_root",
            Hash32(bytes(32)),
            "receipts root: invalid receipt root hash",
        ),
        ("parent_hash", Hash32(bytes(32)), "unknown parent"),
    ],
)
def test_invalid_blocks_are_rejected_and_reported_when_unexpected(
    cancun, field, value, text
):
    chain, fixture = cancun
    head = chain.blocks[-1]
    bad = replace(head, header=replace(head.header, **{field: value}))
    fixture["blocks"].insert(1, invalid_entry(bad, "BlockException.X"))
    run_blockchain_test(fixture)
    fixture["blocks"][1] = block_entry(bad)
    check_mismatch(fixture, "block entry 2 was rejected: ")
    check_mismatch(fixture, text)


def test_blocks_that_are_no_rlp_are_rejected(cancun):
    _, fixture = cancun
    entry = {"rlp": "0xf90001ff", "expectException": "BlockException.RLP"}
    fixture["blocks"].append(entry)
    run_blockchain_test(fixture)
    fixture["blocks"][-1] = {"rlp": "0xf90001ff", "blockHeader": {"hash": "0x"}}
    check_mismatch(fixture, "block entry 3 was rejected")


def block_with_bad_transaction(chain):
    """Return a block whose roots do not include its creation transaction."""
    twin = chain.fork()
    transaction = twin.send(ALICE, CREATE_ADDRESS, bytes(49_153), gas=2_000_000)
    empty = chain.fork().block()
    root = Hash32(ordered_root([transaction.raw]))
    header = replace(empty.header, transactions_root=root)
    return replace(empty, header=header, transactions=(transaction,))


def test_an_invalid_transaction_rejects_its_block(cancun):
    chain, fixture = cancun
    bad = block_with_bad_transaction(chain)
    expected = "TransactionException.INITCODE_SIZE_EXCEEDED"
    fixture["blocks"].append(invalid_entry(bad, expected))
    run_blockchain_test(fixture)


def test_a_block_rejected_only_for_its_roots_does_not_hide_an_accepted_transaction():
    """Long init code is allowed before Shanghai, so that the transaction is valid."""
    chain = grown("Paris", 2)
    fixture = blockchain_fixture("Paris", chain)
    bad = block_with_bad_transaction(chain)
    fixture["blocks"].append(invalid_entry(bad, "TransactionException.A|TR_B"))
    check_mismatch(fixture, "all transactions were executed")
    fixture["blocks"][-1] = invalid_entry(bad, "BlockException.A|TR_B")
    run_blockchain_test(fixture)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("balance", "0x1", "balance: expected 1, got "),
        ("nonce", "0x9", "nonce: expected 9, got "),
        ("code", "0x00", "code: expected "),
        ("storage", {"0x00": "0x05"}, "slot 0x0: expected 0x5, got 0x2"),
        ("storage", {"0x00": "0x02"}, "slot 0x1: expected 0x0, got 0x18"),
    ],
)
def test_a_wrong_post_state_is_reported(cancun, field, value, text):
    _, fixture = cancun
    fixture["postState"][f"0x{KEEPER.hex()}"][field] = value
    check_mismatch(fixture, f"account 0x{KEEPER.hex()}, {text}"[:62])
    check_mismatch(fixture, text)


def test_a_missing_account_is_reported(cancun):
    _, fixture = cancun
    fixture["postState"][f"0x{'77' * 20}"] = fixture["pre"][f"0x{KEEPER.hex()}"]
    check_mismatch(fixture, f"account 0x{'77' * 20} is missing")


def test_a_wrong_post_state_hash_is_reported(cancun):
    chain, fixture = cancun
    fixture["postStateHash"] = f"0x{chain.head.state_root.hex()}"
    run_blockchain_test(fixture)
    fixture["postStateHash"] = f"0x{'11' * 32}"
    check_mismatch(fixture, "post-state root: expected")


# Engine fixtures


@pytest.fixture(params=["Cancun", "Prague", "Osaka"])
def engine(request):
    chain = grown(request.param, 2)
    fixture = blockchain_fixture(request.param, chain)
    for name in ("blocks", "genesisRLP"):
        del fixture[name]
    fixture["engineNewPayloads"] = [payload_entry(block) for block in chain.blocks]
    return chain, fixture


def test_payloads_are_executed(engine):
    _, fixture = engine
    run_engine_test(fixture)


def test_payloads_of_which_something_differs_are_reported(engine):
    chain, fixture = engine
    entry = fixture["engineNewPayloads"][1]
    payload = entry["params"][0]
    original = dict(payload)
    payload["gasUsed"] = "0x1"
    check_mismatch(fixture, "payload 2 was rejected: block 2", run_engine_test)
    check_mismatch(fixture, "block hash: expected", run_engine_test)
    header = replace(chain.head, state_root=Hash32(bytes(32)))
    payload.update(
        original, stateRoot=f"0x{'00' * 32}", blockHash=f"0x{header.hash.hex()}"
    )
    check_mismatch(fixture, "state root: invalid merkle root", run_engine_test)
    fixture["lastblockhash"] = f"0x{chain.blocks[0].header.hash.hex()}"
    del fixture["postState"]
    entry["validationError"] = "BlockException.INVALID_STATE_ROOT"
    run_engine_test(fixture)
    payload.update(original)
    check_mismatch(fixture, "payload 2 was accepted", run_engine_test)


def test_wrong_blob_hashes_of_a_payload_are_reported(engine):
    _, fixture = engine
    fixture["engineNewPayloads"][0]["params"][1] = [f"0x01{'00' * 31}"]
    check_mismatch(fixture, "blob versioned hashes: expected", run_engine_test)


def test_payloads_that_test_the_engine_api_alone_are_left_out(engine):
    _, fixture = engine
    bad = {"params": [{}], "newPayloadVersion": "3", "errorCode": "-32602"}
    fixture["engineNewPayloads"].append(bad)
    run_engine_test(fixture)


def test_the_genesis_of_an_engine_fixture_is_checked(engine):
    chain, fixture = engine
    fields = header_fields(replace(chain.genesis.header, extra_data=b"other"))
    fields["hash"] = f"0x{chain.genesis.header.hash.hex()}"
    fixture["genesisBlockHeader"] = fields
    check_mismatch(fixture, "genesis hash: expected", run_engine_test)
