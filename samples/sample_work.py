"""The sample chain under proof of work: Frontier to Gray Glacier, scene by scene."""

from __future__ import annotations

from eth_typing import Address

from abi.encoding import selector, word
from samples.assembler import assemble, init_code
from samples.contracts import contract
from samples.precompile_inputs import (
    BLAKE2F_INPUT,
    CURVE_ADD_INPUT,
    CURVE_MULTIPLY_INPUT,
    CURVE_PAIRING_INPUT,
    ECRECOVER_INPUT,
    MODEXP_INPUT,
)
from samples.signers import create2_address
from samples.story import (
    ALICE,
    BOB,
    CAROL,
    DAVE,
    ETHER,
    HOLDER_SIGNERS,
    Story,
)

SUPPLY = 10**9
BENEFICIARY = Address(b"\xee" * 20)
"""An account that does not exist before a self-destruct sends it ether."""
EMPTY_ACCOUNTS = tuple(Address(bytes([0xE0 + i]) * 20) for i in range(3))
SELF_DESTRUCT_TO_SELF = "ADDRESS SELFDESTRUCT"
MAX_CODE_SIZE = 24_576
BYZANTIUM_INPUTS = (
    MODEXP_INPUT,
    CURVE_ADD_INPUT,
    CURVE_MULTIPLY_INPUT,
    CURVE_PAIRING_INPUT,
)
"""Inputs of the precompiled contracts 5 to 8."""
FAULTS = (
    "reason",
    "panic",
    "custom",
    "bare",
    "invalid",
    "badJump",
    "underflow",
    "overflow",
    "outOfGas",
    "beyond",
)


def frontier(story: Story) -> None:
    """Add blocks under Frontier: transfers, contracts, and existing empty accounts."""
    for receiver in (BOB, CAROL):
        story.send(ALICE, receiver.address, value=5 * ETHER)
    story.send(ALICE, Address(b"\xaa" * 20), value=1, data=b"for a stranger")
    story.block("ether changes hands")

    story.deploy("token", contract("token").init_code(word(SUPPLY)))
    story.deploy("vault", contract("vault").init_code())
    story.deploy("slots", contract("slots").init_code())
    story.block("token, vault, slots deployed")

    for holder in HOLDER_SIGNERS:
        story.call(
            ALICE, "token", "transfer(address,uint256)", holder.address, 10_000_000
        )
    story.call(BOB, "token", "transfer(address,uint256)", CAROL.address, 1, gas=80_000)
    story.call(BOB, "vault", "set(uint256)", 1789)
    story.call(CAROL, "vault", "put(uint256,uint256)", 7, 77)
    story.block("tokens spread, vault written")

    for address in EMPTY_ACCOUNTS:
        story.send(BOB, address)
    story.send(BOB, Address(bytes(19) + b"\x02"))
    # Too little gas to pay for the code: in Frontier the contract is created without
    # code.
    story.deploy("stillborn", contract("slots").init_code(), gas=50_000)
    story.block("empty accounts come into being")
    story.block("an empty block")


def homestead(story: Story) -> None:
    """Add blocks under Homestead: all kinds of calls, a created child, an uncle."""
    story.deploy("relay", contract("relay").init_code())
    story.deploy("factory", contract("factory").init_code())
    story.deploy("looper", contract("looper").init_code())
    story.block("relay, factory, looper deployed")

    story.call(BOB, "relay", "descend(uint256)", 7, value=1000, gas=1_000_000)
    story.send(BOB, story["looper"], data=word(200))
    story.block("CALL CALLCODE DELEGATECALL")

    story.call(ALICE, "factory", "create()", value=ETHER)
    story.deploy("unpaid", contract("slots").init_code(), gas=80_000)
    story.block("factory CREATE, unpaid code")

    side = story.chain.fork()
    child = _newest_child(story)
    story.send(BOB, child, value=3)
    story.send(BOB, child, data=word(CAROL.address))
    story.block("self-destruct to an account")

    uncle = side.block(coinbase=DAVE.address, extra_data=b"an uncle").header
    story.block("an uncle", uncles=[uncle])


def tangerine_whistle(story: Story) -> None:
    """Add blocks under Tangerine Whistle.

    They contain calls of precompiled contracts, self-destructs with special
    beneficiaries, and an uncle of depth two.
    """
    side = story.chain.fork()
    story.deploy("precompiles", contract("precompiles").init_code())
    for name in ("to itself", "to a new account", "to a precompile"):
        story.deploy(name, contract("child").init_code(), value=10)
    story.block("precompile caller, children")

    for number, data in enumerate((ECRECOVER_INPUT, b"abc", b"abc", b"identity"), 1):
        story.send(BOB, story["precompiles"], data=word(number) + data)
    story.block("ecrecover sha256 ripemd identity")

    story.send(BOB, story["to itself"], data=word(story["to itself"]))
    story.send(BOB, story["to a new account"], data=word(BENEFICIARY))
    story.send(BOB, story["to a precompile"], data=word(4))
    story.deploy("gone at birth", assemble(SELF_DESTRUCT_TO_SELF), value=5)
    story.block("self-destruct to odd heirs")

    uncle = side.block(coinbase=CAROL.address, extra_data=b"an older uncle").header
    story.call(BOB, "relay", "descend(uint256)", 12, gas=2_000_000)
    story.block("deep calls, an older uncle", uncles=[uncle])


