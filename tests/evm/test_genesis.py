import pytest
from trie import HexaryTrie

from evm import rlp
from evm.blob_gas import blob_base_fee
from evm.chain_config import ChainConfig
from evm.genesis import (
    EMPTY_REQUESTS_HASH,
    EXCESS_BITS,
    GenesisAccount,
    GenesisError,
    genesis_accounts,
    genesis_block,
)
from evm.headers import EMPTY_TRIE_ROOT, ZERO_HASH
from evm.signatures import keccak
from tests.support import execution_apis

ROOT = b"\x05" * 32

TO_LONDON = dict.fromkeys(
    [
        "homesteadBlock",
        "eip150Block",
        "eip155Block",
        "eip158Block",
        "byzantiumBlock",
        "constantinopleBlock",
        "istanbulBlock",
        "berlinBlock",
        "londonBlock",
    ],
    0,
)
TIMES = ["shanghaiTime", "cancunTime", "pragueTime", "osakaTime"]
ADDRESS = "35" * 20


def config(**forks):
    return ChainConfig.from_genesis({"config": {"chainId": 1, **forks}})


def alloc(entry, address=ADDRESS):
    return genesis_accounts({"alloc": {address: entry}})


def test_numbers_are_read_in_every_form():
    for balance in (255, "255", "0xff", "0x00ff", "0XFF"):
        account = alloc({"balance": balance, "nonce": "0x01"})[bytes.fromhex(ADDRESS)]
        assert account == GenesisAccount(balance=255, nonce=1)


def test_accounts_have_code_and_the_slots_that_are_not_zero():
    entry = {
        "balance": "0x0",
        "code": "0x6001",
        "storage": {"0x01": "0x0a", "02" * 32: "0x00", "0x": "ff" * 32},
    }
    for address in (ADDRESS, "0x" + ADDRESS):
        account = alloc(entry, address)[bytes.fromhex(ADDRESS)]
        assert account.code == bytes.fromhex("6001")
        assert account.storage == {1: 10, 0: 2**256 - 1}
    assert alloc({}) == {bytes.fromhex(ADDRESS): GenesisAccount(balance=0)}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"balance": "-1"}, "balance"),
        ({"balance": -1}, "balance"),
        ({"balance": "1_0"}, "balance"),
        ({"balance": " 1"}, "balance"),
        ({"balance": "0x"}, "balance"),
        ({"balance": "0xg"}, "balance"),
        ({"balance": "9" * 5000}, "balance"),
        ({"balance": True}, "balance"),
        ({"balance": 1.0}, "balance"),
        ({"balance": "٣"}, "balance"),
        ({"balance": 2**256}, "balance"),
        ({"nonce": 2**64}, "nonce"),
        ({"code": "0x1"}, "code"),
        ({"code": 5}, "code"),
        ({"code": "60 01"}, "code"),
        ({"storage": {"0x" + "1" * 65: "0x1"}}, "storage"),
        ({"storage": {"0x1": "zz"}}, "storage.0x1"),
        ({"storage": ["0x1"]}, "storage"),
        ("0x1", "expected an account object"),
    ],
)
def test_faulty_account_is_refused_by_place(entry, reason):
    with pytest.raises(GenesisError, match=f"^alloc.{ADDRESS}.*{reason}"):
        alloc(entry)


def test_addresses_are_twenty_bytes_and_stand_there_once():
    with pytest.raises(GenesisError, match="not an address of 20 bytes"):
        alloc({}, "35" * 19)
    with pytest.raises(GenesisError, match="twice"):
        genesis_accounts({"alloc": {ADDRESS: {}, "0x" + ADDRESS: {}}})
    with pytest.raises(GenesisError, match="object of accounts by address"):
        genesis_accounts({})


def test_absent_fields_have_geths_defaults():
    header = genesis_block({}, config(), ROOT).header
    assert header.state_root == ROOT
    assert header.difficulty == 131_072
    assert header.gas_limit == 4_712_388
    assert header.parent_hash == ZERO_HASH
    assert (header.number, header.timestamp, header.nonce) == (0, 0, bytes(8))
    assert header.base_fee_per_gas is None


