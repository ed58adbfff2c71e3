"""Trie nodes and contract codes that one upstream sends of the state after a block.

Nothing of it is trusted: nodes are later found by the hashes that a trusted state root
leads to (`evm.proof_nodes`), and codes by their own hash. Values, hashes and keys in the
responses are not read at all. So the special forms of nodes, such as geth's empty proof
of a slot in an account without storage, need no rule.

Source: EIP-1186; go-ethereum v1.17.10 internal/ethapi/api.go `GetProof`, and
core/stateless/encoding.go; reth crates/rpc/rpc/src/debug.rs; EIP-1898
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eth_typing import Hash32

from evm.headers import Header, decode_header
from evm.hexadecimal import to_hex
from evm.proved_state import Keys
from evm.signatures import keccak
from evm.trie_nodes import FULL_BRANCH_SIZE
from nodeapi.upstreams.block_rlp import data, header_of
from nodeapi.upstreams.client import MAX_BATCH, MAX_BLOCK_BYTES, UpstreamClient
from nodeapi.upstreams.errors import (
    MethodUnavailable,
    UnusableAnswer,
    UpstreamError,
    UpstreamUnavailable,
)
from nodeapi.upstreams.source import REFUSING_STATUSES

if TYPE_CHECKING:
    from eth_typing import Address

MAX_KEYS = 1024
"""Slots in a call of eth_getProof: geth's limit."""

REQUESTS_AT_ONCE = 8
"""Requests for proofs in flight. They are half of all that a client permits."""

_PROOF_BYTES = 16_000
"""Size of an account's or a slot's proof in a response: 15 full branches. Mainnet's proofs
have up to 10 nodes."""

_CODE_BYTES = 140_000
"""Size of a contract's code in a response: 64 KiB, the maximum since Amsterdam."""

_REQUEST_BYTES = 2**24
"""Size of a response to `MAX_KEYS` proofs. geth sends up to 25 MB."""

PORTION_BYTES = REQUESTS_AT_ONCE * _REQUEST_BYTES
"""Most bytes that the proofs and codes of a part of many keys may have. They usually have a
twentieth of it."""

_OTHER_BYTES = 2**20
"""Size of everything else in a response, and of paths that are longer than expected."""

_INVALID_PARAMS = -32602
_NOT_FOUND = -32000

_BLOCK_OBJECTS = "EIP-1898"
_WITNESS_BY_HASH = "debug_executionWitness by hash"
"""Names under which a client remembers that a form of arguments is refused."""

_MAX_NODE_DIGITS = 2 + 2 * FULL_BRANCH_SIZE

Call = tuple[str, tuple[Any, ...]]
"""A method, and its arguments before the block."""


@dataclass(slots=True)
class Material:
    """What an upstream has sent to prove values.

    nodes: the RLP of trie nodes, and perhaps other bytes. codes: by their hashes.
    headers: of the block's ancestors, by their hashes, if it is a witness.
    failure: the first error, if only a part of the calls succeeded.
    is_by_number: whether it may belong to another block with the same number.
    """

    nodes: set[bytes] = field(default_factory=set)
    codes: dict[Hash32, bytes] = field(default_factory=dict)
    headers: dict[Hash32, Header] = field(default_factory=dict)
    failure: UpstreamError | UpstreamUnavailable | None = None
    is_by_number: bool = False


async def proofs(
    client: UpstreamClient, number: int, block_hash: bytes, keys: Keys
) -> Material:
    """Return the nodes that prove keys in the state after a block, and accounts' codes.

    A block takes one round trip if its keys fit into `REQUESTS_AT_ONCE` requests, each
    with up to `MAX_BATCH` calls and `MAX_KEYS` slots. The upstream is asked by the block's
    hash, or by its number if it refuses that.

    Raises: UpstreamError or UpstreamUnavailable if no call succeeds.
    """
    by_hash = {"blockHash": to_hex(block_hash)}
    if client.offers(_BLOCK_OBJECTS):
        try:
            return await _proofs(client, by_hash, keys)
        except UpstreamError as error:
            if error.code != _INVALID_PARAMS:
                raise
    found = await _proofs(client, hex(number), keys)
    found.is_by_number = True
    client.note_refusal(_BLOCK_OBJECTS)
    return found


