"""The task of eth_fillTransaction.

Source: go-ethereum v1.17.10, internal/ethapi/api.go `FillTransaction`,
internal/ethapi/transaction_args.go `setDefaults`, `ToTransaction`
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from evm.chain_config import InvalidChainConfig
from evm.hexadecimal import from_hex, to_hex
from evm.signatures import keccak
from evm.signing import TransactionFields, encode_unsigned
from evm.simulation.arguments import CallArguments, InvalidCall
from evm.simulation.fees import fill_fees
from evm.transactions import (
    ACCESS_LIST,
    BLOB,
    CREATE_ADDRESS,
    DYNAMIC_FEE,
    LEGACY,
    SET_CODE,
)
from nodeapi.arguments.calls import decode_call, encode_access_list, encode_call
from nodeapi.tracing.context import SERVER_ERROR, TaskFailed, TaskResult
from nodeapi.tracing.tasks.calls import estimate
from nodeapi.tracing.tasks.sidecars import check_count, fill_sidecar, network_form

if TYPE_CHECKING:
    from nodeapi.tracing.context import Task, TaskContext


def fill(context: TaskContext, arguments: dict[str, Any]) -> TaskResult:
    """Return a call as an unsigned transaction, whose fields are all set.

    The job's block is the head. arguments: `call` with its nonce, `gas_cap`, `tip` in wei
        per gas, `contradicts_itself`, whether `data` and `input` differ, and `sidecar`,
        what is given of `blobs`, `commitments` and `proofs`.

    Raises: TaskFailed.
    """
    asked = decode_call(arguments["call"])
    gas_used, sidecar = 0, None
    given = {
        name: [from_hex(each) for each in items]
        for name, items in arguments["sidecar"].items()
    }
    try:
        state = context.state
        if "blobs" in given:
            has_cells = state.fork.has_cell_proofs
            sidecar = fill_sidecar(asked, given, has_cells=has_cells)
        fill_fees(asked, state.call_block, arguments["tip"])
        if arguments["contradicts_itself"]:
            raise InvalidCall(
                'both "data" and "input" are set and not equal. Please use "input" to '
                "pass transaction call data"
            )
        _check(asked)
        if asked.gas is None:
            call = encode_call(replace(asked, nonce=None, chain_id=None))
            limit = estimate(context, {"call": call, "gas_cap": arguments["gas_cap"]})
            gas_used, asked.gas = limit.gas_used, int(orjson.loads(limit.result), 16)
        chain_id = state.config.chain_id
        if asked.chain_id not in (None, chain_id):
            raise InvalidCall(
                f"chainId does not match node's (have={asked.chain_id}, want={chain_id})"
            )
    except (InvalidCall, InvalidChainConfig) as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from error
    fields = _fields(asked, chain_id)
    raw = encode_unsigned(fields)
    transaction = _document(asked, fields, raw)
    if sidecar is not None:
        raw = network_form(raw, sidecar)
        for name in ("blobs", "commitments", "proofs"):
            transaction[name] = list(map(to_hex, getattr(sidecar, name)))
    document = {"raw": to_hex(raw), "tx": transaction}
    return TaskResult(orjson.dumps(document), gas_used)


def _check(asked: CallArguments) -> None:
    """Check what a transaction needs that a call does not. Raises: InvalidCall."""
    blobs = asked.blob_versioned_hashes
    if blobs is not None:
        check_count(len(blobs))
    if asked.to is not None:
        return
    if blobs is not None:
        raise InvalidCall('missing "to" in blob transaction')
    if not asked.data:
        raise InvalidCall("contract creation without any data provided")
    if asked.authorization_list is not None:
        raise InvalidCall(
            'authorizationList provided for contract creation, but "to" field is missing'
        )


def _type(asked: CallArguments) -> int:
    """Return the type of the transaction that a call becomes."""
    if asked.gas_price is not None:
        return LEGACY if asked.access_list is None else ACCESS_LIST
    if asked.authorization_list is not None:
        return SET_CODE
    return DYNAMIC_FEE if asked.blob_versioned_hashes is None else BLOB


def _fields(asked: CallArguments, chain_id: int) -> TransactionFields:
    assert asked.nonce is not None and asked.gas is not None
    return TransactionFields(
        type=_type(asked),
        chain_id=chain_id,
        nonce=asked.nonce,
        gas=asked.gas,
        gas_price=asked.gas_price or 0,
        max_fee_per_gas=asked.max_fee_per_gas or 0,
        max_priority_fee_per_gas=asked.max_priority_fee_per_gas or 0,
        to=CREATE_ADDRESS if asked.to is None else asked.to,
        value=asked.value or 0,
        data=asked.data or b"",
        access_list=asked.access_list or (),
        max_fee_per_blob_gas=asked.max_fee_per_blob_gas or 0,
        blob_versioned_hashes=asked.blob_versioned_hashes or (),
        authorization_list=asked.authorization_list or (),
    )


def _document(
    asked: CallArguments, fields: TransactionFields, raw: bytes
) -> dict[str, Any]:
    """Return a transaction as geth's `types.Transaction` writes it."""
    kind = fields["type"]
    has_price = kind in (LEGACY, ACCESS_LIST)
    found: dict[str, Any] = {
        "type": hex(kind),
        "chainId": hex(fields["chain_id"]),
        "nonce": hex(fields["nonce"]),
        "to": f"0x{fields['to'].hex()}" if fields["to"] else None,
        "gas": hex(fields["gas"]),
        "gasPrice": hex(fields["gas_price"]) if has_price else None,
        "maxPriorityFeePerGas": None,
        "maxFeePerGas": None,
        "value": hex(fields["value"]),
        "input": f"0x{fields['data'].hex()}",
        **dict.fromkeys("vrs", "0x0"),
        "hash": f"0x{keccak(raw).hex()}",
    }
    if not has_price:
        found["maxPriorityFeePerGas"] = hex(fields["max_priority_fee_per_gas"])
        found["maxFeePerGas"] = hex(fields["max_fee_per_gas"])
    if kind == LEGACY:
        del found["chainId"]  # without signature, it is that of no chain
        return found
    found |= {
        "accessList": encode_access_list(asked.access_list or ()),
        "yParity": "0x0",
    }
    if kind == BLOB:
        found["maxFeePerBlobGas"] = hex(fields["max_fee_per_blob_gas"])
        found["blobVersionedHashes"] = encode_call(asked)["blobVersionedHashes"]
    if kind == SET_CODE and asked.authorization_list:
        found["authorizationList"] = encode_call(asked)["authorizationList"]
    return found


TASKS: dict[str, Task] = {"fill": fill}