def test_fields_are_taken_over():
    header = genesis_block(
        {
            "nonce": "0x42",
            "timestamp": "0x5",
            "extraData": "0x6869",
            "gasLimit": 8_000_000,
            "difficulty": "1",
            "mixHash": "0x" + "07" * 32,
            "coinbase": "0x" + ADDRESS,
            "parentHash": "0x" + "08" * 32,
        },
        config(),
        ROOT,
    ).header
    assert header.nonce == bytes(7) + b"\x42"
    assert header.timestamp == 5
    assert header.extra_data == b"hi"
    assert header.gas_limit == 8_000_000
    assert header.difficulty == 1
    assert header.mix_hash == b"\x07" * 32
    assert header.coinbase == bytes.fromhex(ADDRESS)
    assert header.parent_hash == b"\x08" * 32


def test_excess_blob_gas_with_an_incomputable_price_is_rejected():
    forks = {**TO_LONDON, **dict.fromkeys(TIMES[:2], 0)}
    most = 2**EXCESS_BITS - 1
    block = genesis_block({"excessBlobGas": hex(most)}, config(**forks), ROOT)
    assert blob_base_fee(most, 3_338_477) > 2**256
    assert block.header.excess_blob_gas == most
    with pytest.raises(GenesisError, match=r"excessBlobGas: .* below 2\*\*36"):
        genesis_block({"excessBlobGas": hex(most + 1)}, config(**forks), ROOT)


@pytest.mark.parametrize(("times", "count"), [(0, 16), (1, 17), (2, 20), (4, 21)])
def test_fork_of_block_0_decides_on_its_fields(times, count):
    forks = {**TO_LONDON, **dict.fromkeys(TIMES[:times], 0)}
    block = genesis_block({"excessBlobGas": "0x20000"}, config(**forks), ROOT)
    assert len(block.header.items()) == count
    assert block.header.base_fee_per_gas == 10**9
    assert block.withdrawals == (() if times >= 1 else None)
    assert block.header.withdrawals_root == (EMPTY_TRIE_ROOT if times >= 1 else None)
    assert block.header.excess_blob_gas == (0x20000 if times >= 2 else None)
    assert block.header.blob_gas_used == (0 if times >= 2 else None)
    assert block.header.parent_beacon_root == (ZERO_HASH if times >= 2 else None)
    assert block.header.requests_hash == (EMPTY_REQUESTS_HASH if times >= 3 else None)


def test_base_fee_of_block_0_can_be_chosen():
    block = genesis_block({"baseFeePerGas": "0x7"}, config(**TO_LONDON), ROOT)
    assert block.header.base_fee_per_gas == 7


@pytest.mark.parametrize(
    "fields",
    [
        {"mixHash": "0x00"},
        {"coinbase": "35" * 21},
        {"extraData": "0x1"},
        {"timestamp": 2**64},
        {"nonce": "x"},
    ],
)
def test_faulty_field_is_refused_by_name(fields):
    with pytest.raises(GenesisError, match=f"^{next(iter(fields))}"):
        genesis_block(fields, config(), ROOT)


def state_root(accounts):
    """Return the state root, computed by the reference trie."""
    state = HexaryTrie({})
    for address, account in accounts.items():
        storage = HexaryTrie({})
        for slot, value in account.storage.items():
            storage[keccak(slot.to_bytes(32))] = rlp.encode(rlp.encode_int(value))
        state[keccak(address)] = rlp.encode(
            [
                rlp.encode_int(account.nonce),
                rlp.encode_int(account.balance),
                storage.root_hash,
                keccak(account.code),
            ]
        )
    return state.root_hash


def test_block_0_of_the_conformance_chain_is_its_first_blocks_parent():
    genesis = execution_apis.genesis()
    accounts = genesis_accounts(genesis)
    block = genesis_block(
        genesis, ChainConfig.from_genesis(genesis), state_root(accounts)
    )
    assert len(accounts) == 27
    assert block.header.hash == execution_apis.blocks()[0].header.parent_hash
