"""Blocks as RLP, rebuilt from an upstream's JSON and verified by their hash.

No member of an upstream's block object is trusted. Only members that the block's RLP
contains are read, and the result must have the requested hash.

Source: execution-apis src/schemas/{block,transaction,withdrawal}.yaml
"""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from evm import rlp
from evm.headers import Header, decode_header
from evm.rlp import Item, RlpError
from evm.signatures import keccak
from evm.transactions import ACCESS_LIST, BLOB, DYNAMIC_FEE, LEGACY, SET_CODE
from evm.trie_roots import ordered_root
from nodeapi.upstreams.errors import (
    LaterFork,
    UnknownTransactionType,
    UnsupportedBlock,
    WrongBlock,
)
from nodeapi.upstreams.quantities import (
    BLOCK_BITS,
    TRANSACTION_BITS,
    WITHDRAWAL_BITS,
    quantity,
)

MAX_UNCLES = 2
"""A block has no more. Source: Yellow Paper, 4.4.4"""

Document = Mapping[str, Any]
"""A JSON object."""

_T = TypeVar("_T")

_LIST_PREFIX = b"\xc0"
"""Smallest first byte of an RLP list."""


def verified(raw: bytes, wanted_hash: bytes) -> bytes:
    """Verify that a block's RLP belongs to a hash, and return it.

    The header must have the hash, and the transactions, uncles and withdrawals must have
    the header's roots. Rules of the forks are not checked.

    Raises: WrongBlock; UnsupportedBlock if the header has the hash, but not the format of
        a fork up to Amsterdam.
    """
    try:
        parts = rlp.list_items(raw)
    except RlpError as error:
        raise WrongBlock(f"no RLP: {error}") from error
    if len(parts) not in (3, 4):
        raise WrongBlock(f"the RLP has {len(parts)} parts, not 3 or 4")
    found = keccak(parts[0])
    if found != wanted_hash:
        raise WrongBlock(f"the header's hash is 0x{found.hex()}")
    try:
        header = decode_header(parts[0])
    except RlpError as error:
        raise UnsupportedBlock(f"header: {error}") from error
    try:
        _check_body(header, parts[1:])
    except RlpError as error:
        raise WrongBlock(f"the body is no RLP: {error}") from error
    return raw


def rebuild_block(
    document: Document,
    uncles: Sequence[Document] = (),
    raw_transactions: Mapping[int, bytes] | None = None,
) -> bytes:
    """Return a block's RLP from its block object with transaction objects.

    uncles: the uncles' block objects.
    raw_transactions: EIP-2718 encodings by index. The other transactions are rebuilt.

    Raises: WrongBlock naming the first malformed member, or the transaction or uncle
        whose hash differs from the block object's; UnknownTransactionType.
    """
    header = header_of(document)
    transactions = _field(document, "transactions", _objects)
    given = raw_transactions or {}
    encoded = []
    for index, transaction in enumerate(transactions):
        raw = given.get(index)
        if raw is None:
            raw = _in(f"transaction {index}", _raw_transaction, transaction)
        # Legacy transactions are lists. Others are byte strings.
        encoded.append(raw if raw[:1] >= _LIST_PREFIX else rlp.encode(raw))
    payload = header.encode() + rlp.wrap_list(b"".join(encoded))
    payload += rlp.encode(_uncle_items(document, uncles))
    if header.withdrawals_root is not None:
        withdrawals = _field(document, "withdrawals", _objects)
        payload += rlp.encode(
            [
                _in(f"withdrawal {index}", _items, withdrawal, _WITHDRAWAL)
                for index, withdrawal in enumerate(withdrawals)
            ]
        )
    return rlp.wrap_list(payload)


def header_of(document: Document) -> Header:
    """Return the header of a block object.

    Raises: WrongBlock if the header does not have the object's `hash`; LaterFork if the
        reason may be that it has unknown members.
    """
    values = {
        field: _field(document, name, read) for field, (name, read) in _HEADER.items()
    } | {
        field: _field(document, name, read)
        for field, (name, read) in _LATER_HEADER.items()
        if document.get(name) is not None
    }
    try:
        header = Header(**values)
    except ValueError as error:
        raise WrongBlock(f"header: {error}") from error
    wanted = _field(document, "hash", hash32)
    if header.hash != wanted:
        unknown = sorted(
            name
            for name in document.keys() - _KNOWN_MEMBERS
            if document[name] is not None
        )
        if unknown:
            raise LaterFork(header.number, header.timestamp, wanted, tuple(unknown))
        raise WrongBlock(f"the header's hash is 0x{header.hash.hex()}")
    return header


