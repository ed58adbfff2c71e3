"""`eth_getProof`: the proof of an account and of some of its slots.

Source: EIP-1186; go-ethereum internal/ethapi/api.go, GetProof and decodeStorageKey
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from eth_typing import Address

from evm.proved_state import Keys
from evm.state_trie import address_key, slot_key
from jsonrpc.errors import InvalidParams, ServiceUnavailable
from jsonrpc.later import Later
from jsonrpc.params import Param
from jsonrpc.text import kind
from nodeapi.encoding import (
    BlockReference,
    address,
    storage_key,
    text,
)
from nodeapi.errors.blocks import NotProved
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.eth_state import STATE_BLOCK
from nodeapi.methods.execution import run_task
from nodeapi.results.answers import Answer
from nodeapi.results.proofs import proof_document, storage_root
from nodeapi.schemas.building import named
from nodeapi.schemas.state import PROOF, STORAGE_KEYS
from nodeapi.schemas.values import ADDRESS

MAX_KEYS = 1024
"""Most storage keys of one request; geth's limit."""

_WORD_DIGITS = 64


def storage_keys(value: Any) -> list[str]:
    """Decode an array of strings. A null in it is ""."""
    if type(value) is not list:
        raise ValueError(
            f"json: cannot unmarshal {kind(value)} into Go value of type []string"
        )
    return [text(member) for member in value]


def key_names(keys: Sequence[str]) -> tuple[str, ...]:
    """Return the form in which a response names each key.

    A key with 63 or 64 digits is named as 32 bytes, any other as a quantity.

    Raises: InvalidParams if there are too many keys, or for the first malformed key.
    """
    if len(keys) > MAX_KEYS:
        raise InvalidParams(
            f"too many storage keys requested (max {MAX_KEYS}, got {len(keys)})"
        )
    return tuple([_key_name(key) for key in keys])


def _key_name(key: str) -> str:
    try:
        slot = storage_key(key)
    except ValueError as error:
        raise InvalidParams(str(error)) from error
    digits = len(key) - 2 if key[:2] in ("0x", "0X") else len(key)
    return f"0x{slot:064x}" if digits > _WORD_DIGITS - 2 else hex(slot)


TIMEOUT_SECONDS = 20.0
"""Time for the computation of an older block's tries."""


@registry.method(
    "eth_getProof",
    params=[
        Param("address", address, ADDRESS),
        Param("storageKeys", storage_keys, STORAGE_KEYS),
        STATE_BLOCK,
    ],
    result=named("proof", PROOF),
    summary="Returns an account and storage values with the trie nodes that prove them.",
    credits=10,
    is_slow=True,
)
def get_proof(
    context: Context, account: bytes, keys: list[str], block: BlockReference
) -> Later[Answer]:
    """Return the nodes from the state root to an account and to its slots."""
    names = key_names(keys)
    block_hash = context.store.state_hash(context.network.id, block)
    return block_hash.then(lambda found: _prove(context, account, names, found))


def _prove(
    context: Context, account: bytes, names: tuple[str, ...], block_hash: bytes
) -> Later[Answer]:
    short = context.store.proof(context.network.id, block_hash, account, names)
    return short.then(partial(_compute, context, account, names, block_hash))


def _compute(
    context: Context,
    account: bytes,
    names: tuple[str, ...],
    block_hash: bytes,
    short: bytes | None,
) -> Later[Answer]:
    if short is not None:
        return Later(short)
    if context.network.checkpoint_number is not None:
        return Later.from_coroutine(
            _fetch(context, Address(account), names, block_hash)
        )
    return _compute_here(context, account, names, block_hash)


async def _fetch(
    context: Context, account: Address, names: tuple[str, ...], block_hash: bytes
) -> Answer:
    """Return a proof of a sparse network, with nodes that an upstream sends.

    If no upstream has them, they may be stored, perhaps after the undoing of changes.

    Raises: NotProved, TooManyUnknownValues.
    """
    numbers = [int(name, 16) for name in names]
    keys = Keys({account}, {(account, slot) for slot in numbers})
    if context.values is None:
        raise ServiceUnavailable
    try:
        async with context.allowance.fetch(len(keys)):
            anchor, nodes = await context.values.nodes_at(
                context.network, block_hash, keys, context.customer
            )
    except NotProved:
        return await _compute_here(context, account, names, block_hash)
    proof = nodes.prove(anchor.state_root, address_key(account))
    root = storage_root(proof)
    slots = [nodes.prove(root, slot_key(slot)) for slot in numbers]
    return proof_document(account, proof, names, slots)


def _compute_here(
    context: Context, account: bytes, names: tuple[str, ...], block_hash: bytes
) -> Later[Answer]:
    """Compute a proof in a worker process."""
    arguments = {"address": f"0x{account.hex()}", "keys": list(names)}
    return run_task(context, "proof", block_hash, arguments, timeout=TIMEOUT_SECONDS)
