"""`ots_`: single transactions and accounts, for Otterscan.

Source: https://docs.otterscan.io/api-docs/ots-api; erigon
rpc/jsonrpc/otterscan_api.go
"""

from __future__ import annotations

import orjson

from evm.tracers.native import NativeTracer
from evm.tracers.otterscan import (
    OTS_ERROR,
    OTS_OPERATIONS,
    OTS_TRACE,
    contract_creator,
)
from evm.world import EMPTY_CODE_HASH
from jsonrpc.later import Later, if_found
from jsonrpc.params import Param
from jsonrpc.stream import Stream
from nodeapi.encoding import LATEST, BlockReference, address, data, hash32
from nodeapi.errors.blocks import HistoryPruned
from nodeapi.methods import traces
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.methods.numbers import block_reference, number
from nodeapi.methods.trace_options import TraceOptions
from nodeapi.results.answers import Answer, MaybeAnswer
from nodeapi.schemas.building import named
from nodeapi.schemas.otterscan import (
    CONTRACT_CREATOR_OR_NULL,
    OTTERSCAN_OPERATIONS,
    OTTERSCAN_TRACE,
)
from nodeapi.schemas.values import (
    ADDRESS,
    BLOCK_PARAMETER,
    BOOLEAN,
    DATA,
    HASH32,
    HASH32_OR_NULL,
    NUMBER,
)
from nodeapi.store.transactions import Place

API_LEVEL = 8
"""Version of Otterscan's methods."""

_ADDRESS = Param("address", address, ADDRESS)
_TRANSACTION_HASH = Param("transactionHash", hash32, HASH32)

_TRACE = TraceOptions(NativeTracer(OTS_TRACE.name))
_OPERATIONS = TraceOptions(NativeTracer(OTS_OPERATIONS.name))
_ERROR = TraceOptions(NativeTracer(OTS_ERROR.name))


@registry.method(
    "ots_getApiLevel",
    result=named("level", NUMBER),
    encode=orjson.dumps,
    summary="Returns the version of Otterscan's methods.",
)
def get_api_level(context: Context) -> int:
    """Return the version as a JSON number."""
    return API_LEVEL


@registry.method(
    "ots_hasCode",
    params=[
        _ADDRESS,
        Param(
            "block",
            block_reference,
            BLOCK_PARAMETER,
            required=False,
            default=LATEST,
        ),
    ],
    result=named("hasCode", BOOLEAN),
    encode=orjson.dumps,
    summary="Returns whether an account has code after a block.",
)
def has_code(context: Context, account: bytes, block: BlockReference) -> Later[bool]:
    """Return whether the code is not empty."""
    return context.store.account(context.network.id, account, block).then(
        lambda found: found is not None and found.code_hash != EMPTY_CODE_HASH
    )


@registry.method(
    "ots_traceTransaction",
    params=[_TRANSACTION_HASH],
    result=named("trace", OTTERSCAN_TRACE),
    summary="Returns the call frames of a transaction as a list with their depth.",
    credits=10,
    capability=TRACE,
    is_slow=True,
)
def trace_transaction(context: Context, transaction_hash: bytes) -> Later[Answer]:
    """Return the call frames, without those of precompiled contracts."""
    return traces.trace_transaction(context, transaction_hash, _TRACE)


@registry.method(
    "ots_getInternalOperations",
    params=[_TRANSACTION_HASH],
    result=named("operations", OTTERSCAN_OPERATIONS),
    summary="Returns the transfers, creations and self-destructions by contracts in a "
    "transaction.",
    credits=10,
    capability=TRACE,
    is_slow=True,
)
def get_internal_operations(context: Context, transaction_hash: bytes) -> Later[Answer]:
    """Return the operations below the first call frame, failed ones included."""
    return traces.trace_transaction(context, transaction_hash, _OPERATIONS)


@registry.method(
    "ots_getTransactionError",
    params=[_TRANSACTION_HASH],
    result=named("data", DATA),
    summary="Returns the data with which a transaction was reverted, 0x when there is "
    "none.",
    credits=5,
    is_slow=True,
)
def get_transaction_error(context: Context, transaction_hash: bytes) -> Later[Answer]:
    """Return the data of a revert. Fails with TransactionNotFound."""
    return traces.transaction_answer(context, transaction_hash, _ERROR)


@registry.method(
    "ots_getTransactionBySenderAndNonce",
    params=[_ADDRESS, Param("nonce", number, NUMBER)],
    result=named("transactionHash", HASH32_OR_NULL),
    encode=lambda found: b"null" if found is None else data(found),
    summary="Returns the hash of the transaction with a sender and nonce, null when there "
    "is none.",
    credits=5,
)
async def get_transaction_by_sender_and_nonce(
    context: Context, sender: bytes, nonce: int
) -> bytes | None:
    """Return the hash of a canonical transaction. Raises: HistoryPruned."""
    store, network_id = context.store, context.network.id
    checkpoint = context.network.checkpoint_number
    if checkpoint is not None:
        block = BlockReference(number=checkpoint)
        before = await store.account(network_id, sender, block)
        if before is not None and nonce < before.nonce:
            raise HistoryPruned(checkpoint + 1)
    return await store.sent_transaction(network_id, sender, nonce)


@registry.method(
    "ots_getContractCreator",
    params=[_ADDRESS],
    result=named("creator", CONTRACT_CREATOR_OR_NULL),
    summary="Returns the transaction that created a contract, and the account that "
    "created it; null when the address has no code, or has had it since block 0.",
    credits=5,
    is_slow=True,
)
async def get_contract_creator(context: Context, account: bytes) -> bytes | None:
    """Return hash and creator. Raises: HistoryPruned, TraceTooLarge."""
    store, network_id = context.store, context.network.id
    if not await has_code(context, account, LATEST):
        return None
    creator = contract_creator(account)

    def derive(place: Place) -> MaybeAnswer:
        return store.derived_transaction_trace(
            network_id,
            place.block_hash,
            place.index,
            creator,
            owner=context.customer,
        )

    found = await if_found(store.contract_creation(network_id, account), derive)
    assert not isinstance(found, Stream), "the result is short"
    return found