def unknown_types(document: Document) -> dict[int, int]:
    """Return the types of the transactions that can't be rebuilt, by index.

    Raises: WrongBlock.
    """
    types = {
        index: _in(f"transaction {index}", _type, transaction)
        for index, transaction in enumerate(_field(document, "transactions", _objects))
    }
    return {index: kind for index, kind in types.items() if kind not in _TRANSACTIONS}


def uncle_hashes(document: Document) -> list[bytes]:
    """Return the hashes of a block object's uncles. Raises: WrongBlock."""
    hashes = _field(document, "uncles", _list_of(hash32))
    if len(hashes) > MAX_UNCLES:
        raise WrongBlock(f"uncles: {len(hashes)} exceed {MAX_UNCLES}")
    return hashes


def _check_body(header: Header, parts: Sequence[bytes]) -> None:
    """Compare the RLP of transactions, uncles and withdrawals with a header."""
    _check("transactions", _root(parts[0]), header.transactions_root)
    _check("uncles", keccak(parts[1]), header.uncles_hash)
    withdrawals = _root(parts[2]) if len(parts) == 3 else None
    _check("withdrawals", withdrawals, header.withdrawals_root)


def _check(name: str, found: bytes | None, promised: bytes | None) -> None:
    if found != promised:
        raise WrongBlock(
            f"the {name} have the root {_text(found)}, the header {_text(promised)}"
        )


def _text(value: bytes | None) -> str:
    return "none" if value is None else f"0x{value.hex()}"


def _root(part: bytes) -> bytes:
    """Return the root of a list of transactions or withdrawals from its RLP."""
    values = []
    for item in rlp.list_items(part):
        is_list, start, end = rlp.span(item, 0, len(item))
        value = item if is_list else item[start:end]
        if not is_list and value[:1] >= _LIST_PREFIX:
            # The root would be that of the list itself.
            raise WrongBlock("the body has a list inside a string")
        values.append(value)
    return ordered_root(values)


# Transactions, uncles and withdrawals


def _raw_transaction(document: Document) -> bytes:
    """Return a transaction's EIP-2718 encoding.

    Raises: WrongBlock if the hash of the encoding is not the document's `hash`;
        UnknownTransactionType.
    """
    kind = _type(document)
    names = _TRANSACTIONS.get(kind)
    if names is None:
        raise UnknownTransactionType(kind)
    raw = rlp.encode(_items(document, names))
    if kind != LEGACY:
        raw = bytes([kind]) + raw
    found, wanted = keccak(raw), _field(document, "hash", hash32)
    if found != wanted:
        raise WrongBlock(f"its hash is 0x{found.hex()}, not {_text(wanted)}")
    return raw


def _type(document: Document) -> int:
    """Return a transaction's type. Old nodes omit it for legacy transactions."""
    return _field(document, "type", _KIND) if "type" in document else LEGACY


def _uncle_items(document: Document, uncles: Sequence[Document]) -> list[Item]:
    wanted = uncle_hashes(document)
    if len(uncles) != len(wanted):
        raise WrongBlock(f"{len(uncles)} uncles, not {len(wanted)}")
    found: list[Item] = []
    for index, (uncle, uncle_hash) in enumerate(zip(uncles, wanted, strict=True)):
        header = _in(f"uncle {index}", header_of, uncle)
        if header.hash != uncle_hash:
            raise WrongBlock(f"uncle {index}: its hash is 0x{header.hash.hex()}")
        found.append(header.items())
    return found


# JSON values


def data(value: Any) -> bytes:
    """Decode bytes from hexadecimal. Raises: WrongBlock."""
    if isinstance(value, str) and value[:2] == "0x":
        try:
            return unhexlify(value[2:])
        except ValueError:
            pass
    raise WrongBlock("no data")


def _fixed(size: int) -> Callable[[Any], bytes]:
    def read(value: Any) -> bytes:
        found = data(value)
        if len(found) != size:
            raise WrongBlock(f"{len(found)} bytes, not {size}")
        return found

    return read


hash32 = _fixed(32)
"""Decodes 32 bytes from hexadecimal."""

address = _fixed(20)
"""Decodes 20 bytes from hexadecimal."""


def _object(value: Any) -> Document:
    if not isinstance(value, dict):
        raise WrongBlock("no object")
    return value


def _list_of(read: Callable[[Any], _T]) -> Callable[[Any], list[_T]]:
    def read_list(value: Any) -> list[_T]:
        if not isinstance(value, list):
            raise WrongBlock("no list")
        return [_in(f"[{index}]", read, item) for index, item in enumerate(value)]

    return read_list


_objects = _list_of(_object)


def _in(place: str, read: Callable[..., _T], *arguments: Any) -> _T:
    """Call a function. Raise its ValueErrors as WrongBlock, after the place."""
    try:
        return read(*arguments)
    except ValueError as error:
        raise WrongBlock(f"{place}: {error}") from None