async def has_block(client: UpstreamClient, number: int, block_hash: bytes) -> bool:
    """Return whether a block is on the upstream's chain, True if that is unknown."""
    try:
        found = await client.call("eth_getBlockByNumber", hex(number), False)
    except (UpstreamError, UpstreamUnavailable):
        return True
    if found is None:
        return False
    claimed = found.get("hash") if isinstance(found, dict) else None
    return not isinstance(claimed, str) or claimed == to_hex(block_hash)


def portions(keys: Keys) -> Iterator[Keys]:
    """Yield keys in parts whose proofs and codes have a limited size."""
    portion, size = Keys(), 0
    members: list[tuple[Address, int | None]] = [(each, None) for each in keys.accounts]
    for address, slot in sorted([*members, *keys.slots], key=lambda each: each[0]):
        more = _PROOF_BYTES + (_CODE_BYTES if slot is None else 0)
        if size + more > PORTION_BYTES:
            yield portion
            portion, size = Keys(), 0
        size += more
        if slot is None:
            portion.accounts.add(address)
        else:
            portion.slots.add((address, slot))
    if portion:
        yield portion


async def witness(client: UpstreamClient, number: int, block_hash: bytes) -> Material:
    """Return the execution witness of a block: all that its execution reads.

    Raises: UpstreamError, MethodUnavailable if the upstream does not offer it or has
        refused it lately; UpstreamUnavailable, UnusableAnswer.
    """
    if client.offers(_WITNESS_BY_HASH):
        try:
            return _witness(await _ask_witness(client, to_hex(block_hash)))
        except MethodUnavailable:
            raise
        except UpstreamError as error:
            if error.code != _INVALID_PARAMS:
                raise
    found = await _ask_witness(client, hex(number))
    client.note_refusal(_WITNESS_BY_HASH)
    return _witness(found)


async def call_optional(
    client: UpstreamClient, method: str, *params: Any, max_bytes: int
) -> Any:
    """Call a method that upstreams need not offer, and return its result.

    Raises: UpstreamUnavailable; UpstreamError, MethodUnavailable also without a call if
        the method was refused lately, and if a gateway refuses it by an HTTP status. A
        call that times out is remembered like a refusal, so that an optional method does
        not delay every block.
    """
    if not client.offers(method):
        raise MethodUnavailable(-32601, f"{method} is not offered")
    try:
        return await client.call(method, *params, max_bytes=max_bytes)
    except UpstreamUnavailable as error:
        if error.is_late:
            client.note_refusal(method)
        if error.status not in REFUSING_STATUSES:
            raise
        client.note_refusal(method)
        raise MethodUnavailable(error.status, error.reason) from None


# Proofs


async def _proofs(client: UpstreamClient, block: Any, keys: Keys) -> Material:
    """Return the proofs of keys. block: the last argument of each call.

    Raises: UpstreamError or UpstreamUnavailable if no call succeeds.
    """
    found = Material()
    texts: set[str] = set()
    waiting = list(_requests(keys))
    while waiting:
        requests, waiting = waiting[:REQUESTS_AT_ONCE], waiting[REQUESTS_AT_ONCE:]
        answers = await asyncio.gather(
            *(_request(client, calls, block) for calls in requests)
        )
        for (method, _), answer in zip(
            (call for calls in requests for call in calls),
            (answer for part in answers for answer in part),
            strict=True,
        ):
            failure = answer
            if not isinstance(answer, UpstreamError | UpstreamUnavailable):
                try:
                    if method == "eth_getCode":
                        code = data(answer)
                        found.codes[Hash32(keccak(code))] = code
                    else:
                        texts.update(_proof_nodes(answer))
                    continue
                except ValueError:
                    failure = UnusableAnswer(f"the result of {method} is malformed")
            found.failure = found.failure or failure
        if not texts and not found.codes:
            break  # nothing was sent, so that more requests are useless
    if not texts and not found.codes and found.failure is not None:
        raise found.failure
    found.nodes = set(_nodes(texts))
    return found


