"""viem's contract calls, logs, gas estimates, proofs, simulations and watchers."""

from __future__ import annotations

import json
import re
import subprocess
from threading import Timer
from typing import Any

import pytest

from abi.encoding import call_data
from evm.hexadecimal import to_hex
from tests.clients.conftest import require_npm
from tests.clients.programs import FOLDER, SECONDS, Viem
from tests.clients.token_chain import (
    ALICE,
    BOB,
    CAROL,
    FIRST,
    SUPPLY,
    TOKEN_ABI,
    TRANSFER_EVENT,
    WEI_PER_TOKEN,
    TokenChain,
    balance_slot,
)
from tests.support import web
from tests.support.live import request
from tests.support.waiting import wait_until

A, B, C = (to_hex(signer.address) for signer in (ALICE, BOB, CAROL))


@pytest.fixture(scope="module")
def tokens(module_db: None) -> TokenChain:
    """Return a chain that also has Multicall3, whose init code viem contains."""
    require_npm()
    source = FOLDER / "node_modules/viem/_esm/constants/contracts.js"
    found = re.search(r"multicall3Bytecode = '0x([0-9a-f]+)'", source.read_text())
    assert found, source
    return TokenChain(24, [bytes.fromhex(found[1])])


def integer(value: int) -> str:
    """Return a number as a bigint of lines.mjs."""
    return f"{value}n"


def token_call(tokens: TokenChain, name: str, *args: Any, **more: Any) -> Any:
    """Return viem's parameters of a call of the token."""
    called = {"abi": TOKEN_ABI, "functionName": name, "args": list(args)}
    return {"address": to_hex(tokens.token), **called, **more}


def test_contract_is_read_after_every_block(
    viem: Viem, tokens: TokenChain, tokens_url: str
) -> None:
    supply = token_call(tokens, "totalSupply")
    assert viem.act(tokens_url, "readContract", supply) == integer(SUPPLY)
    numbers = range(1, tokens.head + 1)
    actions = [
        [
            "readContract",
            token_call(tokens, "balanceOf", B, blockNumber=integer(number)),
        ]
        for number in numbers
    ]
    expected = [{"result": integer(tokens.balance(number))} for number in numbers]
    for batch in (False, True):
        assert viem.order(tokens_url, actions, batch=batch) == expected


@pytest.mark.parametrize("is_deployed", [True, False])
def test_multicall_reads_many_balances(
    viem: Viem, tokens: TokenChain, tokens_url: str, is_deployed: bool
) -> None:
    """Without a deployed Multicall3 viem sends its code with each call."""
    (multicall,) = tokens.others
    place: Any = {"deployless": True}
    if is_deployed:
        place = {"multicallAddress": to_hex(multicall)}
    holders = [A, B, *(f"0x{number:040x}" for number in range(1, 59))]
    contracts = [token_call(tokens, "balanceOf", holder) for holder in holders]
    held = tokens.balance(10)
    expected = [SUPPLY - held, held, *[0] * 58]
    for size in (64, 2**16):  # bytes in a call, with which viem makes many or one
        asked = {
            "contracts": contracts,
            "blockNumber": integer(10),
            "batchSize": size,
            **place,
        }
        assert viem.act(tokens_url, "multicall", asked) == [
            {"result": integer(value), "status": "success"} for value in expected
        ]


def test_multicall_tells_which_call_fails(
    viem: Viem, tokens: TokenChain, tokens_url: str
) -> None:
    (multicall,) = tokens.others
    good = token_call(tokens, "totalSupply")
    bad = {**good, "address": to_hex(tokens.vault)}
    asked = {"contracts": [good, bad, good], "multicallAddress": to_hex(multicall)}
    found = viem.act(tokens_url, "multicall", asked)
    assert [each["status"] for each in found] == ["success", "failure", "success"]


def test_accounts_are_read_after_every_block(
    viem: Viem, tokens: TokenChain, tokens_url: str
) -> None:
    numbers = range(FIRST, tokens.head + 1)
    slot = f"0x{balance_slot(BOB.address):064x}"
    actions: list[Any] = []
    expected: list[Any] = []
    for number in numbers:
        after = {"blockNumber": integer(number)}
        held = tokens.balance(number)
        actions += [
            ["getBalance", {"address": B, **after}],
            ["getTransactionCount", {"address": A, **after}],
            ["getStorageAt", {"address": to_hex(tokens.token), "slot": slot, **after}],
        ]
        expected += [
            integer(WEI_PER_TOKEN * held),
            3 * number,  # the third deployment is Multicall3's
            f"0x{held:064x}",
        ]
    assert viem.order(tokens_url, actions, batch=True) == [
        {"result": each} for each in expected
    ]
    asked = {"address": to_hex(tokens.token), "storageKeys": [slot]}
    proof = viem.act(tokens_url, "getProof", {**asked, "blockNumber": integer(9)})
    assert proof["storageProof"][0]["value"] == integer(tokens.balance(9))


def test_logs_are_found_by_their_arguments(
    viem: Viem, tokens: TokenChain, tokens_url: str
) -> None:
    asked: Any = {
        "address": to_hex(tokens.token),
        "event": TRANSFER_EVENT,
        "args": {"to": B},
        "fromBlock": integer(0),
    }
    found = viem.act(tokens_url, "getLogs", {**asked, "toBlock": "latest"})
    assert [(log["blockNumber"], log["args"]["value"]) for log in found] == [
        (integer(number), integer(number)) for number in range(FIRST, tokens.head + 1)
    ]
    some = viem.act(tokens_url, "getLogs", {**asked, "toBlock": integer(5)})
    assert some == found[: 5 - FIRST + 1]
    of_contract = {
        "address": to_hex(tokens.token),
        "abi": TOKEN_ABI,
        "eventName": "Transfer",
        "args": {"to": [B, C]},
        "fromBlock": integer(0),
    }
    events = viem.act(tokens_url, "getContractEvents", of_contract)
    assert [log["transactionHash"] for log in events] == [
        log["transactionHash"] for log in found
    ]


