"""eth_simulateV1 of the running service: bases, roots, limits and errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from abi.encoding import call_data
from evm.blocks import Block, encode_block
from evm.hexadecimal import to_hex
from keys.allowlists import CONTRACT
from keys.services import set_allowlist
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains
from tests.support.live import Api, api_key_of, live_service, request

ALICE, BOB = Signer("alice"), Signer("bob")
GENESIS = fork_genesis("osaka", ALICE)
LOOP = "0x5b600056"


class Served(NamedTuple):
    """A network with a side branch above block 3."""

    api: Api
    restricted: Api
    """With a key for one contract only."""
    canonical: list[Block]
    side: list[Block]


def grow(chain: ChainBuilder, slots: bytes, count: int, value: int) -> None:
    for _ in range(count):
        number = chain.head.number + 1
        chain.send(ALICE, slots, call_data("set(uint256,uint256)", number % 2, value))
        chain.send(ALICE, BOB.address, value=value)
        chain.block()


@pytest.fixture(scope="module")
def served(module_db: None) -> Iterator[Served]:
    trunk = ChainBuilder(GENESIS)
    slots = trunk.deploy(ALICE, contract("slots").init_code())
    trunk.block()
    grow(trunk, slots, 2, 11)
    branch = trunk.fork()
    grow(branch, slots, 2, 22)
    grow(trunk, slots, 5, 33)
    side = branch.blocks[3:]
    raw = [encode_block(block) for block in [*trunk.blocks, *side]]
    chains.import_blocks("simulated", GENESIS, raw)
    with live_service(env={"NODEAPI_CALL_GAS": "1000000"}) as live, live.api() as api:
        key = live.new_key()
        contracts = [to_hex(BOB.address)]
        set_allowlist(api_key=api_key_of(key), kind=CONTRACT, values=contracts)
        with live.api(key=key) as restricted:
            yield Served(api, restricted, trunk.blocks, side)


def payload_of(block: Block) -> dict[str, Any]:
    """Return the payload that repeats a block's transactions."""
    header = block.header
    assert header.base_fee_per_gas is not None and header.parent_beacon_root is not None
    overrides = {
        "time": hex(header.timestamp),
        "gasLimit": hex(header.gas_limit),
        "feeRecipient": to_hex(header.coinbase),
        "prevRandao": to_hex(header.mix_hash),
        "baseFeePerGas": hex(header.base_fee_per_gas),
        "beaconRoot": to_hex(header.parent_beacon_root),
    }
    calls = [
        {
            "from": to_hex(transaction.sender),
            "to": to_hex(transaction.to) if transaction.to else None,
            "gas": hex(transaction.gas),
            "maxFeePerGas": hex(transaction.max_fee_per_gas),
            "maxPriorityFeePerGas": hex(transaction.max_priority_fee_per_gas),
            "value": hex(transaction.value),
            "nonce": hex(transaction.nonce),
            "input": to_hex(transaction.data),
        }
        for transaction in block.transactions
    ]
    return {
        "blockStateCalls": [{"blockOverrides": overrides, "calls": calls}],
        "validation": True,
    }


def check_reproduction(api: Api, block: Block, base: Any) -> None:
    (found,) = api.result("eth_simulateV1", payload_of(block), base)
    header = block.header
    assert found["number"] == hex(header.number)
    assert found["parentHash"] == to_hex(header.parent_hash)
    assert found["stateRoot"] == to_hex(header.state_root)
    assert found["receiptsRoot"] == to_hex(header.receipts_root)
    assert found["gasUsed"] == hex(header.gas_used)
    assert [call["status"] for call in found["calls"]] == ["0x1"] * len(
        block.transactions
    )


def test_blocks_are_reproduced_on_their_parents(served: Served) -> None:
    for block in served.canonical:
        check_reproduction(served.api, block, hex(block.header.number - 1))


def test_side_blocks_are_reproduced_on_their_parents(served: Served) -> None:
    for block in served.side:
        base = {"blockHash": to_hex(block.header.parent_hash)}
        check_reproduction(served.api, block, base)


