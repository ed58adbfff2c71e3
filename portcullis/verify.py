"""Verification of a node's responses against a trusted block hash.

A block hash commits to the block's header, and the header to the state, the transactions
and the receipts. A node can therefore prove its responses. Who knows the hash, for example
from a light client, need not trust the node:

    from portcullis.verify import verify_answer

    balance = node.request("eth_getBalance", [address, block_hash])
    verify_answer("eth_getBalance", [address, block_hash], balance, block_hash, node.request)

`verify_answer` requests the proofs and raises VerificationError if they do not show the
response. The other functions check data that the caller has already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import rlp

from portcullis.merkle import EMPTY_ROOT, InvalidProof, keccak, list_root, proven_value
from portcullis.transactions import (
    Members,
    blob_gas,
    created_address,
    receipt_members,
    transaction_members,
)

Request = Callable[[str, list[Any]], Any]
"""Calls a JSON-RPC method with parameters, and returns its result."""

EMPTY_CODE_HASH = keccak(b"")
_ZERO = bytes(32)

_HEX = re.compile("0x[0-9a-fA-F]*")

_PROOF_MEMBERS = frozenset(
    {
        *("address", "accountProof", "balance", "codeHash"),
        *("nonce", "storageHash", "storageProof"),
    }
)
_STORAGE_PROOF_MEMBERS = frozenset({"key", "value", "proof"})

UNVERIFIABLE = frozenset({"blobGasPrice"})
"""Members that depend on the chain's fork schedule, which no block hash commits to."""


class VerificationError(ValueError):
    """Raised when a response is not shown to be right."""


@dataclass(frozen=True, slots=True)
class TrustedHeader:
    """The fields of a block's header that verification needs."""

    hash: bytes
    number: int
    timestamp: int
    base_fee: int | None
    """Wei; None before London."""
    state_root: bytes
    transactions_root: bytes
    receipts_root: bytes


@dataclass(frozen=True, slots=True)
class Account:
    """A proven account. An account that does not exist has the values of an empty one."""

    nonce: int
    balance: int
    """Wei."""
    storage_root: bytes
    code_hash: bytes


def verify_header(raw: bytes, block_hash: bytes) -> TrustedHeader:
    """Return the header of a block hash. raw: its RLP, as debug_getRawHeader returns it.

    Raises: VerificationError.
    """
    if keccak(raw) != block_hash:
        raise VerificationError(f"the header is not that of 0x{block_hash.hex()}")
    fields = rlp.decode(raw)
    return TrustedHeader(
        hash=block_hash,
        number=int.from_bytes(fields[8], "big"),
        timestamp=int.from_bytes(fields[11], "big"),
        base_fee=int.from_bytes(fields[15], "big") if len(fields) > 15 else None,
        state_root=fields[3],
        transactions_root=fields[4],
        receipts_root=fields[5],
    )


def verify_proof(
    proof: Mapping[str, Any], state_root: bytes, address: bytes, keys: Sequence[int]
) -> tuple[Account, list[int]]:
    """Return an account and the values of its slots, from the result of eth_getProof.

    All members of the result are checked. Members that eth_getProof does not define are
    rejected.

    Raises: VerificationError.
    """
    with _rejecting_malformed():
        _require_members(proof, _PROOF_MEMBERS)
        account = _proven_account(proof, state_root, address)
        slots = proof["storageProof"]
        _require(len(slots) == len(keys), "number of storage proofs")
        values = [
            _proven_slot(shown, account, key)
            for key, shown in zip(keys, slots, strict=True)
        ]
        return account, values


def _proven_account(
    proof: Mapping[str, Any], state_root: bytes, address: bytes
) -> Account:
    leaf = _proven(state_root, keccak(address), proof["accountProof"])
    account = Account(0, 0, EMPTY_ROOT, EMPTY_CODE_HASH)
    if leaf:
        nonce, balance, storage_root, code_hash = rlp.decode(leaf)
        account = Account(
            int.from_bytes(nonce, "big"),
            int.from_bytes(balance, "big"),
            storage_root,
            code_hash,
        )
    _require(_bytes(proof["address"]) == address, "the proof has another address")
    _require(_number(proof["nonce"]) == account.nonce, "nonce")
    _require(_number(proof["balance"]) == account.balance, "balance")
    for name, value in (
        ("storageHash", account.storage_root),
        ("codeHash", account.code_hash),
    ):
        # geth names zeros for an account that does not exist.
        _require(_bytes(proof[name]) in ((value,) if leaf else (value, _ZERO)), name)
    return account


def _proven_slot(shown: Mapping[str, Any], account: Account, key: int) -> int:
    _require_members(shown, _STORAGE_PROOF_MEMBERS)
    slot = keccak(key.to_bytes(32, "big"))
    found = _proven(account.storage_root, slot, shown["proof"])
    value = int.from_bytes(rlp.decode(found), "big") if found else 0
    _require(_number(shown["key"]) == key, "a storage proof has another key")
    _require(_number(shown["value"]) == value, f"value of slot {key:#x}")
    return value


