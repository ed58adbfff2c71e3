"""Accounts and slots that an upstream names as those that a block or a call accesses.

They only say what to fetch, and every value is proved. A wrong hint costs time, so their
number is limited. Only a block access list from Amsterdam on is verified, by the header.

Source: EIP-7928; go-ethereum v1.17.10 core/types/bal/bal_encoding.go,
eth/tracers/native/prestate.go, internal/ethapi/api.go `CreateAccessList`;
https://github.com/ethereum/execution-apis/pull/726
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from typing import Any

from eth_typing import Address

from evm import rlp
from evm.hexadecimal import to_hex
from evm.proved_state import Keys
from evm.rlp import Item
from evm.signatures import keccak
from nodeapi.upstreams.block_rlp import address, data
from nodeapi.upstreams.client import MAX_BLOCK_BYTES, UpstreamClient
from nodeapi.upstreams.errors import (
    MethodUnavailable,
    UnusableAnswer,
    UpstreamError,
)
from nodeapi.upstreams.quantities import quantity
from nodeapi.upstreams.state import call_optional

MAX_LIST_BYTES = 64 * 2**20
"""Maximum size of a response with a block access list. One of 100 million gas has up to
50,000 items, and the values of changed slots."""

_MAX_CALL_BYTES = 8 * 2**20

_GAS_PER_KEY = 1500
"""The cheapest access costs 1900 gas (EIP-2930), a fifth of which may be refunded."""
_SYSTEM_KEYS = 1000
"""More than what system calls, withdrawals and the fee's recipient access."""

_NOT_FOUND = -32000

OWN_LIST = "portcullis_getBlockAccessList"
"""Our own node's method, and the only one for blocks before Amsterdam."""

_LISTS: dict[str, Callable[[Any], bytes]] = {
    "debug_getRawBlockAccessList": data,
    "eth_getBlockAccessList": lambda value: _encoded(value),
    OWN_LIST: lambda value: _encoded(_object(value).get("list")),
}
"""Method → function that returns the RLP of its result."""


def most_keys(gas_used: int) -> int:
    """Return a number of keys that no block exceeds that used some gas."""
    return gas_used // _GAS_PER_KEY + _SYSTEM_KEYS


async def listed_keys(
    client: UpstreamClient, block_hash: bytes, list_hash: bytes | None, limit: int
) -> Keys:
    """Return the accounts and slots of a block's access list.

    list_hash: from the block's header, None before Amsterdam. limit: number of keys.

    Raises: as `access_list`, and UnusableAnswer if a list has more keys.
    """
    raw = await access_list(client, block_hash, list_hash)
    return _usable("the access list", limit, lambda keys: _add_list(keys, raw, limit))


async def access_list(
    client: UpstreamClient, block_hash: bytes, list_hash: bytes | None
) -> bytes:
    """Return the RLP of a block's access list.

    list_hash: from the block's header, None before Amsterdam.

    Raises: UpstreamError, MethodUnavailable if no list is offered; UpstreamUnavailable,
        UnusableAnswer if a list has another hash.
    """
    methods = list(_LISTS) if list_hash is not None else [OWN_LIST]
    failure: UnusableAnswer | UpstreamError | None = None
    for method in methods:
        try:
            found = await call_optional(
                client, method, to_hex(block_hash), max_bytes=MAX_LIST_BYTES
            )
            if found is None:
                raise UpstreamError(_NOT_FOUND, "there is no access list of the block")
            return _verified(method, found, list_hash)
        except (UnusableAnswer, UpstreamError) as error:
            if failure is None or isinstance(failure, MethodUnavailable):
                failure = error
    assert failure is not None
    raise failure


async def prestate_keys(client: UpstreamClient, block_hash: bytes, limit: int) -> Keys:
    """Return the accounts and slots that a block's transactions access, by a trace.

    The accesses of system calls and withdrawals are missing.

    Raises: UpstreamError, MethodUnavailable if tracing is not offered;
        UpstreamUnavailable, UnusableAnswer.
    """
    found = await call_optional(
        client,
        "debug_traceBlockByHash",
        to_hex(block_hash),
        {
            "tracer": "prestateTracer",
            # Without the second option, accounts that come to exist are missing.
            "tracerConfig": {"disableCode": True, "includeEmpty": True},
        },
        max_bytes=MAX_BLOCK_BYTES,
    )
    return _usable("the trace", limit, lambda keys: _add_traces(keys, found))


