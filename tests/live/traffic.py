"""Transactions of every type and with every outcome, sent by web3.py and cast."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount
from web3 import HTTPProvider, Web3

from evm import rlp
from evm.signatures import keccak
from samples.contracts import contract
from tests.live.nodes import DEVELOPER_KEY, Node
from tests.live.programs import CAST
from tests.live.service import Service
from tests.support.waiting import wait_until

GWEI = 10**9
SUPPLY = 10**9
BLOB = (b"\1" * 31 + b"\0") * 4096
_NAMES = ("legacy", "listing", "token", "blobs", "delegating", "faulty", "cast")


def function(signature: str, *arguments: int) -> bytes:
    """Return the input that calls a function with unsigned integers."""
    return keccak(signature.encode())[:4] + words(*arguments)


def words(*values: int) -> bytes:
    """Return integers as 32-byte words."""
    return b"".join(value.to_bytes(32, "big") for value in values)


class Sidecar:
    """A sidecar of a blob transaction: a blob, its commitment and its proofs.

    They are computed once. That takes seconds in which no other thread runs, so that a
    socket of this process would miss its pings.
    """

    def __init__(self, account: LocalAccount) -> None:
        fields = {"nonce": 0, "chainId": 1, "gas": 21_000, "value": 0, "data": b""}
        fees = dict.fromkeys(
            ("maxFeePerGas", "maxPriorityFeePerGas", "maxFeePerBlobGas"), 1
        )
        signed = account.sign_transaction(
            {**fields, **fees, "to": account.address}, blobs=[BLOB]
        )
        payload, *self._parts = rlp.decode(bytes(signed.raw_transaction)[1:])
        self._hashes = payload[10]

    def hashes(self, count: int) -> list[bytes]:
        """Return `blobVersionedHashes` of some blobs."""
        return self._hashes * count

    def attach(self, raw: bytes, count: int) -> bytes:
        """Return a signed transaction in the network form, with its blobs."""
        parts = [
            part * count if isinstance(part, list) else part for part in self._parts
        ]
        return raw[:1] + rlp.encode([rlp.decode(raw[1:]), *parts])


class Traffic:
    """Senders of transactions, which all go through the service.

    node: the node that reports nonces.
    """

    def __init__(self, service: Service, node: Node) -> None:
        self._service = service
        self._node = node
        provider = HTTPProvider(service.url, exception_retry_configuration=None)
        self._web3 = Web3(provider)
        self.chain_id = self._web3.eth.chain_id
        self.sent: list[str] = []
        self.prepared = 0
        """The block from which on senders have ether and contracts exist."""
        self._developer: LocalAccount = Account.from_key(DEVELOPER_KEY)
        self._accounts: dict[str, LocalAccount] = {
            name: Account.from_key(keccak(f"live: {name}".encode())) for name in _NAMES
        }
        self._sidecar = Sidecar(self._developer)
        self._nonces: dict[str, int] = {}
        self._round, self._transfer = count(), count()
        self._contracts: dict[str, str] = {}

    def prepare(self) -> None:
        """Give each sender ether, and deploy the contracts."""
        ether = [
            self.send(self._developer, to=account.address, value=10**21)
            for account in self._accounts.values()
        ]
        codes = {"token": words(SUPPLY), "factory": b"", "blobs": b"", "faults": b""}
        codes |= {"wallet": b"", "slots": b"", "relay": b"", "precompiles": b""}
        for each in ether:
            self.receipt(each)
        token = self._accounts["token"]
        deployed = {
            name: self.send(token, data=contract(name).init_code(data), gas=5_000_000)
            for name, data in codes.items()
        }
        for name, each in deployed.items():
            self.prepared = int(self.receipt(each)["blockNumber"], 16)
            created = self.receipt(each)["contractAddress"]
            self._contracts[name] = Web3.to_checksum_address(created)

    # Sending

    def send(self, account: LocalAccount, **fields: Any) -> str:
        """Sign a transaction, send it through the service, and return its hash."""
        return self.send_raw(self.sign(account, **fields))

    def sign(self, account: LocalAccount, **fields: Any) -> bytes:
        """Return a signed transaction, by default one of EIP-1559."""
        transaction = {"chainId": self.chain_id, "gas": 500_000, "value": 0, **fields}
        if "nonce" not in transaction:
            transaction["nonce"] = self.nonce(account)
        if "gasPrice" not in transaction:
            fees = {"maxFeePerGas": 20 * GWEI, "maxPriorityFeePerGas": GWEI}
            transaction = {**fees, **transaction}
        signed = account.sign_transaction(transaction)
        return bytes(signed.raw_transaction)

    def send_raw(self, raw: bytes) -> str:
        """Send a signed transaction through the service with web3.py."""
        found = self._web3.eth.send_raw_transaction(raw).to_0x_hex()
        self.sent.append(found)
        return found

    def nonce(self, account: LocalAccount) -> int:
        """Return the nonce of an account's next transaction."""
        answer = self._node.call("eth_getTransactionCount", account.address, "pending")
        # A node updates the nonce shortly after it has accepted a transaction.
        found = max(int(answer, 16), self._nonces.get(account.address, 0))
        self._nonces[account.address] = found + 1
        return found

    def forget_nonces(self) -> None:
        """Use the node's nonces again, because a reorganisation has lowered them."""
        self._nonces.clear()

    def receipt(self, transaction: str) -> Any:
        """Wait until the service has a transaction's receipt, and return it."""
        return wait_until(
            lambda: self._service.call("eth_getTransactionReceipt", transaction)
        )

    def transfer(self, **fields: Any) -> str:
        """Send a token transfer, which writes storage and a log."""
        data = function("transfer(address,uint256)", 0xA0 + next(self._transfer) % 7, 3)
        token = self._accounts["token"]
        return self.send(token, to=self._contracts["token"], data=data, **fields)

    def gap(self) -> tuple[bytes, bytes]:
        """Return two signed transactions of which the second needs the first."""
        account = self._accounts["legacy"]
        first, second = (
            self.sign(account, to=account.address, value=1) for _ in range(2)
        )
        return first, second

    # Of every kind

    def send_round(self) -> list[str]:
        """Send transactions of all types and outcomes, and return their hashes."""
        number = next(self._round)
        return [sent for make in self._makers() for sent in make(number)]

    def _makers(self) -> list[Callable[[int], Iterator[str]]]:
        makers = [self._plain, self._calls, self._failures, self._blobs]
        return [*makers, self._delegation, self._cast]

    def _plain(self, number: int) -> Iterator[str]:
        legacy, listing = self._accounts["legacy"], self._accounts["listing"]
        receiver = Web3.to_checksum_address(f"0x{number + 0x10000:040x}")
        yield self.send(legacy, to=receiver, value=number, gasPrice=20 * GWEI)
        token = self._contracts["token"]
        access = [
            {
                "address": token,
                "storageKeys": ["0x" + words(slot).hex() for slot in (0, 1)],
            }
        ]
        yield self.send(
            listing,
            to=token,
            data=function("totalSupply()"),
            gasPrice=20 * GWEI,
            accessList=access,
        )

    def _calls(self, number: int) -> Iterator[str]:
        yield self.transfer()
        calls = [
            ("factory", function("create()")),
            ("factory", function("create2(uint256)", number)),
            ("factory", function("createAndDestroy(uint256,address)", number, 5)),
            ("factory", function("createFailing()")),
            ("slots", function("fill(uint256,uint256)", number, 3)),
            ("slots", function("clear(uint256,uint256)", max(number - 4, 0), 2)),
            ("slots", function("transient(uint256,uint256)", number, number)),
            ("relay", function("descend(uint256)", 3)),
            ("precompiles", words(2, number)),
        ]
        sender = self._accounts["token"]
        for name, data in (calls[number % 9], calls[(number + 4) % 9]):
            yield self.send(sender, to=self._contracts[name], data=data, gas=1_500_000)
        if number % 5 == 0:
            yield self.send(sender, data=contract("slots").init_code(), gas=5_000_000)

    def _failures(self, number: int) -> Iterator[str]:
        sender = self._accounts["faulty"]
        calls = [
            ("token", function("transfer(address,uint256)", 7, 2 * SUPPLY)),
            ("faults", function("reason()")),
            ("faults", function("invalid()")),
            ("faults", function("nested()")),
            ("faults", function("outOfGas()")),
            ("faults", function("custom()")),
        ]
        name, data = calls[number % len(calls)]
        yield self.send(sender, to=self._contracts[name], data=data)

    def _blobs(self, number: int) -> Iterator[str]:
        if number % 3:
            return
        count = 1 + number % 2
        raw = self.sign(
            self._accounts["blobs"],
            to=self._contracts["blobs"],
            maxFeePerBlobGas=GWEI,
            blobVersionedHashes=self._sidecar.hashes(count),
        )
        yield self.send_raw(self._sidecar.attach(raw, count))

    def _delegation(self, number: int) -> Iterator[str]:
        sender = self._accounts["delegating"]
        authority: LocalAccount = Account.from_key(
            keccak(f"live: authority {number}".encode())
        )
        authorization = authority.sign_authorization(
            {"chainId": self.chain_id, "address": self._contracts["wallet"], "nonce": 0}
        )
        yield self.send(
            sender,
            to=authority.address,
            value=9,
            data=words(6, 2),
            authorizationList=[authorization],
        )
        cleared = authority.sign_authorization(
            {"chainId": self.chain_id, "address": "0x" + "00" * 20, "nonce": 1}
        )
        yield self.send(sender, to=authority.address, authorizationList=[cleared])

    def _cast(self, number: int) -> Iterator[str]:
        """Sign and send with cast, if npm has installed it."""
        if not CAST.exists():
            return
        account = self._accounts["cast"]
        given = [
            "--private-key",
            account.key.to_0x_hex(),
            "--chain",
            str(self.chain_id),
        ]
        given += ["--nonce", str(self.nonce(account)), "--gas-limit", "100000"]
        given += ["--gas-price", str(20 * GWEI), "--rpc-url", self._service.url]
        given += ["--legacy"] if number % 2 else ["--priority-gas-price", str(GWEI)]
        receiver = self._contracts["token"]
        raw = _run_cast("mktx", *given, receiver, "balanceOf(address)", receiver)
        options = ("--async", "--rpc-url", self._service.url)
        found = _run_cast("publish", *options, raw)
        self.sent.append(found)
        yield found


def _run_cast(*arguments: str) -> str:
    done = subprocess.run(
        [CAST, *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.strip()
    return str(json.loads(printed)) if printed.startswith('"') else printed