def verify_code(code: bytes, account: Account) -> None:
    """Check a contract's code. Raises: VerificationError."""
    _require(keccak(code) == account.code_hash, "the code has another hash")


def verify_transactions(raws: Sequence[bytes], header: TrustedHeader) -> None:
    """Check that transactions are all those of a block. Raises: VerificationError."""
    root = list_root(raws)
    _require(root == header.transactions_root, "the transactions have another root")


def verify_receipts(raws: Sequence[bytes], header: TrustedHeader) -> None:
    """Check that receipts are all those of a block. Raises: VerificationError."""
    _require(list_root(raws) == header.receipts_root, "the receipts have another root")


def verify_answer(
    method: str,
    params: Sequence[Any],
    answer: Any,
    block_hash: bytes | str,
    request: Request,
) -> None:
    """Check a response about the state after a block, or about its contents.

    method: eth_getBalance, eth_getCode, eth_getTransactionCount, eth_getStorageAt,
        eth_getProof, eth_getTransactionByHash,
        eth_getTransactionByBlockHashAndIndex, eth_getTransactionByBlockNumberAndIndex,
        eth_getTransactionReceipt or eth_getBlockReceipts.
    params: those of the response. Its block parameter is taken to be the trusted block.
    block_hash: trusted by the caller.
    request: asks any node for proofs. It need not be trusted.

    Members of UNVERIFIABLE are not checked.

    Raises: VerificationError; whatever `request` raises.
    """
    trusted = _bytes(block_hash)
    check = _CHECKS.get(method)
    if check is None:
        raise VerificationError(f"answers of {method} can't be verified")
    with _rejecting_malformed():
        check(list(params), answer, _Node(trusted, request))


class _Node:
    """A node's data about a trusted block."""

    def __init__(self, block_hash: bytes, request: Request) -> None:
        self.block_hash = block_hash
        self.request = request
        self._name = "0x" + block_hash.hex()

    def header(self) -> TrustedHeader:
        raw = _bytes(self.request("debug_getRawHeader", [self._name]))
        return verify_header(raw, self.block_hash)

    def account(self, address: str, *keys: int) -> tuple[Account, list[int]]:
        names = [f"0x{key:064x}" for key in keys]
        proof = self.request("eth_getProof", [address, names, self._name])
        return verify_proof(proof, self.header().state_root, _bytes(address), keys)

    def transactions(self) -> list[Members]:
        """Return the complete transaction objects of the block."""
        header = self.header()
        block = rlp.decode(_bytes(self.request("debug_getRawBlock", [self._name])))
        raws = [
            each if isinstance(each, bytes) else rlp.encode(each) for each in block[1]
        ]
        verify_transactions(raws, header)
        place = {
            "blockHash": self._name,
            "blockNumber": hex(header.number),
            "blockTimestamp": hex(header.timestamp),
        }
        return [
            {
                **transaction_members(raw, header.base_fee),
                **place,
                "transactionIndex": hex(index),
            }
            for index, raw in enumerate(raws)
        ]

    def receipts(self) -> list[Members]:
        """Return the complete receipt objects of the block."""
        header = self.header()
        found = self.request("debug_getRawReceipts", [self._name])
        raws = [_bytes(each) for each in found]
        verify_receipts(raws, header)
        complete, gas, logs = [], 0, 0
        for raw, transaction in zip(raws, self.transactions(), strict=True):
            receipt = receipt_members(raw)
            total = int(receipt["cumulativeGasUsed"], 16)
            complete.append(_receipt(receipt, transaction, total - gas, logs))
            gas, logs = total, logs + len(receipt["logs"])
        return complete


def _receipt(own: Members, transaction: Members, gas: int, first_log: int) -> Members:
    """Return a complete receipt object.

    own: its own members. gas: that its transaction used. first_log: its index.
    """
    place = {
        "transactionHash": transaction["hash"],
        "transactionIndex": transaction["transactionIndex"],
        "blockHash": transaction["blockHash"],
        "blockNumber": transaction["blockNumber"],
    }
    time = {"blockTimestamp": transaction["blockTimestamp"]}
    logs = [
        {**log, **place, **time, "logIndex": hex(index), "removed": False}
        for index, log in enumerate(own["logs"], first_log)
    ]
    blobs = blob_gas(transaction)
    return {
        **own,
        **place,
        **time,
        **({"blobGasUsed": hex(blobs)} if blobs else {}),
        "from": transaction["from"],
        "to": transaction["to"],
        "contractAddress": created_address(transaction),
        "effectiveGasPrice": transaction["gasPrice"],
        "gasUsed": hex(gas),
        "logs": logs,
    }


def _check_balance(params: list[Any], answer: Any, node: _Node) -> None:
    account, _ = node.account(params[0])
    _require(_number(answer) == account.balance, "balance")