def _requests(keys: Keys) -> Iterator[list[Call]]:
    """Yield the calls for keys, in requests whose responses have a limited size."""
    request: list[Call] = []
    size = 0
    for call in _calls(keys):
        more = _size(call)
        if request and (len(request) == MAX_BATCH or size + more > _REQUEST_BYTES):
            yield request
            request, size = [], 0
        request.append(call)
        size += more
    if request:
        yield request


def _calls(keys: Keys) -> Iterator[Call]:
    """Yield a call for each account's proof, with up to `MAX_KEYS` slots, and its code."""
    slots: dict[Address, list[int]] = {each: [] for each in sorted(keys.accounts)}
    for address, slot in sorted(keys.slots):
        slots.setdefault(address, []).append(slot)
    for address, numbers in slots.items():
        name = to_hex(address)
        words = [f"0x{number:064x}" for number in numbers]
        for start in range(0, len(words) or 1, MAX_KEYS):
            yield "eth_getProof", (name, words[start : start + MAX_KEYS])
        if address in keys.accounts:
            yield "eth_getCode", (name,)


def _size(call: Call) -> int:
    """Return the expected maximum size of a call's response."""
    method, arguments = call
    if method == "eth_getCode":
        return _CODE_BYTES
    return _PROOF_BYTES * (1 + len(arguments[1]))


async def _request(
    client: UpstreamClient, calls: Sequence[Call], block: Any
) -> list[Any]:
    """Return the results of calls, an exception in place of each that failed."""
    try:
        return await client.batch(
            [(method, (*arguments, block)) for method, arguments in calls],
            _OTHER_BYTES + sum(map(_size, calls)),
        )
    except (UpstreamError, UpstreamUnavailable) as error:
        return [error] * len(calls)


def _proof_nodes(result: Any) -> Iterator[str]:
    """Yield the nodes of an eth_getProof's result. Raises: ValueError if malformed."""
    yield from _texts(_member(result, "accountProof"))
    for proof in _list(_member(result, "storageProof")):
        yield from _texts(_member(proof, "proof"))


# Witnesses


async def _ask_witness(client: UpstreamClient, block: str) -> Any:
    found = await call_optional(
        client, "debug_executionWitness", block, max_bytes=MAX_BLOCK_BYTES
    )
    if found is None:
        raise UpstreamError(_NOT_FOUND, "there is no witness of the block")
    return found


def _witness(result: Any) -> Material:
    """Return the parts of a witness. Raises: UnusableAnswer.

    reth's first form has objects with the hashes of nodes and codes in place of lists.
    """
    try:
        codes = [data(each) for each in _values(_member(result, "codes"))]
        return Material(
            set(_nodes(_texts(_values(_member(result, "state"))))),
            {Hash32(keccak(code)): code for code in codes},
            {header.hash: header for header in _headers(result)},
        )
    except ValueError as error:
        raise UnusableAnswer(f"the witness is malformed: {error}") from None


def _headers(result: Any) -> Iterator[Header]:
    """Yield the headers of a witness, either objects or RLP. Others are omitted."""
    for each in _list(result.get("headers") or []):
        try:
            yield (
                header_of(each) if isinstance(each, dict) else decode_header(data(each))
            )
        except ValueError:
            continue


def _values(value: Any) -> list[Any]:
    """Return the items of a list, or the values of an object."""
    return list(value.values()) if isinstance(value, dict) else _list(value)


# JSON values


def _member(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value.get(name)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("no list")
    return value


def _texts(value: Any) -> list[str]:
    texts = _list(value)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("no list of strings")
    return texts


def _nodes(texts: Iterable[str]) -> Iterator[bytes]:
    """Yield the bytes of nodes. Texts that no node can have are omitted."""
    for text in texts:
        if len(text) <= _MAX_NODE_DIGITS:
            try:
                yield data(text)
            except ValueError:
                continue
