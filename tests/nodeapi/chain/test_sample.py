import json
from hashlib import sha256
from pathlib import Path

import pytest

from evm import rlp
from evm.rules.forks import FORKS
from evm.world import EMPTY_CODE_HASH
from samples.contracts import contract
from samples.sample import (
    FIRST_BLOCKS,
    build_sample_chain,
    sample_files,
    write_sample_chain,
)
from samples.sample_amsterdam import NEWCOMERS, builder_deposit
from samples.sample_stake import ERIN, PUBLIC_KEY
from samples.sample_work import EMPTY_ACCOUNTS, MAX_CODE_SIZE
from samples.signers import Signer
from samples.story import BOB
from tests.nodeapi.chain.verifying import verify_chain

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.fixture(scope="module")
def story():
    return build_sample_chain()


@pytest.fixture(scope="module")
def verified(story):
    files = sample_files(story)
    genesis = json.loads(files["sample/genesis.json"])
    return verify_chain(genesis, files["sample/chain.rlp"])


def slot(story, name, position):
    return story.chain.state.storage(story[name], position)


def outcome(story, number):
    return story.chain.outcomes[number - 1]


def test_what_is_checked_in_is_what_is_built(story):
    for name, content in sample_files(story).items():
        assert (SAMPLES / name).read_bytes() == content, name


def test_writing_makes_the_files(tmp_path):
    story = write_sample_chain(tmp_path)
    for name, content in sample_files(story).items():
        assert (tmp_path / name).read_bytes() == content


def test_every_block_keeps_what_its_header_promises(story, verified):
    results, _ = verified
    assert [r.block.header.hash for r in results] == [
        block.header.hash for block in story.chain.blocks
    ]


def test_it_fits_into_a_megabyte(story):
    assert len(story.chain.rlp()) < 2**20


def test_each_fork_begins_where_it_should(story):
    first = {}
    for note in story.notes:
        first.setdefault(note.fork, note.number)
    assert first.pop("frontier") == 1
    assert first == FIRST_BLOCKS
    assert {fork.name for fork in FORKS} - first.keys() == {"frontier"}


def test_all_types_of_transactions_are_there(story):
    counts = dict.fromkeys(range(5), 0)
    for block in story.chain.blocks:
        for transaction in block.transactions:
            counts[transaction.type] += 1
    assert all(counts.values())
    assert sum(counts.values()) > 500


def test_there_are_uncles_withdrawals_blobs_and_empty_blocks(story):
    blocks = story.chain.blocks
    assert sum(len(block.uncles) for block in blocks) == 5
    assert sum(len(block.withdrawals or ()) for block in blocks) == 22
    assert max(block.header.blob_gas_used or 0 for block in blocks) == 18 * 2**17
    assert any(not block.transactions for block in blocks)
    assert max(len(block.transactions) for block in blocks) == 120


def test_requests_of_all_kinds_are_made(story):
    by_number = {
        note.number: outcome(story, note.number).requests for note in story.notes
    }
    assert by_number[75] is None
    assert by_number[76] == []
    assert [request[0] for request in by_number[84]] == [0, 1, 2]
    deposits, withdrawals, consolidations = by_number[84]
    assert len(deposits) == 1 + 2 * 192
    assert deposits[1:49] == PUBLIC_KEY
    assert len(withdrawals) == 1 + 2 * 76
    assert len(consolidations) == 1 + 2 * 116
    assert [request[0] for request in by_number[107]] == [0, 1, 2, 3, 4]
    *_, builder_deposits, builder_exits = by_number[107]
    # The amount's bytes are reversed, as in a validator's deposit.
    assert builder_deposits[1:81] == builder_deposit()[:80]
    assert builder_deposits[81:89] == builder_deposit()[80:88][::-1]
    assert builder_exits[1:] == BOB.address + PUBLIC_KEY


def test_frontier_s_empty_accounts_vanish_when_they_are_touched(story, verified):
    results, state = verified
    assert results[3].changes.accounts[EMPTY_ACCOUNTS[0]].balance == 0
    assert results[15].changes.accounts[EMPTY_ACCOUNTS[0]] is None
    assert state.account(EMPTY_ACCOUNTS[0]) is None
    # The ether that the account has inherited.
    assert state.account(EMPTY_ACCOUNTS[2]).balance == 50


def test_code_that_is_not_paid_for_makes_an_empty_contract_in_frontier(story):
    state = story.chain.state
    assert state.account(story["stillborn"]) is None or not story.has_code(
        story["stillborn"]
    )
    assert outcome(story, 4).receipts[-1].gas_used < 50_000
    assert outcome(story, 8).receipts[-1].gas_used == 80_000


