"""The sample chain under proof of stake: Paris to BPO2, scene by scene."""

from __future__ import annotations

from hashlib import sha256

from eth_typing import Address, Hash32

from abi.encoding import call_data, word
from evm.blocks import Withdrawal
from evm.execution import BEACON_ROOTS_ADDRESS, HISTORY_STORAGE_ADDRESS
from evm.requests import (
    CONSOLIDATION_REQUEST_ADDRESS,
    WITHDRAWAL_REQUEST_ADDRESS,
)
from samples.assembler import assemble, init_code
from samples.contracts import contract
from samples.precompile_inputs import (
    BLS_G1_ADD_INPUT,
    P256_VERIFY_INPUT,
    POINT_EVALUATION_INPUT,
    modexp_input,
)
from samples.sample_work import BENEFICIARY, SELF_DESTRUCT_TO_SELF, child_address
from samples.signers import Signer
from samples.story import ALICE, BOB, CAROL, DAVE, ETHER, Story
from samples.system_contracts import DEPOSIT_CONTRACT

NO_CODE = Address(bytes(20))
"""The address to delegate to in order to clear a delegation."""

PUBLIC_KEY = bytes(range(48))
OTHER_PUBLIC_KEY = bytes(range(48, 96))
"""A validator's public key. The execution layer accepts any 48 bytes."""

ERIN = Signer("erin")
"""An account that delegates without having sent a transaction."""


def paris(story: Story) -> None:
    """Add blocks under Paris: the first ones without a miner."""
    story.block("the first block after the merge")
    story.send(BOB, story["environment"])
    story.block("PREVRANDAO, known to contracts")
    story.transfers(120)
    story.block("another hundred and twenty")
    again = child_address(story, 1)
    story.call(BOB, "factory", "destroy(address,address)", again, BENEFICIARY)
    story.call(ALICE, "factory", "create2(uint256)", 1, value=1)
    story.block("destroyed and made again")
    story.block("nothing happens")


def shanghai(story: Story) -> None:
    """Add blocks under Shanghai: withdrawals, PUSH0, the limit of init code."""
    newcomer, stranger = Address(b"\x77" * 20), Address(b"\x78" * 20)
    story.block(
        "the first withdrawals",
        withdrawals=[
            Withdrawal(0, 10, BOB.address, 1_000_000_000),
            Withdrawal(1, 11, newcomer, 1),
            Withdrawal(2, 12, stranger, 0),
        ],
    )
    story.deploy("zero pusher", init_code(assemble("PUSH0 PUSH0 RETURN")))
    story.send(CAROL, story["zero pusher"])
    story.block("PUSH0")
    story.send(BOB, DAVE.address, value=1)
    story.block("a warm coinbase", coinbase=DAVE.address)
    # The inner CREATE takes more init code than allowed, and fails as a whole.
    story.deploy("gourmand", assemble("PUSH 49153 PUSH 0 PUSH 0 CREATE PUSH 0 SSTORE"))
    story.block("too much init code")
    story.block(
        "sixteen withdrawals",
        withdrawals=[
            Withdrawal(3 + i, 20 + i, Address(bytes([0x80 + i]) * 20), 32 * 10**9)
            for i in range(16)
        ],
    )
    child = child_address(story, 1)
    story.call(BOB, "factory", "destroy(address,address)", child, BENEFICIARY)
    story.block(
        "a withdrawal to the destroyed",
        withdrawals=[Withdrawal(19, 40, child, 5)],
    )