def _check_nonce(params: list[Any], answer: Any, node: _Node) -> None:
    account, _ = node.account(params[0])
    _require(_number(answer) == account.nonce, "nonce")


def _check_code(params: list[Any], answer: Any, node: _Node) -> None:
    account, _ = node.account(params[0])
    verify_code(_bytes(answer), account)


def _check_storage(params: list[Any], answer: Any, node: _Node) -> None:
    _, (value,) = node.account(params[0], int(params[1], 16))
    _require(int.from_bytes(_bytes(answer), "big") == value, "value")


def _check_proof(params: list[Any], answer: Any, node: _Node) -> None:
    keys = [int(key, 16) for key in params[1]]
    verify_proof(answer, node.header().state_root, _bytes(params[0]), keys)


def _check_transaction(params: list[Any], answer: Any, node: _Node) -> None:
    _compare(answer, _named(node.transactions(), params[0], "hash"))


def _check_transaction_at(params: list[Any], answer: Any, node: _Node) -> None:
    found, index = node.transactions(), int(params[1], 16)
    _compare(answer, found[index] if index < len(found) else None)


def _check_receipt(params: list[Any], answer: Any, node: _Node) -> None:
    _compare(answer, _named(node.receipts(), params[0], "transactionHash"))


def _check_receipts(params: list[Any], answer: Any, node: _Node) -> None:
    found = node.receipts()
    _require(
        isinstance(answer, list) and len(answer) == len(found), "number of receipts"
    )
    for each, expected in zip(answer, found, strict=True):
        _compare(each, expected)


_CHECKS: dict[str, Callable[[list[Any], Any, _Node], None]] = {
    "eth_getBalance": _check_balance,
    "eth_getTransactionCount": _check_nonce,
    "eth_getCode": _check_code,
    "eth_getStorageAt": _check_storage,
    "eth_getProof": _check_proof,
    "eth_getTransactionByHash": _check_transaction,
    "eth_getTransactionByBlockHashAndIndex": _check_transaction_at,
    "eth_getTransactionByBlockNumberAndIndex": _check_transaction_at,
    "eth_getTransactionReceipt": _check_receipt,
    "eth_getBlockReceipts": _check_receipts,
}


def _named(found: list[Members], name: str, member: str) -> Members | None:
    """Return the object of a transaction hash, None if the block does not have it."""
    return next((each for each in found if each[member] == name.lower()), None)


def _compare(answer: Any, expected: Members | None) -> None:
    """Compare an object with its proven members."""
    if answer is None or expected is None:
        _require(answer is expected, "whether the block contains it")
        return
    for name, value in answer.items():
        if name in UNVERIFIABLE:
            continue
        _require(name in expected, f"{name}, which no proof shows")
        _require(_is_same(value, expected[name]), name)
    # Nodes omit members that the object of a log or receipt need not have.
    missing = expected.keys() - answer.keys() - {"blockTimestamp", "chainId", "yParity"}
    _require(not missing, ", ".join(sorted(missing)))


def _is_same(value: Any, expected: Any) -> bool:
    """Compare JSON values. The digits of addresses may have any case."""
    if isinstance(value, str) and isinstance(expected, str):
        return value.lower() == expected
    if isinstance(value, list) and isinstance(expected, list):
        return len(value) == len(expected) and all(map(_is_same, value, expected))
    if isinstance(value, dict) and isinstance(expected, dict):
        names = value.keys() | expected.keys() - {"blockTimestamp"}
        return all(
            name in value and name in expected and _is_same(value[name], expected[name])
            for name in names
        )
    return type(value) is type(expected) and bool(value == expected)


def _proven(root: bytes, key: bytes, proof: Sequence[str]) -> bytes:
    try:
        return proven_value(root, key, [_bytes(node) for node in proof])
    except InvalidProof as error:
        raise VerificationError(f"invalid proof: {error}") from error


@contextmanager
def _rejecting_malformed() -> Iterator[None]:
    """Raise VerificationError for the errors that data of a wrong form causes."""
    try:
        yield
    except (
        *(AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError),
        rlp.DecodingError,
    ) as error:
        if isinstance(error, VerificationError):
            raise
        raise VerificationError(f"malformed: {error!r}") from error


def _require_members(value: Mapping[str, Any], names: frozenset[str]) -> None:
    """Check the names of an object's members."""
    unknown, missing = value.keys() - names, names - value.keys()
    _require(not unknown, ", ".join(sorted(unknown)))
    _require(not missing, ", ".join(sorted(missing)))


def _require(is_right: bool, what: str) -> None:
    if not is_right:
        raise VerificationError(f"not shown by the proof: {what}")


def _number(value: Any) -> int:
    return int(_hex(value), 16)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else bytes.fromhex(_hex(value)[2:])


def _hex(value: Any) -> str:
    """Return a text of 0x and digits, without what int and bytes.fromhex also accept."""
    if not (isinstance(value, str) and _HEX.fullmatch(value)):
        raise ValueError(f"{value!r} is not hexadecimal")
    return value
