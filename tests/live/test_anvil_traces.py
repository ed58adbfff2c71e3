"""`trace_` and `ots_` methods, compared with anvil's for a chain that both have executed.

The functions below "Conversion to our format" and `Nodes.flat_trace` convert anvil's results to
our format, and document the differences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from evm.blocks import encode_block
from evm.intrinsic import intrinsic_gas
from evm.rules.forks import CANCUN
from evm.transactions import Transaction
from tests.golden.test_golden import difference
from tests.live.programs import ANVIL
from tests.live.traced_chain import BENEFICIARY, GENESIS, AnvilWithEther, build_chain
from tests.support import chains
from tests.support.live import Api, live_service

Json = dict[str, Any]
CHAIN = build_chain()
TRANSACTIONS = {
    f"0x{each.hash.hex()}": each
    for block in CHAIN.blocks
    for each in block.transactions
}
_NOWHERE = "0x" + "00" * 20
_HEAD = len(CHAIN.blocks)
_ERRORS = {
    "StackUnderflow": "Stack underflow",
    "StackOverflow": "Out of stack",
    "OutOfOffset": "Out of bounds",
    "Insufficient balance for transfer": "insufficient balance for transfer",
    "CreateContractStartingWithEF": "invalid code: must not begin with 0xef",
    "StateChangeDuringStaticCall": "Out of gas",  # geth: out of gas: write protection
    "InvalidFEOpcode": "Bad instruction",
    "CreateCollision": "contract address collision",
}
"""Text of revm, which anvil shows instead of Parity's → our text."""
CALLS = {"CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"}
REFUND = 4800
"""Highest refund of a transaction of the chain: that for one slot."""
_HEADERS = (
    *("number", "timestamp", "gasLimit", "gasUsed", "baseFeePerGas", "miner"),
    *("difficulty", "transactionCount", "receiptsRoot", "transactionsRoot"),
    *("blobGasUsed", "excessBlobGas", "sha3Uncles", "withdrawalsRoot", "nonce"),
)
"""Members of a block that do not depend on its ancestors."""


@pytest.fixture(scope="module")
def nodes(
    live_blocks: int,
    module_db: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Api, AnvilWithEther]]:
    if not ANVIL.exists():
        pytest.skip("npm has not installed anvil: `make test-live` does, with npm")
    with closing(AnvilWithEther(tmp_path_factory.mktemp("anvil"))) as anvil:
        anvil.start()
        for block in CHAIN.blocks:
            anvil.execute(block)
        raw = [encode_block(block) for block in CHAIN.blocks]
        chains.import_blocks("sample", GENESIS, raw)
        with live_service() as live, live.api(key=live.new_key(may_trace=True)) as api:
            yield api, anvil


class Nodes:
    """Compares results, and counts the equal ones."""

    def __init__(self, api: Api, anvil: AnvilWithEther) -> None:
        self.api = api
        self.anvil = anvil
        self.equal: Counter[str] = Counter()
        calls = [("eth_getTransactionReceipt", each) for each in TRANSACTIONS]
        self._gas_used = {
            name: answer["result"]["gasUsed"]
            for name, answer in zip(TRANSACTIONS, anvil.batch(calls), strict=True)
        }

    def answers(self, method: str, *params: Any) -> tuple[Any, Any]:
        """Return the results of both nodes, without hashes of blocks."""
        ours = self.api.result(method, *params)
        return _without_hashes(ours), _without_hashes(self.anvil.call(method, *params))

    def compare(self, name: str, ours: Any, anvils: Any) -> None:
        """Check that results are equal. name: of the method, with parameters."""
        assert ours == anvils, (name, difference(ours, anvils))
        self.equal[name.partition(" ")[0]] += 1

    def flat_trace(self, trace: Json, name: str | None = None) -> Json:
        """Return a trace of anvil with our gas, error text and members.

        - The gas of the first call includes the intrinsic gas, and the gas that it used
          is that of the receipt, as in geth's flatCallTracer.
        - There is no result where anvil shows null.
        - A creation that failed has no address.

        name: the hash of the transaction, if the trace does not contain it.
        """
        name = trace["transactionHash"] if name is None else name
        trace = {**trace, "action": {**trace["action"]}}
        result = trace.pop("result")
        if result is not None:
            trace["result"] = result = {**result}
        if "error" in trace:
            trace["error"] = _ERRORS.get(trace["error"], trace["error"])
            if result is not None:
                result.pop("address", None)
        if not trace["traceAddress"]:
            action, paid = trace["action"], intrinsic_gas(TRANSACTIONS[name], CANCUN)
            action["gas"] = hex(int(action["gas"], 16) + paid)
            if result is not None:
                used = self._gas_used[name]
                assert 0 <= int(result["gasUsed"], 16) + paid - int(used, 16) <= REFUND
                result["gasUsed"] = used
        return trace


