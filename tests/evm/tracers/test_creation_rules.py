"""Creations in each fork: their gas, failures and error texts."""

from __future__ import annotations

import pytest

from evm.addresses import contract_address
from tests.support.call_codes import (
    BYZANTIUM,
    CALLER,
    FORKS,
    ONE_BYTE,
    creation,
    flat,
    run,
    shown,
)
from tests.support.executed import ETHER, Account, Chain
from tests.support.random_calls import push


@pytest.mark.parametrize("fork", FORKS)
def test_code_that_can_not_be_paid_for_was_no_error_once(fork: str) -> None:
    # 200 gas a byte: 16 KiB can't be paid for.
    init = push(2**14) + push(0) + b"\xf3"
    top = run(fork, creation(init))
    (found,) = shown(top)["calls"]
    if fork == "frontier":
        assert "error" not in found
        assert found["output"] == "0x" + "00" * 2**14
        assert "to" in found
        assert int(found["gasUsed"], 16) < 3000
        return
    assert found["error"] == "contract creation code storage out of gas"
    assert found["gasUsed"] == found["gas"]
    assert not found.keys() & {"to", "output", "revertReason"}
    (_, entry) = flat(top)
    assert "result" not in entry
    (_, entry) = flat(top, convert_parity_errors=True)
    assert entry["error"] == "Out of gas"


@pytest.mark.parametrize("fork", FORKS)
def test_a_creator_without_nonces_left_creates_nothing(fork: str) -> None:
    chain = Chain(fork, {CALLER: Account(ETHER, 2**64 - 1, creation(ONE_BYTE))})
    top = chain.run(CALLER)
    if fork == "amsterdam":
        assert (top.error, top.calls) == (None, ())
        assert contract_address(CALLER, 2**64 - 1) in chain.recorder.accounts
        return
    (frame,) = top.calls
    assert (frame.error, frame.gas_used) == ("nonce uint64 overflow", 0)
    assert "to" not in shown(frame)


@pytest.mark.parametrize("fork", BYZANTIUM)
def test_a_creation_that_reverts_has_its_data_and_no_address(fork: str) -> None:
    init = push(32) + push(0) + b"\xfd"
    top = run(fork, creation(init))
    (found,) = shown(top)["calls"]
    assert (found["error"], found["output"]) == ("execution reverted", "0x" + "00" * 32)
    assert "to" not in found
    for config in ({}, {"convert_parity_errors": True}):
        (_, entry) = flat(top, **config)
        assert entry["error"] == ("Reverted" if config else "execution reverted")
        assert entry["result"].keys() == {"code", "gasUsed"}
        assert entry["action"]["creationMethod"] == "create"


def test_code_is_looked_at_before_it_is_paid_for() -> None:
    # From London on, 0xef is checked first, then the gas, then the size.
    init = push(0xEF) + push(0) + b"\x53" + push(2**14) + push(0) + b"\xf3"
    (frame,) = run("london", creation(init)).calls
    assert frame.error == "invalid code: must not begin with 0xef"
    (frame,) = run("berlin", creation(init)).calls
    assert frame.error == "contract creation code storage out of gas"


@pytest.mark.parametrize("fork", ["constantinople", "istanbul", "shanghai", "osaka"])
def test_create2_is_reported_by_its_name(fork: str) -> None:
    top = run(fork, creation(ONE_BYTE, 0xF5, value=3))
    (found,) = shown(top)["calls"]
    assert (found["type"], found["value"], found["output"]) == (
        "CREATE2",
        "0x3",
        "0x00",
    )
    (_, entry) = flat(top)
    assert entry["action"]["creationMethod"] == "create2"
    assert entry["result"]["code"] == "0x00"