def test_contract_is_simulated(viem: Viem, tokens: TokenChain, tokens_url: str) -> None:
    asked = token_call(tokens, "transfer", C, "5n", account=A)
    assert viem.act(tokens_url, "simulateContract", asked)["result"] is True
    (refused,) = viem.order(tokens_url, [["simulateContract", {**asked, "account": C}]])
    assert "insufficient balance" in refused["error"]["message"]
    override = {
        "address": to_hex(tokens.token),
        "stateDiff": [
            {"slot": f"0x{balance_slot(CAROL.address):064x}", "value": f"0x{5:064x}"}
        ],
    }
    asked = {**asked, "account": C, "stateOverride": [override]}
    assert viem.act(tokens_url, "simulateContract", asked)["result"] is True


def test_gas_and_fees_are_estimated(
    viem: Viem, tokens: TokenChain, tokens_url: str
) -> None:
    number = tokens.head
    used = tokens.gas_used(number)
    asked = token_call(tokens, "transfer", B, integer(number), account=A)
    data = to_hex(call_data("transfer(address,uint256)", BOB.address, number))
    of_call = {"account": A, "to": to_hex(tokens.token), "data": data}
    for action in (["estimateContractGas", asked], ["estimateGas", of_call]):
        estimated = int(viem.act(tokens_url, *action)[:-1])
        assert used <= estimated <= used * 1.02
    base_fee = tokens.blocks[-1].header.base_fee_per_gas
    assert base_fee is not None
    assert viem.act(tokens_url, "estimateFeesPerGas") == {
        "maxFeePerGas": integer(base_fee * 12 // 10 + 10**9),
        "maxPriorityFeePerGas": integer(10**9),
    }
    assert viem.act(tokens_url, "getGasPrice") == integer(base_fee + 10**9)
    assert viem.act(tokens_url, "getBlobBaseFee") == "1n"
    wanted = {"blockCount": 4, "rewardPercentiles": [50]}
    history = viem.act(tokens_url, "getFeeHistory", wanted)
    assert history["baseFeePerGas"][:-1] == [
        integer(block.header.base_fee_per_gas or 0) for block in tokens.blocks[-4:]
    ]
    found = viem.act(tokens_url, "createAccessList", of_call)
    assert [each["address"] for each in found["accessList"]] == [to_hex(tokens.token)]


def test_transaction_is_prepared(
    viem: Viem, tokens: TokenChain, tokens_url: str
) -> None:
    asked = {"account": A, "to": B, "value": "1n"}
    found = viem.act(tokens_url, "prepareTransactionRequest", asked)
    assert (found["type"], found["chainId"]) == ("eip1559", 202_611)
    assert found["nonce"] == tokens.builder.next_nonce(ALICE.address)
    assert int(found["gas"][:-1]) == 21_000


def test_blocks_and_calls_are_simulated(
    viem: Viem, tokens: TokenChain, tokens_url: str
) -> None:
    address = to_hex(tokens.token)
    transfer = to_hex(call_data("transfer(address,uint256)", CAROL.address, 5))
    read = to_hex(call_data("balanceOf(address)", CAROL.address))
    calls = [
        {"account": A, "to": address, "data": transfer},
        {"account": B, "to": address, "data": read},
    ]
    first, second = viem.act(
        tokens_url, "simulateBlocks", {"blocks": [{"calls": calls}] * 2}
    )
    assert int(first["number"][:-1]) == tokens.head + 1
    for block, held in ((first, 5), (second, 10)):
        assert [call["status"] for call in block["calls"]] == ["success"] * 2
        assert int(block["calls"][1]["data"], 16) == held
    found = viem.act(
        tokens_url,
        "simulateCalls",
        {
            "account": A,
            "calls": [{"to": address, "data": transfer}],
            "traceAssetChanges": True,
        },
    )
    changes = {
        each["token"]["address"]: each["value"]["diff"]
        for each in found["assetChanges"]
    }
    assert changes[address] == "-5n"


def test_blocks_and_events_are_watched(tokens: TokenChain, tokens_url: str) -> None:
    head = request("eth_blockNumber")
    wait_until(
        lambda: int(web.post(tokens_url, json=head).json()["result"], 16) == tokens.head
    )
    process = subprocess.Popen(
        ["node", "watch.mjs", tokens_url, to_hex(tokens.token)],
        cwd=FOLDER,
        stdout=subprocess.PIPE,
        text=True,
    )
    limit = Timer(SECONDS, process.kill)
    limit.start()
    seen: dict[str, list[int]] = {"block": [], "transfer": []}

    def read_until(kind: str, number: int) -> None:
        assert process.stdout
        while number not in seen[kind]:
            name, value = json.loads(process.stdout.readline())
            seen[name].append(value)

    try:
        first = tokens.head
        read_until("block", first)
        # viem creates the filter of events at some time after the first block.
        while not seen["transfer"]:
            read_until("block", tokens.grow().header.number)
        last = tokens.grow().header.number
        read_until("block", last)
        read_until("transfer", last)
    finally:
        limit.cancel()
        process.kill()
        process.communicate()
    assert seen["block"] == list(range(first, last + 1))
    assert seen["transfer"] == list(range(seen["transfer"][0], last + 1))