def test_delegations_are_set_used_and_cleared(story, verified):
    results, state = verified
    designator = b"\xef\x01\x00" + story["wallet"]
    set_, used, _, cleared = (results[n - 1].changes for n in (77, 78, 79, 80))
    assert set_.codes[set_.accounts[ERIN.address].code_hash] == designator
    assert set_.storage[ERIN.address] == {0: 1}
    assert used.storage[ERIN.address] == {0: 2}
    assert cleared.accounts[ERIN.address].code_hash == EMPTY_CODE_HASH
    dave = state.account(Signer("dave").address)
    assert state.code(dave.code_hash) == designator
    assert state.code(state.account(ERIN.address).code_hash) == designator


def test_precompiles_say_what_they_should(story, verified):
    ones = 2**256 - 1
    word = {number: slot(story, "precompiles", number) for number in (*range(12), 256)}
    assert word[2] == int.from_bytes(sha256(b"abc").digest(), "big")
    assert f"{word[3]:040x}" == "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"
    assert word[4].to_bytes(32, "big").rstrip(b"\0") == b"identity"
    assert word[6] == ones  # the second call's point is not on the curve
    assert word[8] == 1
    assert (
        word[9].to_bytes(32, "big").hex().startswith("ba80a53f981c4d0d6a2797b69f12f6e9")
    )
    assert word[10] == 4096  # field elements per blob
    assert word[256] == 1
    assert word[5] == ones  # the last modulus is too long for Osaka
    results, _ = verified
    byzantium = results[24].changes.storage[story["precompiles"]]
    assert byzantium[5] == pow(3, 2**255 + 1, 2**256 - 189)
    assert (
        byzantium[7]
        == 0x039730EA8DFF1254C0FEE9C0EA777D29A9C710B7E616683F194F18C43B43B869
    )


def test_leading_zeros_are_counted(story):
    assert [slot(story, "leading zeros", n) for n in (1, 2, 3)] == [255, 256, 0]


def test_state_gas_decides_and_is_given_back(story):
    block, receipts = story.chain.blocks[103], outcome(story, 104).receipts
    larger = block.transactions[0]
    state_gas = 183_600 + 1530 * (MAX_CODE_SIZE + 1)
    assert 2**24 < state_gas < receipts[0].gas_used < larger.gas
    # Execution gas alone does not reach it, and the receipts' sum is above it.
    assert state_gas < block.header.gas_used < receipts[-1].cumulative_gas_used
    # A creation that fails pays for no account.
    assert max(receipt.gas_used for receipt in receipts[3:]) < 183_600


def test_an_account_that_is_not_paid_for_does_not_come_into_being(story):
    paid, nearly_paid = map(story.chain.state.account, NEWCOMERS)
    assert paid.balance == 2
    assert nearly_paid is None


def test_deep_instructions_and_the_slot_number_are_stored(story):
    assert [slot(story, "deep stack", n) for n in (1, 2, 3, 4)] == [2, 1, 15, 5]


def test_transfers_are_logged_unless_they_are_undone(story):
    counts = [len(receipt.logs) for receipt in outcome(story, 106).receipts]
    assert counts == [2, 1, 2, 2, 3, 2, 1]
    left = story.chain.state.account(story["leaves ether"])
    assert (left.balance, left.nonce, left.code_hash) == (5, 0, EMPTY_CODE_HASH)


def test_access_lists_name_what_is_used_and_not_what_is_announced(story):
    accounts = rlp.decode(outcome(story, 103).access_list.raw)
    slots = {address: (changed, read) for address, changed, read, *_ in accounts}
    assert story["vault"] not in slots
    assert [len(part) for part in slots[story["token"]]] == [2, 0]
    assert slots[story["slots"]] == ([], [b"\x32"])


def test_self_destruct_spares_contracts_since_cancun(story):
    assert story.has_code(story["survivor"])
    assert not story.has_code(story["gone at birth again"])
    assert not story.has_code(story["to a new account"])


def test_the_proxy_keeps_its_own_storage(story):
    assert slot(story, "proxy", 0) == 2
    assert slot(story, "vault", 0) == 1
    account = story.chain.state.account(story["proxy"])
    assert story.chain.state.code(account.code_hash) == contract("proxy").runtime


def test_the_readme_describes_every_block(story):
    readme = sample_files(story)["README.md"].decode()
    for note, block in zip(story.notes, story.chain.blocks, strict=True):
        assert block.header.extra_data == note.text.encode()
        assert f"| {note.number} | {note.fork} | {note.text} |" in readme
