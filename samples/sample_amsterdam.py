"""The sample chain under Amsterdam: state gas, access lists, transfer logs."""

from __future__ import annotations

from eth_typing import Address

from abi.encoding import mapping_slot, word
from evm.blocks import Withdrawal
from evm.requests import (
    BUILDER_DEPOSIT_ADDRESS,
    BUILDER_EXIT_ADDRESS,
    CONSOLIDATION_REQUEST_ADDRESS,
    WITHDRAWAL_REQUEST_ADDRESS,
)
from samples.assembler import assemble, init_code
from samples.builder import GAS_PRICE_WEI
from samples.sample_stake import (
    ERIN,
    NO_CODE,
    OTHER_PUBLIC_KEY,
    PUBLIC_KEY,
    deposit,
)
from samples.sample_work import BENEFICIARY, MAX_CODE_SIZE, SELF_DESTRUCT_TO_SELF
from samples.signers import Signer
from samples.story import ALICE, BOB, CAROL, ETHER, Story
from samples.system_contracts import DEPOSIT_CONTRACT

FRAN = Signer("fran")
"""An account that comes into being by delegating."""

NEWCOMERS = tuple(Address(bytes([0xA1 + i]) * 20) for i in range(2))
"""The first one is paid, the second one nearly."""

GAS_TO_NEW_ACCOUNT = 21_000 + 183_600
"""Execution gas of a transfer, and state gas of an account."""

DEEP_STACK = (
    " ".join(f"PUSH {n}" for n in range(1, 19))
    + " DUPN 17 PUSH 1 SSTORE"  # the 17th item from the top, 2
    + " SWAPN 17 PUSH 2 SSTORE"  # the top, 18, for the lowest item, 1
    + " EXCHANGE 1 2 POP PUSH 3 SSTORE"  # 16 for 15
    + " SLOTNUM PUSH 4 SSTORE"
)
"""Constructor that stores what DUPN, SWAPN, EXCHANGE and SLOTNUM do in slots 1 to 4."""

FORBIDDEN_DEPTH = bytes.fromhex("e65b")
"""DUPN with a byte that may be a jump destination."""


def amsterdam(story: Story) -> None:
    """Add blocks under Amsterdam."""
    # Its access list has the system contracts alone.
    story.block("amsterdam begins")
    _transfers(story)
    _access_lists(story)
    _state_gas(story)
    story.deploy("deep stack", init_code(b"", DEEP_STACK))
    story.deploy("forbidden depth", FORBIDDEN_DEPTH, gas=300_000)
    story.deploy("shallow stack", assemble("PUSH0 SWAPN 17"), gas=300_000)
    story.block("SLOTNUM DUPN SWAPN EXCHANGE")
    _transfer_logs(story)
    _delegations_and_requests(story)
    story.transfers(60)
    story.block(
        "the head of the sample chain",
        withdrawals=[Withdrawal(21, 51, ERIN.address, 7)],
    )


def _transfers(story: Story) -> None:
    """Pay by the new prices: to a new account, without value, to oneself."""
    paid, nearly_paid = NEWCOMERS
    story.send(BOB, paid, value=1, gas=GAS_TO_NEW_ACCOUNT)
    story.send(CAROL, nearly_paid, value=1, gas=GAS_TO_NEW_ACCOUNT - 1)
    story.send(BOB, paid, value=1, gas=21_000)
    story.send(BOB, paid, gas=15_000)
    story.send(BOB, BOB.address, value=1, gas=12_000)
    story.block("new accounts cost state gas")


def _access_lists(story: Story) -> None:
    """Announce slots that are used, slots that are not, and data above the floor."""
    used = tuple(mapping_slot(holder.address, position=0) for holder in (ALICE, BOB))
    story.call(
        ALICE,
        "token",
        "transfer(address,uint256)",
        BOB.address,
        9,
        gas_price=GAS_PRICE_WEI,
        access_list=[(story["token"], used)],
    )
    # What is announced and not used is paid for, and is not in the block's list.
    unused = [(story["vault"], (0, 1)), (story["slots"], (9,))]
    story.send(
        BOB,
        CAROL.address,
        value=1,
        gas_price=GAS_PRICE_WEI,
        access_list=unused,
    )
    story.send(CAROL, BOB.address, b"\xff" * 500, access_list=unused)
    # Reads a slot, and writes it back.
    story.call(BOB, "slots", "restore(uint256,uint256)", 50, 10)
    story.block("access lists, announced and made")


