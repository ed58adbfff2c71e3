"""The result of `eth_call` at a block equals that of the same call in the next block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from eth_typing import Address
from hypothesis import given, settings
from hypothesis import strategies as st

from evm.signatures import keccak
from samples.builder import GAS_PRICE_WEI, ChainBuilder
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains
from tests.support.live import Api, live_service

ALICE, BOB = Signer("alice"), Signer("bob")
BLOCKS = 12
MINER = Address(keccak(b"another miner")[:20])

_ENVIRONMENT = [
    "43",
    "42",
    "41",
    "44",
    "48",
    "3a",
    "32",
    "33",
    "34",
    "47",
    "45",
    "46",
    "3231",
    "5a",
    "38",
    "36",
]
CODES = {
    # Calls the contract in the first word of its data with the others and its value,
    # logs whether it succeeded with its return data, and returns these data.
    "relay": "6020 36 03 80 6020 6000 37 6000 6000 82 6000 34 6000 35 5a f1"
    "3d 6000 6000 3e 3d 6000 a1 3d 6000 f3",
    # Returns the block, the transaction, the call and the remaining gas, 32 bytes each.
    "environment": "".join(
        f"{op} 61{32 * n:04x} 52" for n, op in enumerate(_ENVIRONMENT)
    )
    + f"61{32 * len(_ENVIRONMENT):04x} 6000 f3",
    # Returns the slot of the first word, and sets it to the second one.
    "slot": "6000 35 54 6000 52 6020 35 6000 35 55 6020 6000 f3",
    # Returns balance, code hash and code size of the account in the first word.
    "account": "6000 35 31 6000 52 6000 35 3f 6020 52 6000 35 3b 6040 52 6060 6000 f3",
    # Fails with its data.
    "revert": "36 6000 6000 37 36 6000 fd",
    # Creates a contract with its data and its value, and returns the address.
    "create": "36 6000 6000 37 36 6000 34 f0 6000 52 6020 6000 f3",
}
ADDRESSES = {name: Address(keccak(name.encode())[:20]) for name in CODES}
RELAY = ADDRESSES["relay"]
GENESIS = fork_genesis(
    "osaka",
    *(ALICE, BOB),
    **{
        f"0x{ADDRESSES[name].hex()}": {
            "balance": "0x7",
            "code": f"0x{''.join(code.split())}",
        }
        for name, code in CODES.items()
    },
)


class Served(NamedTuple):
    """A network, and for each of its blocks a builder that continues from it."""

    api: Api
    heads: list[ChainBuilder]


def word(value: int | bytes) -> bytes:
    number = int.from_bytes(value) if isinstance(value, bytes) else value
    return number.to_bytes(32)


@pytest.fixture(scope="module")
def served(module_db: None) -> Iterator[Served]:
    chain = ChainBuilder(GENESIS)
    heads = [chain.fork()]
    for number in range(1, BLOCKS + 1):
        for slot in (number % 3, number % 5):
            data = word(ADDRESSES["slot"]) + word(slot) + word(100 * number)
            chain.send(ALICE, RELAY, data, value=number)
        chain.send(BOB, ADDRESSES["account"], value=number)
        chain.block()
        heads.append(chain.fork())
    chains.import_blocks("calls", GENESIS, chain.blocks)
    with live_service() as live, live.api() as api:
        yield Served(api, heads)


_addresses = st.sampled_from(
    [*ADDRESSES.values(), ALICE.address, BOB.address, MINER, bytes(19) + b"\x01"]
)
_creations = [
    "6001 6000 53 6001 6000 f3",
    "fe",
    "6000 6000 fd",
    "60ef 6000 53 6001 6000 f3",
]
_calls = st.one_of(
    st.just(word(ADDRESSES["environment"])),
    st.builds(
        lambda slot, value: word(ADDRESSES["slot"]) + word(slot) + word(value),
        st.integers(0, 6),
        st.integers(0, 2**256 - 1),
    ),
    st.builds(lambda who: word(ADDRESSES["account"]) + word(who), _addresses),
    st.builds(lambda data: word(ADDRESSES["revert"]) + data, st.binary(max_size=99)),
    st.builds(
        lambda code: word(ADDRESSES["create"]) + bytes.fromhex(code),
        st.sampled_from(_creations),
    ),
    # SHA-256, and accounts without code.
    st.builds(lambda data: word(2) + data, st.binary(max_size=99)),
    st.builds(lambda who: word(who), _addresses),
    # A nested call.
    st.just(word(RELAY) + word(ADDRESSES["environment"])),
)


@given(
    number=st.integers(0, BLOCKS),
    data=_calls,
    value=st.sampled_from([0, 1, 10**18]),
    gas=st.sampled_from([25_000, 34_000, 60_000, 300_000]),
    is_alices=st.booleans(),
)
@settings(max_examples=150)
def test_call_returns_what_a_block_with_it_has(
    served: Served, number: int, data: bytes, value: int, gas: int, is_alices: bool
) -> None:
    sender = ALICE if is_alices else BOB
    builder = served.heads[number].fork()
    builder.send(sender, RELAY, data, value=value, gas=gas, gas_price=GAS_PRICE_WEI)
    header = builder.block(coinbase=MINER).header
    (receipt,) = builder.outcomes[-1].receipts
    call = {
        "from": f"0x{sender.address.hex()}",
        "to": f"0x{RELAY.hex()}",
        "input": f"0x{data.hex()}",
        "value": hex(value),
        "gas": hex(gas),
        # A dynamic fee would follow the base fee of the block below, as in geth.
        "gasPrice": hex(GAS_PRICE_WEI),
    }
    block = {
        "number": hex(header.number),
        "time": hex(header.timestamp),
        "gasLimit": hex(header.gas_limit),
        "feeRecipient": f"0x{MINER.hex()}",
        "prevRandao": f"0x{header.mix_hash.hex()}",
        "baseFeePerGas": hex(header.base_fee_per_gas or 0),
    }
    answer: dict[str, Any] = served.api.ask("eth_call", call, hex(number), {}, block)
    if receipt.status:
        assert answer["result"] == f"0x{receipt.logs[0].data.hex()}"
    else:
        assert answer["error"]["message"].startswith("out of gas")
