"""Summaries of blocks and transactions.

Single members are found by searching the stored JSON: an object may have megabytes, and
the members are near its ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import orjson

from abi.addresses import checksummed
from abi.selectors import function_name
from legible import words
from nodeapi.documents.receipt_codec import unpack_pieces
from nodeapi.documents.receipts import HEAD_BYTES

TAIL_MARK = b'"value":"0x'
TAIL_BYTES = 120
"""Length of the end part: it contains the value and the input's selector."""

_TAIL = re.compile(rb'"value":"(0x\w+)","input":"0x(\w{0,8})')

TYPES = {
    0: "legacy",
    1: "access list",
    2: "dynamic fee",
    3: "blob",
    4: "set code",
}
"""Names of the types of transactions."""

_PLAIN_FIELDS = {
    "extraData": "extra data",
    "mixHash": "mix hash, PREVRANDAO",
    "nonce": "nonce",
    "stateRoot": "state root",
    "transactionsRoot": "transactions root",
    "receiptsRoot": "receipts root",
    "withdrawalsRoot": "withdrawals root",
    "requestsHash": "requests hash",
    "blockAccessListHash": "block access list hash",
    "parentBeaconBlockRoot": "parent beacon block root",
    "sha3Uncles": "uncles hash",
}
_NUMBER_FIELDS = {
    "difficulty": "difficulty",
    "totalDifficulty": "total difficulty",
    "blobGasUsed": "blob gas used",
    "excessBlobGas": "excess blob gas",
    "slotNumber": "slot number",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The members of a receipt that pages show."""

    status: str
    """`success` or `failed`; empty before Byzantium, when receipts had no status."""
    gas_used: int
    contract: str
    """The address of the created contract, also if the creation failed."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A transaction, formatted as text."""

    index: int
    hash: str
    type: str
    sender: str
    to: str
    """Empty for a contract creation."""
    nonce: str
    value: str
    selector: str
    method: str
    """The well-known function that the selector selects; empty if there is none."""
    timestamp: int
    """Unix seconds."""
    gas: str
    gas_used: str
    gas_price: str
    fee: str
    status: str
    contract: str


def outcome(stored_receipt: bytes) -> Outcome:
    """Return the outcome in a receipt.

    stored_receipt: as `nodeapi.documents.receipts` packs it.
    """
    beginning = next(unpack_pieces(stored_receipt))
    status = _member(beginning, "status")
    return Outcome(
        status={"0x1": "success", "0x0": "failed"}.get(status, ""),
        gas_used=int(_member(beginning, "gasUsed"), 16),
        contract=_member(beginning, "contractAddress"),
    )


def summary(
    index: int, name: bytes, head: bytes, tail: bytes, stored_receipt: bytes
) -> Summary:
    """Return a transaction's summary.

    name: its hash. head, tail: the parts of its JSON object that `ends` returns.
    """
    result = outcome(stored_receipt)
    price = int(_member(head, "gasPrice"), 16)
    found = _TAIL.match(tail)
    value, data = found.groups() if found else (b"0x0", b"")
    to = _member(head, "to")
    selector = bytes.fromhex(data.decode()) if to and len(data) == 8 else b""
    kind = int(_member(head, "type"), 16)
    return Summary(
        index=index,
        hash="0x" + name.hex(),
        type=f"{kind}, {TYPES.get(kind, 'unknown')}",
        sender=_address(_member(head, "from")),
        to=_address(to),
        nonce=words.number(int(_member(head, "nonce"), 16)),
        value=words.ether(int(value, 16)),
        selector=f"0x{selector.hex()}" if selector else "",
        method=function_name(selector),
        timestamp=int(_member(head, "blockTimestamp") or "0x0", 16),
        gas=words.number(int(_member(head, "gas"), 16)),
        gas_used=words.number(result.gas_used),
        gas_price=words.gwei(price),
        fee=words.ether(price * result.gas_used),
        status=result.status,
        contract=_address(result.contract),
    )


def ends(document: bytes) -> tuple[bytes, bytes]:
    """Return the two parts of a transaction object that `summary` reads."""
    start = document.find(TAIL_MARK)
    return document[:HEAD_BYTES], document[start : start + TAIL_BYTES]


def block_facts(head: bytes) -> list[tuple[str, str]]:
    """Return names and values of a block's most important members.

    head: the block object up to its transactions.
    """
    members = _members(head)
    gas_used, gas_limit = (int(members[key], 16) for key in ("gasUsed", "gasLimit"))
    part = gas_used / gas_limit if gas_limit else 0
    facts = [("gas used", f"{gas_used:,} of {gas_limit:,} ({part:.1%})")]
    if "baseFeePerGas" in members:
        base_fee = int(members["baseFeePerGas"], 16)
        facts.append(("base fee per gas", words.gwei(base_fee)))
    facts.append(("size in bytes", words.number(int(members["size"], 16))))
    if "withdrawals" in members:
        facts.append(("withdrawals", words.number(len(members["withdrawals"]))))
    return facts


def header_fields(head: bytes) -> list[tuple[str, str]]:
    """Return names and values of a block's other members.

    head: the block object up to its transactions.
    """
    members = _members(head)
    fields = [
        (name, words.number(int(members[key], 16)))
        for key, name in _NUMBER_FIELDS.items()
        if key in members
    ]
    fields += [
        (name, members[key]) for key, name in _PLAIN_FIELDS.items() if key in members
    ]
    if members["uncles"]:
        fields.append(("uncles", ", ".join(members["uncles"])))
    return fields


def fee_recipient(head: bytes) -> str:
    """Return the account that gets a block's fees, with its checksum.

    head: the block object up to its transactions.
    """
    return _address(_member(head, "miner"))


def _members(head: bytes) -> dict[str, Any]:
    """Return a block's members up to its transactions."""
    members: dict[str, Any] = orjson.loads(head + b"[]}")
    return members


def _address(text: str) -> str:
    """Return an address with its checksum, "" for an empty text."""
    return checksummed(bytes.fromhex(text[2:])) if text else ""


def _member(text: bytes, name: str) -> str:
    """Return a hexadecimal member of a JSON text, "" if it is null or missing."""
    found = re.search(rb'"%b":"(0x\w*)"' % name.encode(), text)
    return found[1].decode() if found else ""
