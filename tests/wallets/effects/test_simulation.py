"""Effects of transactions, which the service simulates on a test chain."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from abi.erc20 import Token
from tests.support.named_token import STARTING_TOKENS, TOKEN, WARY_TOKEN, call_data
from tests.support.signing import SIGNER
from tests.support.wallet import Rig
from tests.wallets.effects.conftest import CHAIN_ID, node_for
from wallets.effects.movements import ETHER, Allowance, Movement
from wallets.effects.simulation import (
    MAX_ASSETS,
    Asset,
    Base,
    Change,
    Effects,
    simulate,
    with_balances,
)
from wallets.pages.effects import MAX_LINES, shown
from wallets.signing.known.phrases import plain
from wallets.signing.transactions import ACCESS_LIST, DYNAMIC_FEE, LEGACY, Transaction
from wallets.upstream import ChainNode, UpstreamRefused

TO = "0x" + "b0" * 20
MOST = 2**256 - 1
BASE = Base(1, "0x" + "b1" * 32)


def transaction(
    to: str | None = TOKEN, data: bytes = b"", value: int = 0, gas: int = 200_000
) -> Transaction:
    return Transaction(DYNAMIC_FEE, CHAIN_ID, to, value, data, gas, 10**9, 10**9)


def effects(rig: Rig, node: ChainNode, wanted: Transaction) -> Effects:
    async def both() -> Effects:
        found = await simulate(node, SIGNER, wanted)
        if found.base is None or found.failure:
            return found
        return await with_balances(node, SIGNER, wanted, found, found.base)

    found: Effects = rig.run(both())
    return found


def test_transfer_of_ether(rig: Rig, node: ChainNode):
    found = effects(rig, node, transaction(TO, value=10**18, gas=21_000))
    assert found.base is not None
    assert found.base.number == 1
    assert found.fee == 21_000 * 10**9
    assert found.movements == [Movement(ETHER, SIGNER, TO, 10**18)]
    assert found.changes == [Change(Asset(ETHER), 10 * 10**18, 9 * 10**18)]
    page = shown(found, SIGNER)
    assert list(map(plain, page.changes or [])) == ["−1 ether, new balance 9 ether"]
    assert plain(page.movements[0]).startswith("1 ether from this account to 0xB0B0")


def test_transfer_of_tokens(rig: Rig, node: ChainNode):
    data = call_data("transfer(address,uint256)", TO, 1550)
    found = effects(rig, node, transaction(data=data))
    assert found.movements == [Movement(TOKEN, SIGNER, TO, 1550)]
    left = STARTING_TOKENS - 1550
    assert Change(Asset(TOKEN), STARTING_TOKENS, left) in (found.changes or [])
    assert found.tokens == {TOKEN: Token("ABC", 2)}
    page = shown(found, SIGNER)
    assert plain((page.changes or [])[0]).startswith("−15.5 “ABC” (token 0x7C7C")
    assert plain((page.changes or [])[0]).endswith("new balance 984.5")
    assert page.has_symbols


def test_allowance(rig: Rig, node: ChainNode):
    data = call_data("approve(address,uint256)", TO, MOST)
    found = effects(rig, node, transaction(data=data))
    assert found.allowances == [Allowance(TOKEN, SIGNER, TO, MOST)]
    assert "may move an unlimited amount of “ABC”" in plain(
        shown(found, SIGNER).allowances[0]
    )


def test_transfer_that_is_only_logged_changes_no_balance(rig: Rig, node: ChainNode):
    data = call_data("lie(address,uint256)", TO, 1550)
    found = effects(rig, node, transaction(data=data))
    assert found.movements == [Movement(TOKEN, SIGNER, TO, 1550)]
    assert shown(found, SIGNER).changes == []


def test_tokens_that_move_without_a_log_are_found(rig: Rig, node: ChainNode):
    data = call_data("take(address,uint256)", TO, 1550)
    found = effects(rig, node, transaction(data=data))
    assert found.movements == []
    (change,) = shown(found, SIGNER).changes or []
    assert plain(change).startswith("−15.5 “ABC”")


def test_failure_has_its_reason(rig: Rig, node: ChainNode):
    found = effects(rig, node, transaction(data=call_data("refuse()")))
    assert found.failure == "execution reverted: not allowed"
    assert found.fee > 21_000 * 10**9
    page = shown(found, SIGNER)
    assert page.block == 1
    assert page.fee.startswith("0.00002")


def test_gas_limit_that_is_too_low_fails(rig: Rig, node: ChainNode):
    data = call_data("transfer(address,uint256)", TO, 1550)
    found = effects(rig, node, transaction(data=data, gas=30_000))
    assert "out of gas" in found.failure


def test_transaction_that_no_block_can_include(rig: Rig, node: ChainNode):
    found = effects(rig, node, transaction(TO, value=11 * 10**18, gas=21_000))
    assert found.failure == (
        "insufficient funds. The account has 10 ether, and the transaction needs up to "
        "11.000021 ether for its value and fee"
    )
    assert found.base is None
    few = effects(rig, node, transaction(TO, gas=20_000))
    assert "intrinsic gas too low" in few.failure


def test_creation_of_a_contract(rig: Rig, node: ChainNode):
    found = effects(rig, node, transaction(None, bytes.fromhex("6001600055"), value=5))
    assert not found.failure
    (moved,) = found.movements
    assert (moved.sender, moved.amount) == (SIGNER, 5)


def test_prices_that_no_block_accepts(rig: Rig, node: ChainNode):
    cheap = replace(transaction(TO), max_fee_per_gas=7, max_priority_fee_per_gas=7)
    found = effects(rig, node, cheap)
    assert "max fee per gas less than block base fee" in found.failure
    assert found.base is None
    # The account can pay for the transfer, but not also for its gas.
    whole = effects(rig, node, transaction(TO, value=10 * 10**18, gas=21_000))
    assert "insufficient funds" in whole.failure


@pytest.mark.parametrize("kind", [LEGACY, ACCESS_LIST, DYNAMIC_FEE])
def test_contract_does_not_notice_the_simulation(rig: Rig, node: ChainNode, kind: int):
    """The contract behaves differently without gas prices, or in another block than the next."""
    data = call_data("wary(address,uint256)", TO, 1550)
    found = effects(rig, node, replace(transaction(data=data), type=kind))
    assert found.movements == [Movement(TOKEN, SIGNER, TO, 1550)]
    left = STARTING_TOKENS - 1550
    assert Change(Asset(TOKEN), STARTING_TOKENS, left) in (found.changes or [])


def test_token_cannot_tell_balances_before_from_those_after(rig: Rig, node: ChainNode):
    found = effects(rig, node, transaction(WARY_TOKEN, b"data"))
    (change,) = [c for c in found.changes or [] if c.asset == Asset(WARY_TOKEN)]
    assert change.before == change.after


def test_transaction_with_all_gas_of_a_block_has_balances(rig: Rig, node: ChainNode):
    head = rig.run(node.call("eth_getBlockByNumber", "latest", False))
    gas = int(head["gasLimit"], 16)
    found = effects(rig, node, transaction(TO, value=1, gas=gas))
    assert found.changes == [Change(Asset(ETHER), 10 * 10**18, 10 * 10**18 - 1)]


def test_slow_simulations_of_a_user_do_not_delay_those_of_another(
    rig: Rig, node: ChainNode
):
    other = node_for(rig, rig.user.pk + 1)
    quick = transaction(data=call_data("transfer(address,uint256)", TO, 77))

    def slow(number: int) -> Transaction:
        return transaction(data=call_data("spin()", number), gas=1_000_000)

    async def race() -> int:
        # The workers have started before the executions are timed.
        await asyncio.gather(*(simulate(node, SIGNER, slow(n)) for n in (1, 2)))
        await simulate(other, SIGNER, replace(quick, gas=190_000))
        many = [
            asyncio.create_task(simulate(node, SIGNER, slow(number)))
            for number in range(3, 19)
        ]
        await asyncio.sleep(0)
        assert not (await simulate(other, SIGNER, quick)).failure
        ended = sum(each.done() for each in many)
        for each in many:
            each.cancel()
        await asyncio.gather(*many, return_exceptions=True)
        return ended

    # In the order of the requests, at least 14 of the 16 would end earlier.
    assert rig.run(race()) < 8


def test_error_that_is_not_the_transactions_is_raised(rig: Rig):
    class Busy(ChainNode):
        async def call(self, method: str, *params: Any) -> Any:
            raise UpstreamRefused(-32005, "too many calls")

    with pytest.raises(UpstreamRefused):
        rig.run(simulate(Busy(), SIGNER, transaction()))


class Reporting(ChainNode):
    """A node whose simulation reports movements, and balances of the first tokens."""

    def __init__(self, movements: list[Movement]) -> None:
        self.movements = movements

    async def call(self, method: str, *params: Any) -> Any:
        blocks = params[0]["blockStateCalls"]
        failed = {"status": "0x0", "returnData": "0x", "logs": []}
        return [
            {
                "number": "0x2",
                "calls": [
                    {**failed, "status": "0x1", "returnData": "0x" + "00" * 32}
                    if call["to"] not in {one.token for one in self.movements[1:]}
                    else failed
                    for call in block["calls"]
                ],
            }
            for block in blocks
        ]


def test_movements_that_hide_another_one_are_warned_about(rig: Rig):
    """A contract reports transfers of many tokens to the account, and takes another token."""
    tokens = [f"0x{number:040x}" for number in range(1, 41)]
    movements = [Movement(token, TO, SIGNER, 1) for token in tokens]
    movements.append(Movement(TOKEN, SIGNER, TO, 1550))
    found = Effects(BASE, movements=movements)
    node = Reporting([movements[-1]])
    wanted = transaction(TO, b"1234")
    read = rig.run(with_balances(node, SIGNER, wanted, found, BASE))
    assert [change.asset.token for change in read.changes][:2] == [ETHER, TOKEN]
    assert len(read.changes) == MAX_ASSETS
    assert read.unread == len(tokens) + 2 - MAX_ASSETS
    page = shown(read, SIGNER)
    assert "from this account to 0xB0B0" in plain(page.movements[0])
    assert (page.unread, page.hidden) == (read.unread, len(movements) - MAX_LINES)


def test_token_without_a_balance_is_counted_as_unread(rig: Rig):
    movements = [Movement(token, TO, SIGNER, 1) for token in (TOKEN, "0x" + "99" * 20)]
    found = Effects(BASE, movements=movements)
    wanted = transaction(TO, b"1234")
    read = rig.run(with_balances(Reporting(movements), SIGNER, wanted, found, BASE))
    assert read.unread == 1
