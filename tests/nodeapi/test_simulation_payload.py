"""The payload of eth_simulateV1: valid forms, and geth's texts for invalid ones."""

from __future__ import annotations

from typing import Any

import pytest

from evm.blocks import Withdrawal
from evm.simulation.arguments import CallArguments
from evm.simulation.overrides import AccountOverride, BlockOverrides
from evm.simulation.planning import BlockCalls
from nodeapi.arguments.simulations import (
    Simulation,
    decode_simulation,
    encode_simulation,
)

SENDER, TO = b"\x11" * 20, b"\x22" * 20

FULL: dict[str, Any] = {
    "blockStateCalls": [
        {},
        {
            "blockOverrides": {
                "number": "0x10",
                "baseFeePerGas": "0x7",
                "withdrawals": [
                    {
                        "index": "0x1",
                        "validatorIndex": "0x2",
                        "address": "0x" + TO.hex(),
                        "amount": "0x3",
                    }
                ],
            },
            "stateOverrides": {"0x" + TO.hex(): {"balance": "0x5"}},
            "calls": [
                {"from": "0x" + SENDER.hex(), "to": "0x" + TO.hex(), "value": "0x1"},
                {},
            ],
        },
    ],
    "traceTransfers": True,
    "validation": True,
    "returnFullTransactions": True,
}


def test_payload_is_decoded() -> None:
    found = decode_simulation(FULL)
    assert found == Simulation(
        blocks=(
            BlockCalls(),
            BlockCalls(
                overrides=BlockOverrides(
                    number=16,
                    base_fee_per_gas=7,
                    withdrawals=(Withdrawal(1, 2, TO, 3),),
                ),
                state_overrides={TO: AccountOverride(balance=5)},
                calls=(CallArguments(sender=SENDER, to=TO, value=1), CallArguments()),
            ),
        ),
        traces_transfers=True,
        validates=True,
        is_full=True,
    )


def test_worker_reads_what_the_service_writes() -> None:
    found = decode_simulation(FULL)
    assert decode_simulation(encode_simulation(found)) == found


@pytest.mark.parametrize("payload", [None, {}, {"blockStateCalls": None}, {"other": 1}])
def test_missing_members_have_defaults(payload: Any) -> None:
    assert decode_simulation(payload) == Simulation()


def test_null_blocks_and_members_are_empty() -> None:
    block = {"calls": None, "blockOverrides": None, "stateOverrides": None}
    found = decode_simulation({"blockStateCalls": [None, block]})
    assert found.blocks == (BlockCalls(), BlockCalls())


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ([], "json: cannot unmarshal array into Go value of type ethapi.simOpts"),
        (
            {"blockStateCalls": {}},
            "json: cannot unmarshal object into Go struct field "
            "simOpts.BlockStateCalls of type []ethapi.simBlock",
        ),
        (
            {"validation": 1},
            "json: cannot unmarshal number into Go struct field simOpts.Validation of "
            "type bool",
        ),
        (
            {"blockStateCalls": [{"calls": [{"to": "0x"}]}]},
            "hex string has length 0, want 40 for common.Address",
        ),
        (
            {"blockStateCalls": [{"calls": 5}]},
            "json: cannot unmarshal number into Go struct field "
            "simOpts.BlockStateCalls.Calls of type []ethapi.TransactionArgs",
        ),
        (
            {"blockStateCalls": [{"stateOverrides": {"x": {}}}]},
            "json: cannot unmarshal hex string without 0x prefix into Go struct field "
            "simOpts.BlockStateCalls.StateOverrides of type common.Address",
        ),
        (
            {"blockStateCalls": [{"stateOverrides": {"0x" + "11" * 20: {"code": 1}}}]},
            "json: cannot unmarshal non-string into Go struct field "
            "simOpts.BlockStateCalls.code of type hexutil.Bytes",
        ),
        (
            {"blockStateCalls": [{"blockOverrides": {"time": 1}}]},
            "json: cannot unmarshal non-string into Go struct field "
            "simOpts.BlockStateCalls.Time of type hexutil.Uint64",
        ),
        (
            {"blockStateCalls": [{"calls": [{"accessList": [{"address": 1}]}]}]},
            "json: cannot unmarshal non-string into Go struct field "
            "simOpts.BlockStateCalls.Calls.accessList.address of type "
            "common.Address",
        ),
        (
            {"blockStateCalls": [5]},
            "json: cannot unmarshal number into Go struct field "
            "simOpts.BlockStateCalls of type struct { BlockOverrides json.RawMessage; "
            "StateOverrides map[common.Address]json.RawMessage; Calls "
            "[]ethapi.TransactionArgs }",
        ),
        (
            {"blockStateCalls": [{"blockOverrides": 5}]},
            "json: cannot unmarshal number into Go struct field "
            "simOpts.BlockStateCalls of type override.BlockOverrides",
        ),
        (
            {"blockStateCalls": [{"blockOverrides": {"foo": 1, "time": "0x"}}]},
            'unknown field "foo" in block override',
        ),
        (
            {"blockStateCalls": [{"blockOverrides": {"time": "0x1", "Time": "0x"}}]},
            'keys "Time" and "time" in block override name the same field',
        ),
        (
            {"blockStateCalls": [{"stateOverrides": {"0x" + "aB" * 20: {"Cod": 1}}}]},
            'unknown field "Cod" in state override for '
            "0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB",
        ),
    ],
)
def test_malformed_payload_has_geths_text(payload: Any, text: str) -> None:
    with pytest.raises(ValueError) as error:
        decode_simulation(payload)
    assert str(error.value) == text