def cancun(story: Story) -> None:
    """Add blocks under Cancun: blobs, transient storage, EIP-6780's SELFDESTRUCT."""
    story.block("the first beacon root")
    story.deploy("blobs", contract("blobs").init_code())
    story.block("a contract that asks for blobs")
    story.send(BOB, story["blobs"], blob_versioned_hashes=blob_hashes(1))
    story.block("a transaction with a blob")
    for sender in (BOB, CAROL):
        story.send(sender, story["blobs"], blob_versioned_hashes=blob_hashes(3))
    story.block("six blobs")
    story.call(BOB, "slots", "transient(uint256,uint256)", 40, 4)
    mcopy = "PUSH 7 PUSH0 MSTORE PUSH 32 PUSH0 PUSH 5 MCOPY PUSH 5 MLOAD PUSH0 SSTORE"
    story.deploy("copier", init_code(b"", mcopy))
    point = word(10) + POINT_EVALUATION_INPUT
    story.send(BOB, story["precompiles"], data=point, gas=500_000)
    story.block("TSTORE TLOAD MCOPY, blob proofs")
    story.deploy("survivor", contract("child").init_code(), value=3)
    story.deploy("gone at birth again", assemble(SELF_DESTRUCT_TO_SELF), value=5)
    story.block("self-destruct at birth only")
    story.send(BOB, story["survivor"], data=word(story["survivor"]))
    story.send(CAROL, story["survivor"], value=1)
    story.send(BOB, story["survivor"], data=word(CAROL.address))
    story.call(
        ALICE,
        "factory",
        "createAndDestroy(uint256,address)",
        9,
        BENEFICIARY,
        value=2,
    )
    story.block("self-destruct that spares")
    previous = story.chain.head.timestamp
    story.send(BOB, BEACON_ROOTS_ADDRESS, data=word(previous))
    story.send(BOB, BEACON_ROOTS_ADDRESS, data=word(previous + 1))
    story.block("beacon roots, asked for")
    story.send(DAVE, BOB.address, value=9, blob_versioned_hashes=blob_hashes(5))
    story.transfers(20)
    story.block("blobs and transfers")


def prague(story: Story) -> None:
    """Add blocks under Prague: delegations, requests, block hashes in the state."""
    story.deploy("wallet", contract("wallet").init_code())
    story.block("a wallet to delegate to")
    _delegations(story)
    _requests(story)
    story.send(BOB, CAROL.address, data=b"\xff" * 2000, gas=101_000)
    story.block("data costs a floor")
    parent = story.chain.head.number
    story.send(BOB, HISTORY_STORAGE_ADDRESS, data=word(parent))
    add = word(0x0B) + BLS_G1_ADD_INPUT
    story.send(BOB, story["precompiles"], data=add, gas=500_000)
    story.send(CAROL, BOB.address, value=1, blob_versioned_hashes=blob_hashes(9))
    story.block("parent hashes, BLS, nine blobs")


def _delegations(story: Story) -> None:
    chain, wallet = story.chain, story["wallet"]
    delegation = chain.authorize(ERIN, wallet)
    story.send(BOB, ERIN.address, value=ETHER, authorization_list=[delegation])
    story.block("erin delegates, bob pays")
    payments = word(CAROL.address) + word(5) + word(BENEFICIARY) + word(6)
    story.send(CAROL, ERIN.address, data=payments)
    story.block("a delegated account is called")
    own = chain.authorize(DAVE, wallet, ahead=1)
    story.send(DAVE, DAVE.address, data=payments, authorization_list=[own])
    story.block("dave delegates for himself")
    clearing = chain.authorize(ERIN, NO_CODE)
    void = [
        BOB.authorize(chain.config.chain_id + 1, wallet, 0),
        BOB.authorize(chain.config.chain_id, wallet, 999_999),
        ALICE.authorize(0, NO_CODE, 0),
    ]
    story.send(BOB, CAROL.address, authorization_list=[clearing, *void])
    story.send(CAROL, ERIN.address, data=payments)
    story.block("delegation cleared, others void")


def _requests(story: Story) -> None:
    withdrawal = PUBLIC_KEY + (10**9).to_bytes(8, "big")
    consolidation = PUBLIC_KEY + OTHER_PUBLIC_KEY
    story.send(BOB, WITHDRAWAL_REQUEST_ADDRESS, data=withdrawal, value=1)
    story.block("a withdrawal request")
    story.send(CAROL, CONSOLIDATION_REQUEST_ADDRESS, data=consolidation, value=1)
    story.block("a consolidation request")
    story.send(ALICE, DEPOSIT_CONTRACT, data=deposit(0), value=0)
    story.block("a deposit")
    for index in (1, 2):
        story.send(ALICE, DEPOSIT_CONTRACT, data=deposit(index))
        story.send(BOB, WITHDRAWAL_REQUEST_ADDRESS, data=withdrawal, value=1)
        story.send(CAROL, CONSOLIDATION_REQUEST_ADDRESS, data=consolidation, value=100)
    # Without the fee a request is refused.
    story.send(BOB, WITHDRAWAL_REQUEST_ADDRESS, data=withdrawal)
    story.block("requests of all three kinds")