@pytest.fixture
def both(nodes: tuple[Api, AnvilWithEther]) -> Nodes:
    return Nodes(*nodes)


def test_transactions_have_the_same_receipts(both: Nodes) -> None:
    names = ("status", "gasUsed", "contractAddress", "effectiveGasPrice", "from", "to")
    for transaction in TRANSACTIONS:
        ours, anvils = both.answers("eth_getTransactionReceipt", transaction)
        assert [ours[name] for name in names] == [anvils[name] for name in names]


def test_flat_traces_are_equal(both: Nodes) -> None:
    for transaction in TRANSACTIONS:
        ours, anvils = both.answers("trace_transaction", transaction)
        both.compare("trace_transaction", ours, list(map(both.flat_trace, anvils)))
    for number in range(1, _HEAD + 1):
        ours, anvils = both.answers("trace_block", hex(number))
        both.compare("trace_block", ours, list(map(both.flat_trace, anvils)))
    assert both.equal.total() == len(TRANSACTIONS) + _HEAD


def test_filters_find_the_same_traces(both: Nodes) -> None:
    blocks = {"fromBlock": "0x1", "toBlock": hex(_HEAD)}
    filters: list[Json] = [{}, {"after": 2, "count": 5}, {"after": 500}]
    for account in accounts(both):
        filters += [{"fromAddress": [account]}, {"toAddress": [account]}]
        filters.append({"fromAddress": [account], "toAddress": [account]})
    found = 0
    for each in filters:
        ours, anvils = both.answers("trace_filter", {**blocks, **each})
        both.compare(f"trace_filter {each}", ours, list(map(both.flat_trace, anvils)))
        found += len(ours)
    assert found > 300


def test_replays_are_equal(both: Nodes) -> None:
    for number in range(1, _HEAD + 1):
        block = CHAIN.blocks[number - 1]
        kinds = ["trace", "stateDiff"]
        ours, anvils = both.answers("trace_replayBlockTransactions", hex(number), kinds)
        for our, anvil, transaction in zip(
            ours, anvils, block.transactions, strict=True
        ):
            name = f"0x{transaction.hash.hex()}"
            assert anvil["transactionHash"] == our["transactionHash"] == name
            traces = [both.flat_trace(each, name) for each in anvil["trace"]]
            both.compare("trace", our["trace"], traces)
            diff = {
                account: state_change(each, our["stateDiff"][account])
                for account, each in anvil["stateDiff"].items()
            }
            both.compare("stateDiff", our["stateDiff"], diff)
            both.compare("output", our["output"], anvil["output"])


def test_frames_of_transactions_are_equal(both: Nodes) -> None:
    for transaction in TRANSACTIONS:
        ours, anvils = both.answers("ots_traceTransaction", transaction)
        # anvil lists neither creations nor self-destructions.
        calls = [each for each in ours if each["type"] in CALLS]
        both.compare("ots_traceTransaction", calls, list(map(otterscan_call, anvils)))
        error = both.answers("ots_getTransactionError", transaction)
        both.compare("ots_getTransactionError", *error)


def test_operations_are_equal(both: Nodes) -> None:
    for name, transaction in TRANSACTIONS.items():
        ours, anvils = both.answers("ots_getInternalOperations", name)
        both.compare(
            f"ots_getInternalOperations {name}",
            ours,
            internal_operations(anvils, ours, transaction),
        )


