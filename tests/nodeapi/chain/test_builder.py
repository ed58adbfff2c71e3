import pytest

from evm.errors import InvalidTransaction
from samples.builder import MINER, ChainBuilder
from samples.schedules import from_genesis, make_genesis
from samples.signers import Signer, create2_address, create_address
from tests.nodeapi.chain.verifying import verify_blocks

ANN, BEN = Signer("ann"), Signer("ben")
ETHER = 10**18


def genesis(fork="prague"):
    rich = {f"0x{s.address.hex()}": {"balance": hex(10 * ETHER)} for s in (ANN, BEN)}
    return make_genesis(chain_id=9, first_blocks=from_genesis(fork), alloc=rich)


@pytest.fixture
def chain():
    return ChainBuilder(genesis())


def test_blocks_follow_each_other(chain):
    first, second = chain.block(), chain.block()
    assert first.header.parent_hash == chain.genesis.header.hash
    assert second.header.parent_hash == first.header.hash
    assert [block.header.number for block in chain.blocks] == [1, 2]
    assert second.header.timestamp - first.header.timestamp == 12
    verify_blocks(genesis(), chain.blocks)


def test_nonces_count_on_within_a_block_and_across(chain):
    nonces = [chain.send(ANN, BEN.address).nonce for _ in range(2)]
    chain.block()
    nonces.append(chain.send(ANN, BEN.address).nonce)
    assert nonces == [0, 1, 2]


def test_an_authorization_spends_its_authority_s_nonce(chain):
    own = chain.authorize(ANN, MINER, ahead=1)
    chain.send(ANN, BEN.address, authorization_list=[own])
    assert own.nonce == 1
    assert chain.next_nonce(ANN.address) == 2
    chain.block()
    assert chain.next_nonce(ANN.address) == 2
    assert chain.state.account(ANN.address).nonce == 2


@pytest.mark.parametrize(
    ("fork", "options", "kind"),
    [
        ("frontier", {}, 0),
        ("berlin", {"gas_price": 10**10, "access_list": []}, 1),
        ("london", {}, 2),
        ("london", {"gas_price": 10**10}, 0),
        ("cancun", {"blob_versioned_hashes": [b"\x01" * 32]}, 3),
    ],
)
def test_a_transaction_gets_the_type_that_fits(fork, options, kind):
    chain = ChainBuilder(genesis(fork))
    assert chain.send(ANN, BEN.address, **options).type == kind
    chain.block()
    verify_blocks(genesis(fork), chain.blocks)


def test_legacy_transactions_carry_the_chain_id_as_soon_as_they_may():
    early, late = ChainBuilder(genesis("homestead")), ChainBuilder(genesis("byzantium"))
    assert early.send(ANN, BEN.address).chain_id is None
    assert late.send(ANN, BEN.address).chain_id == 9
    assert late.send(ANN, BEN.address, chain_id=0).chain_id is None


def test_a_transaction_that_may_not_stand_there_is_refused(chain):
    chain.send(ANN, BEN.address, value=100 * ETHER)
    with pytest.raises(InvalidTransaction):
        chain.block()
    assert chain.blocks == []
    chain.send(ANN, BEN.address, value=ETHER)
    assert chain.block().header.number == 1


def test_forks_go_their_own_ways():
    left = ChainBuilder(genesis("istanbul"))
    left.block()
    right = left.fork()
    left.send(ANN, BEN.address, value=1)
    left.block()
    right.send(ANN, BEN.address, value=2)
    right.block()
    assert left.blocks[0] is right.blocks[0]
    balances = [
        c.state.account(BEN.address).balance - 10 * ETHER for c in (left, right)
    ]
    assert balances == [1, 2]
    assert left.head.parent_hash == right.head.parent_hash
    assert left.head.hash != right.head.hash


def test_contracts_are_deployed_where_the_builder_says(chain):
    address = chain.deploy(ANN, bytes.fromhex("600160005360016000f3"))
    chain.block()
    code_hash = chain.state.account(address).code_hash
    assert chain.state.code(code_hash) == b"\x01"


def test_addresses_of_contracts_are_derived_as_specified():
    # https://eips.ethereum.org/EIPS/eip-1014, examples 1 and 3
    assert create2_address(bytes(20), 0, b"\0").hex() == (
        "4d1a2e2bb4f88f0250f26ffff098b0b30b26bf38"
    )
    deployer = bytes.fromhex("deadbeef00000000000000000000000000000000")
    salt = int("feed000000000000000000000000000000000000", 16)
    assert create2_address(deployer, salt, b"\0").hex() == (
        "d04116cdd17bebe565eb2422f2497e06cc1c9833"
    )
    sender = bytes.fromhex("6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0")
    assert create_address(sender, 0).hex() == "cd234a471b72ba2f1ccf0a70fcaba648a5eecd8d"


def test_a_signer_s_key_follows_from_the_name():
    assert Signer("ann").address == ANN.address != BEN.address