def spurious_dragon(story: Story) -> None:
    """Add blocks under Spurious Dragon.

    They contain replay protection, the removal of empty accounts, and code at the size
    limit.
    """
    story.send(ALICE, BOB.address, value=1)
    story.send(ALICE, BOB.address, value=2, chain_id=0)
    story.block("with and without chain id")

    for address in EMPTY_ACCOUNTS[:2]:
        story.send(BOB, address)
    story.block("touched empty accounts vanish")

    too_large = assemble(f"PUSH {MAX_CODE_SIZE + 1} PUSH 0 RETURN")
    just_fits = assemble(f"PUSH {MAX_CODE_SIZE} PUSH 0 RETURN")
    story.deploy("too large", too_large, gas=6_000_000)
    story.deploy("just fits", just_fits, gas=6_000_000)
    story.block("code of 24577 and 24576 bytes")

    story.call(ALICE, "factory", "create()", value=50)
    story.block("a child is made")
    child = _newest_child(story)
    beneficiary = EMPTY_ACCOUNTS[2]
    story.call(BOB, "factory", "destroy(address,address)", child, beneficiary)
    story.block("destroyed by its maker")

    story.transfers(40)
    story.block("forty token transfers")


def byzantium(story: Story) -> None:
    """Add blocks under Byzantium.

    They contain REVERT, receipts with a status, STATICCALL, a proxy, and calls of new
    precompiled contracts.
    """
    story.deploy("faults", contract("faults").init_code())
    story.deploy("proxy", contract("proxy").init_code(word(story["vault"])))
    story.block("faults and a proxy deployed")

    story.call(BOB, "proxy", "set(uint256)", 42)
    story.call(CAROL, "proxy", "put(uint256,uint256)", 7, 700)
    story.call(CAROL, "proxy", "at(uint256)", 7)
    story.call(CAROL, "proxy", "close()")
    story.call(CAROL, "proxy", "get()")
    story.block("a proxy delegates")

    for name in FAULTS:
        story.call(BOB, "faults", f"{name}()", gas=60_000)
    story.block("every way to fail")

    story.call(BOB, "faults", "nested()")
    story.call(BOB, "faults", "staticWrite()")
    story.call(
        BOB, "relay", "attempt(address,bytes4)", story["faults"], _left("reason()")
    )
    story.call(BOB, "relay", "inspect(address)", story["token"])
    story.call(BOB, "token", "transfer(address,uint256)", CAROL.address, 10**30)
    story.block("nested reverts, static calls")

    for number, data in enumerate(BYZANTIUM_INPUTS, 5):
        story.send(BOB, story["precompiles"], data=word(number) + data, gas=500_000)
    story.send(BOB, story["precompiles"], data=word(6) + b"\xff" * 64, gas=200_000)
    story.block("modexp and curve precompiles")

    story.call(BOB, "slots", "fill(uint256,uint256)", 0, 10)
    story.call(BOB, "slots", "restore(uint256,uint256)", 3, 99)
    story.call(BOB, "slots", "clear(uint256,uint256)", 5, 5)
    story.block("filled, restored, cleared")


def constantinople(story: Story) -> None:
    """Add blocks under Constantinople: CREATE2, twice at the same address."""
    story.call(ALICE, "factory", "create2(uint256)", 1, value=7)
    story.block("CREATE2")

    again = child_address(story, 1)
    story.send(BOB, again)
    story.call(BOB, "factory", "destroy(address,address)", again, CAROL.address)
    story.call(ALICE, "factory", "create2(uint256)", 1, value=9)
    story.send(BOB, again)
    story.block("used, destroyed, made again")

    story.call(
        ALICE,
        "factory",
        "createAndDestroy(uint256,address)",
        2,
        BENEFICIARY,
        value=11,
    )
    story.block("made and destroyed at once")

    # The collision burns all gas but a 64th, which must do for the rest.
    story.call(ALICE, "factory", "createTwice(uint256)", 3, gas=3_000_000)
    story.call(ALICE, "factory", "createFailing()")
    story.block("a collision, a failing creation")

    story.call(BOB, "slots", "restore(uint256,uint256)", 3, 5)
    story.call(BOB, "slots", "set(uint256,uint256)", 3, 0)
    story.call(BOB, "slots", "set(uint256,uint256)", 3, 4)
    story.block("net gas of storage")


def petersburg(story: Story) -> None:
    """Add blocks under Petersburg: storage across blocks, removed by SELFDESTRUCT."""
    story.call(
        BOB, "factory", "destroy(address,address)", child_address(story, 1), BENEFICIARY
    )
    story.call(BOB, "slots", "restore(uint256,uint256)", 3, 5)
    story.block("destroyed again")
    story.call(ALICE, "factory", "create2(uint256)", 1)
    story.block("and made a third time")
    story.block("another empty block")