def test_blocks_are_equal(both: Nodes) -> None:
    for number in range(1, _HEAD + 1):
        ours, anvils = both.answers("ots_getBlockDetails", hex(number))
        for name in ("issuance", "totalFees"):
            both.compare(f"ots_getBlockDetails {name}", ours[name], anvils[name])
        both.compare("header", header(ours["block"]), header(anvils["block"]))
        # anvil counts pages from the beginning of a block, Erigon from its end.
        ours, anvils = both.answers("ots_getBlockTransactions", number, 0, 255)
        both.compare(
            "ots_getBlockTransactions",
            [
                (each["hash"], each["input"])
                for each in ours["fullblock"]["transactions"]
            ],
            [
                (each["hash"], each["input"][:10])
                for each in anvils["fullblock"]["transactions"]
            ],
        )


def test_accounts_are_equal(both: Nodes) -> None:
    both.compare("ots_getApiLevel", *both.answers("ots_getApiLevel"))
    for account in accounts(both):
        for number in range(_HEAD + 1):
            code = both.answers("ots_hasCode", account, hex(number))
            both.compare(f"ots_hasCode {account}", *code)
        ours, anvils = both.answers("ots_getContractCreator", account)
        if both.api.result("ots_hasCode", account, "latest"):
            both.compare(f"ots_getContractCreator {account}", ours, anvils)
        else:
            # anvil also reports creations that failed or created no code. Erigon does not.
            both.compare(f"ots_getContractCreator {account}", ours, None)
    for transaction in TRANSACTIONS.values():
        place = f"0x{transaction.sender.hex()}", transaction.nonce
        found = both.answers("ots_getTransactionBySenderAndNonce", *place)
        both.compare("ots_getTransactionBySenderAndNonce", *found)


def test_searches_find_the_same_transactions(both: Nodes) -> None:
    for account in accounts(both):
        if account == f"0x{BENEFICIARY.hex()}":
            continue  # anvil does not find the beneficiaries of self-destructions
        for method in ("ots_searchTransactionsBefore", "ots_searchTransactionsAfter"):
            for number in range(_HEAD + 1):
                ours, anvils = both.answers(method, account, number, 25)
                both.compare(f"{method} {account}", places(ours), places(anvils))


# Conversion to our format


def state_change(change: Json, ours: Json) -> Json:
    """Return an account's change in Parity's format.

    anvil writes an account that a transfer has created as one whose balance was 0.
    """
    if ours["nonce"] != {"+": "0x0"}:
        return change
    assert change["nonce"] == change["code"] == "="
    assert change["balance"]["*"]["from"] == "0x0"
    made = {"balance": {"+": change["balance"]["*"]["to"]}, "nonce": {"+": "0x0"}}
    return {**change, **made, "code": {"+": "0x"}}


def otterscan_call(call: Json) -> Json:
    """Return a call of anvil with null as the value of calls that transfer none."""
    has_value = call["type"] not in ("DELEGATECALL", "STATICCALL")
    return {**call, "value": call["value"] if has_value else None}


def internal_operations(
    operations: list[Json], ours: list[Json], transaction: Transaction
) -> list[Json]:
    """Return anvil's operations without the operation of the transaction itself.

    The contract of a creation that failed is the zero address in ours, see
    docs/otterscan.md.
    """
    is_listed = transaction.value or not transaction.to
    found = operations[1:] if is_listed else operations
    return [
        {**each, "to": _NOWHERE} if our["to"] == _NOWHERE and each["type"] > 1 else each
        for each, our in zip(found, ours, strict=True)
    ]


def header(block: Json) -> Json:
    """Return the members of a block that do not depend on its ancestors."""
    return {name: block[name] for name in _HEADERS}


def places(page: Json) -> list[str]:
    """Return the hashes of a page's transactions, sorted, because anvil's order differs."""
    return sorted(each["hash"] for each in page["txs"])


def accounts(both: Nodes) -> list[str]:
    """Return all accounts that a trace names."""
    found = {f"0x{each.sender.hex()}" for each in TRANSACTIONS.values()}
    for transaction in TRANSACTIONS:
        for trace in both.api.result("trace_transaction", transaction):
            made = (trace.get("result") or {}).get("address")
            action = trace["action"]
            found |= {action.get("to"), action.get("refundAddress"), made} - {None}
    return sorted(found)


def _without_hashes(value: Any) -> Any:
    """Return a result without hashes of blocks, which differ."""
    if isinstance(value, dict):
        return {
            name: _without_hashes(each)
            for name, each in value.items()
            if name != "blockHash"
        }
    if isinstance(value, list):
        return list(map(_without_hashes, value))
    return value
