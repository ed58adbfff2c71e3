from evm.requests import WITHDRAWAL_REQUEST_ADDRESS
from samples.signers import Signer
from tests.nodeapi.chain.verifying import verify_blocks
from tests.scenarios import SCENARIOS, branches
from tests.scenarios.base import CYD, FACTORY, FRESH, SLOTS, child_of


def run(name):
    genesis, blocks = SCENARIOS[name]()
    return verify_blocks(genesis, blocks)


def test_a_contract_that_is_made_again_begins_with_nothing():
    genesis, blocks = SCENARIOS["recreate_in_one_block_istanbul"]()
    results, state = verify_blocks(genesis, blocks[:2])
    again, gone, paid = child_of(0), child_of(1), child_of(3)
    assert results[0].changes.storage[again].keys() == {0, 1, 2}
    assert state.account(again).balance == 9
    assert state.storage(again, 1) == 2  # the block of its creation
    assert state.storage(again, 2) == 1  # two earlier calls do not count
    assert state.account(gone) is None
    assert gone not in results[1].changes.storage
    assert state.account(paid).balance == 77
    assert list(state.live_slots(paid)) == []


def test_recreation_leaves_no_storage_between():
    results, state = run("recreate_across_blocks_shanghai")
    child = child_of(1)
    destroyed = results[2].changes
    assert destroyed.storage[child] == {0: 0, 1: 0, 2: 0}
    assert state.storage(child, 2) == 0
    assert state.storage(child, 1) == len(results)


def test_restored_slots_are_no_change():
    results, _ = run("write_then_restore_istanbul")
    assert SLOTS not in results[1].changes.storage
    assert SLOTS not in results[2].changes.storage


def test_empty_accounts_come_and_go():
    results, state = run("empty_accounts")
    frontier, spurious = results[0].changes, results[5].changes
    assert frontier.accounts[FRESH[0]].balance == 0
    assert spurious.accounts[FRESH[0]] is None
    assert state.account(FRESH[1]).balance == 1
    assert state.account(FRESH[4]) is not None  # the touch was reverted
    assert state.account(FRESH[6]) is not None  # never touched again
    assert state.account(FRESH[3]) is None
    assert state.account(FRESH[14]) is None
    assert state.account(FRESH[15]) is not None


def test_delegations_end_as_the_last_word_says():
    _, state = run("delegations_prague")
    dot = state.account(Signer("dot").address)
    assert state.code(dot.code_hash) == b"\xef\x01\x00" + CYD.address
    assert state.storage(CYD.address, 2) == 3  # storage outlives the delegation
    assert state.account(Signer("eve").address).nonce == 1


def test_withdrawals_of_nothing_make_no_account():
    _, state = run("withdrawals_shanghai")
    assert state.account(FRESH[1]) is None
    assert state.account(FRESH[15]) is not None
    assert state.account(FRESH[0]).balance == 5 * 10**9


def test_the_request_queue_runs_empty():
    results, state = run("system_contracts_prague")
    counts = [len(result.outcome.requests) for result in results]
    assert counts[0] == 2
    assert counts[1] == 2
    assert counts[-1] == 0
    assert state.storage(WITHDRAWAL_REQUEST_ADDRESS, 2) == 0
    assert state.storage(WITHDRAWAL_REQUEST_ADDRESS, 3) == 0


def test_self_destruct_since_cancun_spares_what_was_there_before():
    _, before = run("selfdestruct_heirs_shanghai")
    _, after = run("selfdestruct_heirs_cancun")
    assert before.storage(FACTORY, 1) == after.storage(FACTORY, 1)
    assert before.account(FRESH[0]).balance == after.account(FRESH[0]).balance


def test_both_branches_are_valid_and_differ():
    genesis, trunk, left, right = branches()
    assert len(left) == len(right) + 1
    _, first = verify_blocks(genesis, trunk + left)
    _, second = verify_blocks(genesis, trunk + right)
    assert first.root == left[-1].header.state_root
    assert second.root == right[-1].header.state_root
    assert first.account(child_of(5)) is None
    assert second.account(child_of(5)) is not None
