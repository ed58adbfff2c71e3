"""The rows of the table in docs/clients.md: 25 methods, and each client's call for them."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from web3 import Web3

from abi.encoding import call_data
from evm.blocks import Block
from evm.hexadecimal import to_hex
from tests.clients.method_table import Row, Way
from tests.clients.programs import Cast, Ethers, Viem
from tests.clients.token_chain import ALICE, BOB, TokenChain, balance_slot

_NUMBER = 9
"""The block that is read."""


class Rows:
    """Builds the rows for a network with a chain of tokens."""

    def __init__(
        self,
        url: str,
        tokens: TokenChain,
        clients: tuple[Cast, Web3, Viem, Ethers],
    ) -> None:
        self._url = url
        self._tokens = tokens
        self._cast, self._w3, self._viem, self._ethers = clients

    def all(self) -> list[Row]:
        """Return the rows, in the order of the table."""
        return [
            *self._chain(),
            *self._blocks(),
            *self._transactions(),
            *self._state(),
            *self._calls(),
            *self._fees(),
        ]

    # The calls of each client

    def _by_cast(self, name: str, *given: str | int, shown: str = "") -> Way:
        def call() -> Any:
            printed = self._cast.command(self._url, name, *given)
            try:
                return json.loads(printed)
            except ValueError:
                return printed

        return Way(f"cast {shown or name}", call)

    def _by_web3(self, name: str, *given: Any) -> Way:
        def call() -> Any:
            found = getattr(self._w3.eth, name)
            return found(*given) if callable(found) else found

        return Way(f"eth.{name}", call)

    def _by_viem(self, name: str, *given: Any, member: str = "") -> Way:
        return Way(name, partial(self._viem.act, self._url, name, *given), member)

    def _by_ethers(self, name: str, *given: Any, member: str = "") -> Way:
        return Way(name, partial(self._ethers.act, self._url, name, *given), member)

    def _plainly(self, method: str, params: list[Any]) -> tuple[Way, Way, Way, Way]:
        """Return the calls of clients that have no function for a method."""
        given = [each if isinstance(each, str) else json.dumps(each) for each in params]

        def by_web3() -> Any:
            return self._w3.provider.make_request(method, params)["result"]  # type: ignore[arg-type]

        asked = {"method": method, "params": params}
        return (
            self._by_cast("rpc", method, *given),
            Way("provider.make_request", by_web3),
            self._by_viem("request", asked),
            self._by_ethers("send", method, params),
        )

    # The rows

    def _chain(self) -> list[Row]:
        _, _, request, send = self._plainly("web3_clientVersion", [])
        _, _, version_request, version_send = self._plainly("net_version", [])
        syncing = self._plainly("eth_syncing", [])
        return [
            Row(
                "eth_chainId",
                [],
                (
                    self._by_cast("chain-id"),
                    self._by_web3("chain_id"),
                    self._by_viem("getChainId"),
                    self._plainly("eth_chainId", [])[3],
                ),
            ),
            Row(
                "eth_blockNumber",
                [],
                (
                    self._by_cast("block-number"),
                    self._by_web3("block_number"),
                    self._by_viem("getBlockNumber"),
                    self._by_ethers("getBlockNumber"),
                ),
            ),
            Row(
                "net_version",
                [],
                (
                    self._by_cast("rpc", "net_version"),
                    Way("net.version", lambda: self._w3.net.version),
                    version_request,
                    version_send,
                ),
            ),
            Row(
                "web3_clientVersion",
                [],
                (
                    self._by_cast("client"),
                    Way("client_version", lambda: self._w3.client_version),
                    request,
                    send,
                ),
            ),
            Row(
                "eth_syncing",
                [],
                (syncing[0], self._by_web3("syncing"), *syncing[2:]),
            ),
        ]

    def _blocks(self) -> list[Row]:
        block = self._block()
        block_hash, number = to_hex(block.header.hash), hex(_NUMBER)
        receipts = self._plainly("eth_getBlockReceipts", [number])
        return [
            Row(
                "eth_getBlockByNumber",
                [number, False],
                (
                    self._by_cast("block", _NUMBER, "--json"),
                    self._by_web3("get_block", _NUMBER),
                    self._by_viem("getBlock", {"blockNumber": f"{_NUMBER}n"}),
                    self._by_ethers("getBlock", _NUMBER),
                ),
            ),
            Row(
                "eth_getBlockByHash",
                [block_hash, False],
                (
                    self._by_cast("block", block_hash, "--json"),
                    self._by_web3("get_block", block_hash),
                    self._by_viem("getBlock", {"blockHash": block_hash}),
                    self._by_ethers("getBlock", block_hash),
                ),
            ),
            Row(
                "eth_getBlockReceipts",
                [number],
                (
                    receipts[0],
                    self._by_web3("get_block_receipts", _NUMBER),
                    *receipts[2:],
                ),
            ),
            Row(
                "eth_getLogs",
                [self._log_filter()],
                (
                    self._by_cast(
                        *("logs", "--json", "--from-block", 2, "--to-block", _NUMBER),
                        *("--address", to_hex(self._tokens.token)),
                        shown="logs",
                    ),
                    self._by_web3("get_logs", self._checksummed_filter()),
                    self._by_viem(
                        "getLogs",
                        {
                            "address": to_hex(self._tokens.token),
                            "fromBlock": "2n",
                            "toBlock": f"{_NUMBER}n",
                        },
                    ),
                    self._by_ethers("getLogs", self._log_filter()),
                ),
            ),
        ]

    def _transactions(self) -> list[Row]:
        block = self._block()
        block_hash = to_hex(block.header.hash)
        sent = to_hex(block.transactions[0].hash)
        by_index = self._plainly(
            "eth_getTransactionByBlockHashAndIndex", [block_hash, "0x0"]
        )
        trace = self._plainly(
            "debug_traceTransaction", [sent, {"tracer": "callTracer"}]
        )
        return [
            Row(
                "eth_getTransactionByHash",
                [sent],
                (
                    self._by_cast("tx", sent, "--json"),
                    self._by_web3("get_transaction", sent),
                    self._by_viem("getTransaction", {"hash": sent}),
                    self._by_ethers("getTransaction", sent),
                ),
            ),
            Row(
                "eth_getTransactionReceipt",
                [sent],
                (
                    self._by_cast("receipt", sent, "--json"),
                    self._by_web3("get_transaction_receipt", sent),
                    self._by_viem("getTransactionReceipt", {"hash": sent}),
                    self._by_ethers("getTransactionReceipt", sent),
                ),
            ),
            Row(
                "eth_getTransactionByBlockHashAndIndex",
                [block_hash, "0x0"],
                (
                    by_index[0],
                    self._by_web3("get_transaction_by_block", block_hash, 0),
                    self._by_viem(
                        "getTransaction", {"blockHash": block_hash, "index": 0}
                    ),
                    by_index[3],
                ),
            ),
            Row("eth_sendRawTransaction", None, self._sending()),
            Row("debug_traceTransaction", [sent, {"tracer": "callTracer"}], trace),
        ]

    def _sending(self) -> tuple[Way, Way, Way, Way]:
        """Return calls that each send a transaction and compare its hash."""
        fork = self._tokens.builder.fork()
        signed = [fork.send(ALICE, BOB.address, value=1) for _ in range(4)]

        def compared(place: int, way: Way) -> Way:
            expected = int.from_bytes(signed[place].hash)
            return Way(way.shown, lambda: way.result() == expected)

        raw = [to_hex(each.raw) for each in signed]
        return (
            compared(0, self._by_cast("publish", "--async", raw[0])),
            compared(1, self._by_web3("send_raw_transaction", raw[1])),
            compared(
                2,
                self._by_viem("sendRawTransaction", {"serializedTransaction": raw[2]}),
            ),
            compared(3, self._by_ethers("broadcastTransaction", raw[3], member="hash")),
        )

    def _state(self) -> list[Row]:
        account, token = to_hex(ALICE.address), to_hex(self._tokens.token)
        slot, number = f"0x{balance_slot(BOB.address):064x}", hex(_NUMBER)
        at, viem_at = ("--block", _NUMBER), {"blockNumber": f"{_NUMBER}n"}
        web3_account, web3_token = map(Web3.to_checksum_address, (account, token))
        proof = self._plainly("eth_getProof", [token, [slot], number])
        return [
            Row(
                "eth_getBalance",
                [account, number],
                (
                    self._by_cast("balance", account, *at),
                    self._by_web3("get_balance", web3_account, _NUMBER),
                    self._by_viem("getBalance", {"address": account, **viem_at}),
                    self._by_ethers("getBalance", account, _NUMBER),
                ),
            ),
            Row(
                "eth_getTransactionCount",
                [account, number],
                (
                    self._by_cast("nonce", account, *at),
                    self._by_web3("get_transaction_count", web3_account, _NUMBER),
                    self._by_viem(
                        "getTransactionCount", {"address": account, **viem_at}
                    ),
                    self._by_ethers("getTransactionCount", account, _NUMBER),
                ),
            ),
            Row(
                "eth_getCode",
                [token, number],
                (
                    self._by_cast("code", token, *at),
                    self._by_web3("get_code", web3_token, _NUMBER),
                    self._by_viem("getCode", {"address": token, **viem_at}),
                    self._by_ethers("getCode", token, _NUMBER),
                ),
            ),
            Row(
                "eth_getStorageAt",
                [token, slot, number],
                (
                    self._by_cast("storage", token, slot, *at),
                    self._by_web3("get_storage_at", web3_token, int(slot, 16), _NUMBER),
                    self._by_viem(
                        "getStorageAt", {"address": token, "slot": slot, **viem_at}
                    ),
                    self._by_ethers("getStorage", token, slot, _NUMBER),
                ),
            ),
            Row(
                "eth_getProof",
                [token, [slot], number],
                (
                    self._by_cast("proof", token, slot, *at),
                    self._by_web3("get_proof", web3_token, [int(slot, 16)], _NUMBER),
                    self._by_viem(
                        "getProof",
                        {"address": token, "storageKeys": [slot], **viem_at},
                    ),
                    proof[3],
                ),
            ),
        ]

    def _calls(self) -> list[Row]:
        token, sender = to_hex(self._tokens.token), to_hex(ALICE.address)
        data = to_hex(call_data("transfer(address,uint256)", BOB.address, 1))
        call = {"from": sender, "to": token, "data": data}
        web3_call = {
            "from": Web3.to_checksum_address(sender),
            "to": Web3.to_checksum_address(token),
            "data": data,
        }
        viem_call = {"account": sender, "to": token, "data": data}
        given = ("--from", sender, token, "--data", data)
        access_list = self._plainly("eth_createAccessList", [call])
        return [
            Row(
                "eth_call",
                [call, "latest"],
                (
                    self._by_cast("call", *given),
                    self._by_web3("call", web3_call),
                    self._by_viem("call", viem_call, member="data"),
                    self._by_ethers("call", call),
                ),
            ),
            Row(
                "eth_estimateGas",
                [call],
                (
                    self._by_cast("estimate", "--from", sender, token, data),
                    self._by_web3("estimate_gas", web3_call),
                    self._by_viem("estimateGas", viem_call),
                    self._by_ethers("estimateGas", call),
                ),
            ),
            Row(
                "eth_createAccessList",
                [call],
                (
                    access_list[0],
                    self._by_web3("create_access_list", web3_call),
                    self._by_viem("createAccessList", viem_call),
                    access_list[3],
                ),
            ),
        ]

    def _fees(self) -> list[Row]:
        tip = self._plainly("eth_maxPriorityFeePerGas", [])
        history = self._plainly("eth_feeHistory", ["0x4", "latest", [50]])
        return [
            Row(
                "eth_gasPrice",
                [],
                (
                    self._by_cast("gas-price"),
                    self._by_web3("gas_price"),
                    self._by_viem("getGasPrice"),
                    self._by_ethers("getFeeData", member="gasPrice"),
                ),
            ),
            Row(
                "eth_maxPriorityFeePerGas",
                [],
                (
                    tip[0],
                    self._by_web3("max_priority_fee"),
                    self._by_viem("estimateMaxPriorityFeePerGas"),
                    self._by_ethers("getFeeData", member="maxPriorityFeePerGas"),
                ),
            ),
            Row(
                "eth_feeHistory",
                ["0x4", "latest", [50]],
                (
                    history[0],
                    self._by_web3("fee_history", 4, "latest", [50]),
                    self._by_viem(
                        "getFeeHistory", {"blockCount": 4, "rewardPercentiles": [50]}
                    ),
                    history[3],
                ),
            ),
        ]

    def _block(self) -> Block:
        return self._tokens.blocks[_NUMBER - 1]

    def _log_filter(self) -> dict[str, Any]:
        return {
            "address": to_hex(self._tokens.token),
            "fromBlock": "0x2",
            "toBlock": hex(_NUMBER),
        }

    def _checksummed_filter(self) -> dict[str, Any]:
        given = self._log_filter()
        return {**given, "address": Web3.to_checksum_address(given["address"])}