def _state_gas(story: Story) -> None:
    """Use more state gas than execution gas, and get it back for failed creations."""
    # Limits above 2^24: what is above is reserved for state gas.
    story.deploy("larger", init_code(bytes(MAX_CODE_SIZE + 1)), gas=41_000_000)
    story.call(BOB, "slots", "fill(uint256,uint256)", 200, 40, gas=20_000_000)
    # The second creation collides and burns 63/64 of the gas left, not the state gas.
    story.call(ALICE, "factory", "createTwice(uint256)", 12, gas=2_500_000)
    story.call(ALICE, "factory", "createFailing()")
    story.deploy("never made", assemble("PUSH0 PUSH0 REVERT"))
    story.block("more state than execution")


def _transfer_logs(story: Story) -> None:
    """Move ether in all ways that leave a log."""
    attempt = "attempt(address,bytes4)"
    story.call(BOB, "relay", attempt, CAROL.address, 0, value=7)
    # The token refuses ether, and so the second of the two logs is undone.
    story.call(BOB, "relay", attempt, story["token"], 0, value=7)
    payments = word(CAROL.address) + word(5) + word(BENEFICIARY) + word(6)
    story.send(CAROL, ERIN.address, payments)
    story.call(ALICE, "factory", "create2(uint256)", 13, value=5, gas=1_000_000)
    story.call(
        ALICE,
        "factory",
        "createAndDestroy(uint256,address)",
        14,
        BENEFICIARY,
        value=2,
        gas=1_000_000,
    )
    story.send(BOB, story["survivor"], word(CAROL.address), value=4)
    # The contract vanishes, its ether remains (EIP-8246).
    story.deploy("leaves ether", assemble(SELF_DESTRUCT_TO_SELF), value=5)
    story.block("ether moves and leaves logs")


def _delegations_and_requests(story: Story) -> None:
    """Delegate from a new account, clear and set again; make requests of all kinds."""
    chain, wallet = story.chain, story["wallet"]
    story.send(
        ALICE,
        FRAN.address,
        word(CAROL.address) + word(1),
        value=ETHER,
        gas=500_000,
        authorization_list=[chain.authorize(FRAN, wallet)],
    )
    again = [chain.authorize(ERIN, NO_CODE), chain.authorize(ERIN, wallet, ahead=1)]
    story.send(BOB, CAROL.address, authorization_list=again)
    gas = 1_000_000
    story.send(ALICE, DEPOSIT_CONTRACT, deposit(3))
    amount = (10**9).to_bytes(8, "big")
    story.send(BOB, WITHDRAWAL_REQUEST_ADDRESS, PUBLIC_KEY + amount, value=1, gas=gas)
    both = PUBLIC_KEY + OTHER_PUBLIC_KEY
    story.send(CAROL, CONSOLIDATION_REQUEST_ADDRESS, both, value=1, gas=gas)
    story.send(
        ALICE, BUILDER_DEPOSIT_ADDRESS, builder_deposit(), value=ETHER + 1, gas=gas
    )
    story.send(BOB, BUILDER_EXIT_ADDRESS, PUBLIC_KEY, value=1, gas=gas)
    # Without the fee the exit is refused.
    story.send(BOB, BUILDER_EXIT_ADDRESS, PUBLIC_KEY, gas=gas)
    story.block("delegations, builders' requests")


def builder_deposit() -> bytes:
    """Return the input of a builder's deposit of one ether (EIP-8282)."""
    credentials = b"\x03" + bytes(11) + ALICE.address
    return PUBLIC_KEY + credentials + (10**9).to_bytes(8, "big") + bytes(96)


SCENES = (amsterdam,)