def istanbul(story: Story) -> None:
    """Add blocks under Istanbul: CHAINID, SELFBALANCE, BLAKE2, net gas of storage."""
    probe = "CHAINID PUSH 1 SSTORE SELFBALANCE PUSH 2 SSTORE"
    story.deploy("probe", init_code(b"", probe), value=33)
    story.block("CHAINID and SELFBALANCE")
    story.send(BOB, story["precompiles"], data=word(9) + BLAKE2F_INPUT)
    story.block("BLAKE2 compression")
    story.call(BOB, "slots", "fill(uint256,uint256)", 20, 20, gas=600_000)
    story.call(BOB, "slots", "clear(uint256,uint256)", 20, 10)
    story.block("slots filled, half of them freed")
    story.transfers(60)
    story.block("sixty token transfers")


def muir_glacier(story: Story) -> None:
    """Add a block under Muir Glacier, with two uncles."""
    sides = [story.chain.fork() for _ in range(2)]
    story.call(CAROL, "vault", "set(uint256)", 1804)
    story.block("the bomb is put off")
    uncles = [
        side.block(coinbase=signer.address, extra_data=b"one of two").header
        for side, signer in zip(sides, (BOB, DAVE), strict=True)
    ]
    story.block("two uncles", uncles=uncles)


def berlin(story: Story) -> None:
    """Add blocks under Berlin: access lists."""
    slots = (0, 1, 2)
    accesses = [(story["vault"], slots), (story["token"], ())]
    story.call(
        BOB, "vault", "get()", type=1, access_list=accesses, gas_price=30 * 10**9
    )
    story.block("a transaction of type 1")
    story.deploy(
        "lister",
        contract("vault").init_code(),
        BOB,
        type=1,
        access_list=[(BOB.address, ())],
        gas_price=30 * 10**9,
    )
    story.block("a creation of type 1")
    story.call(CAROL, "vault", "set(uint256)", 1)
    story.call(BOB, "proxy", "set(uint256)", 2, type=1, gas_price=30 * 10**9)
    story.block("types 0 and 1")
    story.transfers(120)
    story.block("a hundred and twenty transfers")
    story.call(
        BOB,
        "slots",
        "fill(uint256,uint256)",
        0,
        30,
        type=1,
        access_list=[(story["slots"], tuple(range(30)))],
        gas_price=30 * 10**9,
        gas=1_500_000,
    )
    story.block("thirty slots, announced")


def london(story: Story) -> None:
    """Add blocks under London: a changing base fee, fees with a tip."""
    story.block("the first base fee")
    story.call(BOB, "vault", "put(uint256,uint256)", 8, 88)
    story.call(BOB, "vault", "put(uint256,uint256)", 9, 99, gas_price=20 * 10**9)
    story.block("a transaction of type 2")
    story.deploy("reserved", init_code(b"\xef\x00"))
    story.deploy("environment", contract("environment").init_code())
    story.block("code that begins with 0xEF")
    for _ in range(3):
        story.send(CAROL, story["looper"], data=word(40_000), gas=14_000_000)
    story.block("a busy block, the base fee grows")
    story.send(BOB, story["environment"], value=5)
    story.block("BASEFEE and its neighbours")
    story.call(
        BOB, "factory", "destroy(address,address)", child_address(story, 1), BOB.address
    )
    story.call(BOB, "slots", "clear(uint256,uint256)", 0, 30)
    story.block("smaller refunds")


def arrow_glacier(story: Story) -> None:
    """Add blocks under Arrow Glacier, which delays the difficulty bomb."""
    side = story.chain.fork()
    story.transfers(10)
    story.block("ten transfers of type 2")
    uncle = side.block(coinbase=DAVE.address, extra_data=b"the last uncle").header
    story.block("the last uncle", uncles=[uncle])


def gray_glacier(story: Story) -> None:
    """Add blocks under Gray Glacier, the last ones with proof of work."""
    story.send(ALICE, BOB.address, value=1, gas_price=20 * 10**9, chain_id=0)
    story.send(ALICE, BOB.address, value=1, gas_price=20 * 10**9, access_list=[])
    story.send(ALICE, BOB.address, value=1)
    story.block("types 0, 1 and 2")
    story.call(ALICE, "factory", "create2(uint256)", 1)
    story.block("the last proof of work")


def child_address(story: Story, salt: int) -> Address:
    """Return the address at which the factory's CREATE2 deploys a child."""
    child = contract("child").init_code()
    return create2_address(story["factory"], salt, child)


def _newest_child(story: Story) -> Address:
    """Return the factory's latest child, which is in its storage slot 0."""
    newest = story.chain.state.storage(story["factory"], 0)
    return Address(newest.to_bytes(20, "big"))


def _left(signature: str) -> bytes:
    """Return a selector as a `bytes4` argument: a word padded on the right."""
    return selector(signature).ljust(32, b"\0")


SCENES = (
    frontier,
    homestead,
    tangerine_whistle,
    spurious_dragon,
    byzantium,
    constantinople,
    petersburg,
    istanbul,
    muir_glacier,
    berlin,
    london,
    arrow_glacier,
    gray_glacier,
)