def _field(document: Document, name: str, read: Callable[[Any], _T]) -> _T:
    """Return a decoded member of a JSON object. An absent member is read as null.

    Raises: WrongBlock, with the member's name in the reason.
    """
    return _in(name, read, document.get(name))


def _number(bits: int) -> Callable[[Any], bytes]:
    return lambda value: rlp.encode_int(quantity(value, bits))


def _to(value: Any) -> bytes:
    """Decode a transaction's recipient. Null, which means a creation, is empty."""
    return b"" if value is None else address(value)


def _access(value: Any) -> Item:
    return _items(_object(value), ("address", "storageKeys"))


def _authorization(value: Any) -> Item:
    return _items(_object(value), _AUTHORIZATION)


def _items(document: Document, names: Sequence[str]) -> list[Item]:
    """Return the RLP items of an object's members."""
    return [_field(document, name, _MEMBERS[name]) for name in names]


_MEMBERS: dict[str, Callable[[Any], Item]] = {
    **{name: _number(bits) for name, bits in TRANSACTION_BITS.items()},
    **{name: _number(bits) for name, bits in WITHDRAWAL_BITS.items()},
    "to": _to,
    "address": address,
    "input": data,
    "accessList": _list_of(_access),
    "storageKeys": _list_of(hash32),
    "blobVersionedHashes": _list_of(hash32),
    "authorizationList": _list_of(_authorization),
}
"""Functions that decode the members of transactions and withdrawals."""

_KIND = partial(quantity, bits=TRANSACTION_BITS["type"])

_WITHDRAWAL = ("index", "validatorIndex", "address", "amount")

_AUTHORIZATION = ("chainId", "address", "nonce", "yParity", "r", "s")

_ACCESS_LIST_FIELDS = (
    *("chainId", "nonce", "gasPrice", "gas", "to", "value", "input", "accessList"),
    *("yParity", "r", "s"),
)
_DYNAMIC_FEE_FIELDS = (
    *("chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas", "gas", "to", "value"),
    *("input", "accessList"),
)
_TRANSACTIONS: dict[int, tuple[str, ...]] = {
    LEGACY: ("nonce", "gasPrice", "gas", "to", "value", "input", "v", "r", "s"),
    ACCESS_LIST: _ACCESS_LIST_FIELDS,
    DYNAMIC_FEE: (*_DYNAMIC_FEE_FIELDS, "yParity", "r", "s"),
    BLOB: (
        *_DYNAMIC_FEE_FIELDS,
        *("maxFeePerBlobGas", "blobVersionedHashes", "yParity", "r", "s"),
    ),
    SET_CODE: (*_DYNAMIC_FEE_FIELDS, "authorizationList", "yParity", "r", "s"),
}
"""Members of a transaction object in the order of the encoding, by type.

Sources: EIP-155, EIP-2930, EIP-1559, EIP-4844, EIP-7702
"""


def _header_number(name: str) -> tuple[str, Callable[[Any], int]]:
    return name, partial(quantity, bits=BLOCK_BITS[name])


_HEADER: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "parent_hash": ("parentHash", hash32),
    "uncles_hash": ("sha3Uncles", hash32),
    "coinbase": ("miner", address),
    "state_root": ("stateRoot", hash32),
    "transactions_root": ("transactionsRoot", hash32),
    "receipts_root": ("receiptsRoot", hash32),
    "logs_bloom": ("logsBloom", _fixed(256)),
    "difficulty": _header_number("difficulty"),
    "number": _header_number("number"),
    "gas_limit": _header_number("gasLimit"),
    "gas_used": _header_number("gasUsed"),
    "timestamp": _header_number("timestamp"),
    "extra_data": ("extraData", data),
    "mix_hash": ("mixHash", hash32),
    "nonce": ("nonce", _fixed(8)),
}
"""Header field → the block object's member and the function that decodes it."""

_LATER_HEADER: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "base_fee_per_gas": _header_number("baseFeePerGas"),
    "withdrawals_root": ("withdrawalsRoot", hash32),
    "blob_gas_used": _header_number("blobGasUsed"),
    "excess_blob_gas": _header_number("excessBlobGas"),
    "parent_beacon_root": ("parentBeaconBlockRoot", hash32),
    "requests_hash": ("requestsHash", hash32),
    "block_access_list_hash": ("blockAccessListHash", hash32),
    "slot_number": _header_number("slotNumber"),
}
"""The same for fields that forks added. Before its fork, a member is absent or null."""

_KNOWN_MEMBERS = {
    *(name for name, _ in _HEADER.values()),
    *(name for name, _ in _LATER_HEADER.values()),
    *("hash", "size", "totalDifficulty", "transactions", "uncles", "withdrawals"),
}
