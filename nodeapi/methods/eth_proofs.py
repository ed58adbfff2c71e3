"""`eth_getProof`: the proof of an account and of some of its slots.

Source: EIP-1186; go-ethereum internal/ethapi/api.go, GetProof
"""

from __future__ import annotations

from functools import partial

from jsonrpc.later import Later
from jsonrpc.params import Param
from nodeapi.encoding import LATEST, BlockReference, address, block_number_or_hash
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.execution import run_task
from nodeapi.proofs.requests import key_names, storage_keys
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.proofs import PROOF
from nodeapi.schemas.state import STORAGE_KEYS
from nodeapi.schemas.values import ADDRESS, BLOCK_PARAMETER

TIMEOUT_SECONDS = 20.0
"""Time for the computation of an older block's tries."""

_BLOCK = Param(
    "block",
    block_number_or_hash,
    BLOCK_PARAMETER,
    required=False,
    default=LATEST,
    summary="The block after which the state is read; latest by default. The state at "
    "pending is that at latest.",
)


@registry.method(
    "eth_getProof",
    params=[
        Param("address", address, ADDRESS),
        Param("storageKeys", storage_keys, STORAGE_KEYS),
        _BLOCK,
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
    arguments = {"address": f"0x{account.hex()}", "keys": list(names)}
    return run_task(context, "proof", block_hash, arguments, timeout=TIMEOUT_SECONDS)