def test_head_is_the_default_base(served: Served) -> None:
    head = served.canonical[-1].header
    (found,) = served.api.result("eth_simulateV1", {"blockStateCalls": [{}]})
    assert (found["parentHash"], found["number"]) == (
        to_hex(head.hash),
        hex(head.number + 1),
    )
    assert found["timestamp"] == hex(head.timestamp + 12)
    assert "totalDifficulty" not in found


def test_full_transactions_have_their_sender(served: Served) -> None:
    call = {"from": to_hex(BOB.address), "to": to_hex(ALICE.address), "value": "0x1"}
    request = {
        "blockStateCalls": [{"calls": [call]}],
        "returnFullTransactions": True,
        "traceTransfers": True,
    }
    (found,) = served.api.result("eth_simulateV1", request)
    ((transaction,), (result,)) = found["transactions"], found["calls"]
    assert transaction["from"] == to_hex(BOB.address)
    assert transaction["blockHash"] == found["hash"]
    (log,) = result["logs"]
    assert log["transactionHash"] == transaction["hash"]
    assert log["blockHash"] == found["hash"]


def test_calls_share_the_configured_gas(served: Served) -> None:
    override = {to_hex(BOB.address): {"code": LOOP}}
    call = {"from": to_hex(ALICE.address), "to": to_hex(BOB.address)}
    request = {"blockStateCalls": [{"stateOverrides": override, "calls": [call]}]}
    (found,) = served.api.result("eth_simulateV1", request)
    (result,) = found["calls"]
    assert result["gasUsed"] == hex(1_000_000)
    assert result["error"] == {
        "code": -32015,
        "message": "out of gas (gas limit was capped by the RPC server's global gas cap)",
    }
    again = {"blockStateCalls": [{"stateOverrides": override, "calls": [call, call]}]}
    assert served.api.error("eth_simulateV1", again)[0] == -38013


def test_endless_simulation_is_aborted_and_the_next_one_runs(served: Served) -> None:
    block = {
        "blockOverrides": {"gasLimit": hex(2**63)},
        "stateOverrides": {to_hex(BOB.address): {"code": LOOP}},
        "calls": [{"from": to_hex(ALICE.address), "to": to_hex(BOB.address)}],
    }
    endless = {"blockStateCalls": [block]}
    env = {"NODEAPI_CALL_GAS": "0", "NODEAPI_CALL_TIMEOUT": "0.5"}
    with live_service(env=env) as live, live.api() as api:
        assert api.error("eth_simulateV1", endless) == (
            -32000,
            "execution aborted (timeout = 500ms)",
        )
        (found,) = api.result("eth_simulateV1", {"blockStateCalls": [{}]})
        assert found["calls"] == []


@pytest.mark.parametrize(
    ("payload", "code", "message"),
    [
        ({}, -32602, "empty input"),
        ({"blockStateCalls": [{}] * 257}, -38026, "too many blocks"),
        (
            {"blockStateCalls": [{"calls": [{}] * 5001}]},
            -38026,
            "too many calls in block: 5001 > 5000",
        ),
        (
            {"blockStateCalls": 1},
            -32602,
            "invalid argument 0: json: cannot unmarshal number into Go struct field "
            "simOpts.BlockStateCalls of type []ethapi.simBlock",
        ),
        (
            {"blockStateCalls": [{"blockOverrides": {"number": "0x0"}}]},
            -38020,
            "block numbers must be in order: 0 <= 8",
        ),
    ],
)
def test_request_that_is_refused(
    served: Served, payload: Any, code: int, message: str
) -> None:
    assert served.api.error("eth_simulateV1", payload, "latest") == (code, message)


def test_unknown_base_is_refused(served: Served) -> None:
    payload = {"blockStateCalls": [{}]}
    for base, message in (
        ("0x99", "header not found"),
        ({"blockHash": "0x" + "ab" * 32}, "header for hash not found"),
    ):
        assert served.api.error("eth_simulateV1", payload, base) == (-32000, message)


def test_contracts_outside_of_the_allowlist_are_refused(served: Served) -> None:
    allowed, other = ({"to": to_hex(each.address)} for each in (BOB, ALICE))
    for call, status in ((allowed, 200), (other, 403), ({"input": "0x00"}, 403)):
        payload = {"blockStateCalls": [{"calls": [call]}]}
        response = served.restricted.send(request("eth_simulateV1", payload))
        assert response.status_code == status, response.text