async def call_keys(
    client: UpstreamClient,
    call: Mapping[str, Any],
    block_hash: bytes,
    limit: int,
    *overrides: Any,
) -> Keys:
    """Return the accounts and slots that a call accesses after a block.

    call: with JSON values, as in eth_call. overrides: of the state, if there are any.

    Raises: UpstreamError, also if the call is invalid, and MethodUnavailable;
        UpstreamUnavailable, UnusableAnswer.
    """
    found = await call_optional(
        client,
        "eth_createAccessList",
        call,
        {"blockHash": to_hex(block_hash)},
        *overrides,
        max_bytes=_MAX_CALL_BYTES,
    )

    def add(keys: Keys) -> None:
        for each in _list(_object(found).get("accessList")):
            entry = _object(each)
            _add(keys, entry.get("address"), _list(entry.get("storageKeys") or []))
        for name in ("from", "to"):  # They are only listed for their slots.
            if call.get(name) is not None:
                _add(keys, call[name], ())

    return _usable("the access list", limit, add)


def _verified(method: str, found: Any, list_hash: bytes | None) -> bytes:
    """Return the RLP of a list. Raises: UnusableAnswer."""
    try:
        raw = _LISTS[method](found)
    except (ValueError, RecursionError) as error:
        raise UnusableAnswer(f"the result of {method} is malformed: {error}") from None
    if list_hash is not None and keccak(raw) != list_hash:
        raise UnusableAnswer(f"the list of {method} does not have the header's hash")
    return raw


def _add_list(keys: Keys, raw: bytes, limit: int) -> None:
    """Add the accounts and slots of a list, whose header need not be true either.

    Decoding ends soon after too many keys. Raises: ValueError.
    """
    for account in rlp.iterate_items(raw):
        first, changed, reads = islice(rlp.iterate_items(account), 3)
        name = Address(rlp.decode_bytes(_word(first), 20))
        keys.accounts.add(name)
        for each in chain(
            map(_first, rlp.iterate_items(changed)), rlp.iterate_items(reads)
        ):
            keys.slots.add((name, rlp.decode_int(_word(each))))
            if len(keys) > limit:
                return


def _word(item: bytes) -> rlp.Decoded:
    """Return a decoded item of up to 32 bytes. Raises: RlpError."""
    if len(item) > 33:
        raise rlp.RlpError("a value is longer than 32 bytes")
    return rlp.decode(item)


def _first(item: bytes) -> bytes:
    """Return the first item of an encoded list. Raises: RlpError without one."""
    for first in rlp.iterate_items(item):
        return first
    raise rlp.RlpError("a list is empty")


def _usable(name: str, limit: int, add: Callable[[Keys], None]) -> Keys:
    """Return the keys that a function adds. Raises: UnusableAnswer.

    add: may raise ValueError. name: of what the keys come from.
    """
    keys = Keys()
    try:
        add(keys)
    except ValueError as error:
        raise UnusableAnswer(f"{name} is malformed: {error}") from None
    if len(keys) > limit:
        raise UnusableAnswer(f"{name} has {len(keys)} accounts and slots, not {limit}")
    return keys


def _add_traces(keys: Keys, traces: Any) -> None:
    for trace in _list(traces):
        result = _object(trace).get("result")
        if result is None:
            continue  # its transaction has an error instead
        for name, account in _object(result).items():
            _add(keys, name, _object(_object(account).get("storage") or {}))


def _add(keys: Keys, name: Any, slots: Iterable[Any]) -> None:
    account = Address(address(name))
    keys.accounts.add(account)
    keys.slots.update((account, quantity(slot)) for slot in slots)


# Block access lists in JSON


def _encoded(value: Any) -> bytes:
    """Return the RLP of a list in JSON. Raises: ValueError."""
    return rlp.encode([_account(_object(each)) for each in _list(value)])


def _account(one: Mapping[str, Any]) -> list[Item]:
    return [
        address(one.get("address")),
        [
            [
                _number(_object(each).get("slot")),
                _changes(each.get("slotChanges"), "postValue", _number),
            ]
            for each in _list(one.get("storageChanges"))
        ],
        [_number(slot) for slot in _list(one.get("storageReads"))],
        _changes(one.get("balanceChanges"), "postBalance", _number),
        _changes(one.get("nonceChanges"), "postNonce", _number),
        _changes(one.get("codeChanges"), "newCode", data),
    ]


def _changes(value: Any, name: str, read: Callable[[Any], bytes]) -> list[Item]:
    """Return pairs of an index and a value. name: of the value."""
    return [
        [_number(_object(each).get("blockAccessIndex")), read(each.get(name))]
        for each in _list(value)
    ]


def _number(value: Any) -> bytes:
    return rlp.encode_int(quantity(value))


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("no list")
    return value