def osaka(story: Story) -> None:
    """Add blocks under Osaka: CLZ, P-256 verification, MODEXP's new price."""
    story.block("osaka begins")
    zeros = (
        "PUSH 1 CLZ PUSH 1 SSTORE PUSH 0 CLZ PUSH 2 SSTORE PUSH 0 NOT CLZ PUSH 3 SSTORE"
    )
    story.deploy("leading zeros", init_code(b"", zeros))
    story.block("CLZ counts leading zeros")
    for data in (P256_VERIFY_INPUT[:-1] + b"\0", P256_VERIFY_INPUT):
        story.send(CAROL, story["precompiles"], data=word(0x100) + data)
    story.block("P256VERIFY, wrong and right")
    for size in (1024, 1025):
        data = modexp_input(b"\x02" * size, b"\x03", b"\x05" * 32)
        story.send(CAROL, story["precompiles"], data=word(5) + data, gas=200_000)
    story.block("MODEXP of 1024 and 1025 bytes")
    story.send(BOB, story["blobs"], blob_versioned_hashes=blob_hashes(6))
    story.block("as many blobs as may be")
    story.transfers(120)
    story.block("a hundred and twenty, once more")


def bpo1(story: Story) -> None:
    """Add blocks under BPO1, which permits more blobs."""
    for sender in (BOB, CAROL):
        story.send(sender, story["blobs"], blob_versioned_hashes=blob_hashes(6))
    story.block("twelve blobs")
    story.call(BOB, "relay", "descend(uint256)", 9, gas=2_000_000)
    story.block("nested calls of today")
    story.call(BOB, "slots", "fill(uint256,uint256)", 50, 10)
    story.call(BOB, "slots", "clear(uint256,uint256)", 50, 10)
    story.call(BOB, "slots", "restore(uint256,uint256)", 50, 10)
    story.block("written and gone within a block")
    story.block("quiet")


def bpo2(story: Story) -> None:
    """Add blocks under BPO2, which permits more blobs than BPO1."""
    for sender in (BOB, CAROL, DAVE):
        story.send(sender, story["blobs"], blob_versioned_hashes=blob_hashes(6))
    story.block("eighteen blobs")
    delegation = story.chain.authorize(ERIN, story["wallet"])
    story.send(ALICE, BOB.address, value=1, gas_price=20 * 10**9)
    story.send(
        ALICE,
        BOB.address,
        value=1,
        gas_price=20 * 10**9,
        access_list=[(story["vault"], (0,))],
    )
    story.call(ALICE, "token", "transfer(address,uint256)", BOB.address, 5)
    story.send(ALICE, BOB.address, blob_versioned_hashes=blob_hashes(1))
    story.send(ALICE, ERIN.address, authorization_list=[delegation])
    story.block("every type of transaction")
    story.call(BOB, "faults", "nested()")
    story.call(BOB, "faults", "reason()")
    story.call(BOB, "proxy", "put(uint256,uint256)", 7, 7_000)
    story.send(BOB, story["vault"], data=call_data("put(uint256,uint256)", 7, 70))
    story.block("the proxy and its logic differ")
    story.transfers(60)
    story.block(
        "sixty transfers, a withdrawal",
        withdrawals=[Withdrawal(20, 50, ERIN.address, 7)],
    )


def blob_hashes(count: int) -> tuple[Hash32, ...]:
    """Return versioned hashes of blobs that do not exist (EIP-4844)."""
    return tuple(
        Hash32(b"\x01" + sha256(f"blob {i}".encode()).digest()[1:])
        for i in range(count)
    )


def deposit(index: int) -> bytes:
    """Return a call of `contracts/deposits.asm`: 32 ether for a validator."""
    credentials = b"\x01" + bytes(11) + ALICE.address
    amount = (32 * 10**9).to_bytes(8, "little")
    signature = bytes(96)
    return PUBLIC_KEY + credentials + amount + signature + index.to_bytes(8, "little")


SCENES = (paris, shanghai, cancun, prague, osaka, bpo1, bpo2)
