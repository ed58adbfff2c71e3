"""Arguments and overrides of calls, between JSON and Python.

The decoders take what callers send, and have geth's error texts. The encoders return JSON
that the decoders accept, for worker processes.

Source: go-ethereum v1.17.10, internal/ethapi/transaction_args.go, override/override.go,
core/types/gen_access_tuple.go, gen_authorization.go, gen_withdrawal_json.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eth_typing import Address

from evm.blocks import Withdrawal
from evm.chain_config import fork_by_name
from evm.hexadecimal import to_hex
from evm.simulation.arguments import CallArguments
from evm.simulation.overrides import AccountOverride, BlockOverrides, StateOverrides
from evm.transactions import AccessList, Authorization
from jsonrpc.text import kind
from nodeapi.encoding import address, any_data, fixed_data, go_mismatch, hash32
from nodeapi.go.fields import (
    GoField,
    big,
    decode_fields,
    list_of,
    required,
    uint64,
    uint256,
    words_by_slot,
)

# Access lists and authorizations

_TUPLE_FIELDS = {
    "address": GoField("address", address),
    "storageKeys": GoField("slots", list_of(hash32, "[]common.Hash")),
}
_TUPLE_NAMES = {"address": "address", "slots": "storageKeys"}

_AUTHORIZATION_FIELDS = {
    "chainId": GoField("chain_id", uint256),
    "address": GoField("address", address),
    "nonce": GoField("nonce", uint64),
    "yParity": GoField("y_parity", uint64),
    "r": GoField("r", uint256),
    "s": GoField("s", uint256),
}
_AUTHORIZATION_NAMES = {
    field.name: name for name, field in _AUTHORIZATION_FIELDS.items()
}


def _access_tuple(value: Any) -> tuple[Address, tuple[int, ...]]:
    found = decode_fields(value, "types.AccessTuple", _TUPLE_FIELDS)
    required(found, _TUPLE_NAMES, "AccessTuple")
    slots = tuple([int.from_bytes(slot) for slot in found["slots"]])
    return Address(found["address"]), slots


def _authorization(value: Any) -> Authorization:
    found = decode_fields(value, "types.SetCodeAuthorization", _AUTHORIZATION_FIELDS)
    required(found, _AUTHORIZATION_NAMES, "SetCodeAuthorization")
    # geth keeps the lowest byte.
    return Authorization(**{**found, "y_parity": found["y_parity"] & 0xFF})


# Calls

_SIDECAR = (
    ("blobs", 2**17, "kzg4844.Blob"),
    ("commitments", 48, "kzg4844.Commitment"),
    ("proofs", 48, "kzg4844.Proof"),
)
"""Fields that must be well-formed, but have no effect on calls, only on transactions that
are filled in: name, bytes of an item, and the item's type in Go."""

_CALL = "ethapi.TransactionArgs"

_CALL_FIELDS = {
    "from": GoField("sender", address),
    "to": GoField("to", address),
    "gas": GoField("gas", uint64),
    "gasPrice": GoField("gas_price", big),
    "maxFeePerGas": GoField("max_fee_per_gas", big),
    "maxPriorityFeePerGas": GoField("max_priority_fee_per_gas", big),
    "value": GoField("value", big),
    "nonce": GoField("nonce", uint64),
    "data": GoField("data", any_data),
    "input": GoField("input", any_data),
    "accessList": GoField("access_list", list_of(_access_tuple, "types.AccessList")),
    "chainId": GoField("chain_id", big),
    "maxFeePerBlobGas": GoField("max_fee_per_blob_gas", big),
    "blobVersionedHashes": GoField(
        "blob_versioned_hashes", list_of(hash32, "[]common.Hash")
    ),
    "authorizationList": GoField(
        "authorization_list",
        list_of(_authorization, "[]types.SetCodeAuthorization"),
    ),
    **{
        name: GoField(name, list_of(fixed_data(size, go_type), f"[]{go_type}"))
        for name, size, go_type in _SIDECAR
    },
}


def decode_call(value: Any) -> CallArguments:
    """Decode the arguments of a call. null is a call without arguments.

    Raises: ValueError.
    """
    found = decode_fields(value, _CALL, _CALL_FIELDS)
    for name, *_ in _SIDECAR:
        found.pop(name, None)
    if "input" in found:
        found["data"] = found.pop("input")
    return CallArguments(**found)


def contradicts_itself(value: Any) -> bool:
    """Return whether the call has two kinds of data that differ. Raises: ValueError."""
    found = decode_fields(value, _CALL, _CALL_FIELDS)
    return "data" in found and found.get("input", found["data"]) != found["data"]


def sidecar_of(value: Any) -> dict[str, list[bytes]]:
    """Return those of `blobs`, `commitments` and `proofs` that a call has.

    Raises: ValueError.
    """
    found = decode_fields(value, _CALL, _CALL_FIELDS)
    return {name: list(found[name]) for name, *_ in _SIDECAR if name in found}


def encode_call(call: CallArguments) -> dict[str, Any]:
    """Return the arguments as `decode_call` reads them; equal ones are equal JSON."""
    found: dict[str, Any] = {}
    if call.sender is not None:
        found["from"] = to_hex(call.sender)
    if call.to is not None:
        found["to"] = to_hex(call.to)
    if call.data is not None:
        found["input"] = to_hex(call.data)
    for name, value in (
        ("gas", call.gas),
        ("gasPrice", call.gas_price),
        ("maxFeePerGas", call.max_fee_per_gas),
        ("maxPriorityFeePerGas", call.max_priority_fee_per_gas),
        ("value", call.value),
        ("nonce", call.nonce),
        ("chainId", call.chain_id),
        ("maxFeePerBlobGas", call.max_fee_per_blob_gas),
    ):
        if value is not None:
            found[name] = hex(value)
    if call.access_list is not None:
        found["accessList"] = encode_access_list(call.access_list)
    if call.blob_versioned_hashes is not None:
        found["blobVersionedHashes"] = [
            to_hex(blob_hash) for blob_hash in call.blob_versioned_hashes
        ]
    if call.authorization_list is not None:
        found["authorizationList"] = [
            _encode_authorization(each) for each in call.authorization_list
        ]
    return found


def encode_access_list(accesses: AccessList) -> list[dict[str, Any]]:
    """Return an access list as JSON."""
    return [
        {"address": to_hex(account), "storageKeys": [_word(slot) for slot in slots]}
        for account, slots in accesses
    ]


def _encode_authorization(authorization: Authorization) -> dict[str, str]:
    return {
        "address": to_hex(authorization.address),
        **{
            name: hex(getattr(authorization, ours))
            for ours, name in _AUTHORIZATION_NAMES.items()
            if ours != "address"
        },
    }


# Overrides of the state

ACCOUNT_FIELDS = {
    "nonce": GoField("nonce", uint64),
    "code": GoField("code", any_data),
    "balance": GoField("balance", big),
    "state": GoField("state", words_by_slot),
    "stateDiff": GoField("state_diff", words_by_slot),
    "movePrecompileToAddress": GoField("move_precompile_to", address),
}


def decode_state_overrides(value: Any) -> StateOverrides:
    """Decode overrides of accounts by address. null is none.

    Raises: ValueError.
    """
    if value is None:
        return {}
    if type(value) is not dict:
        raise ValueError(go_mismatch(kind(value), "override.StateOverride"))
    return {
        Address(address(account)): AccountOverride(
            **decode_fields(override, "override.OverrideAccount", ACCOUNT_FIELDS)
        )
        for account, override in value.items()
    }


def encode_state_overrides(overrides: StateOverrides) -> dict[str, Any]:
    """Return overrides as `decode_state_overrides` reads them."""
    return {
        to_hex(account): _encode_account(override)
        for account, override in overrides.items()
    }


def _encode_account(override: AccountOverride) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if override.nonce is not None:
        found["nonce"] = hex(override.nonce)
    if override.code is not None:
        found["code"] = to_hex(override.code)
    if override.balance is not None:
        found["balance"] = hex(override.balance)
    if override.state is not None:
        found["state"] = _encode_slots(override.state)
    if override.state_diff is not None:
        found["stateDiff"] = _encode_slots(override.state_diff)
    if override.move_precompile_to is not None:
        found["movePrecompileToAddress"] = to_hex(override.move_precompile_to)
    return found


def _encode_slots(slots: Mapping[int, int]) -> dict[str, str]:
    return {_word(slot): _word(word) for slot, word in slots.items()}


# Overrides of the block

_WITHDRAWAL_FIELDS = {
    "index": GoField("index", uint64),
    "validatorIndex": GoField("validator_index", uint64),
    "address": GoField("address", address),
    "amount": GoField("amount_gwei", uint64),
}
_NO_WITHDRAWAL = {
    "index": 0,
    "validator_index": 0,
    "address": Address(bytes(20)),
    "amount_gwei": 0,
}


def _withdrawal(value: Any) -> Withdrawal:
    found = decode_fields(value, "types.Withdrawal", _WITHDRAWAL_FIELDS)
    return Withdrawal(**{**_NO_WITHDRAWAL, **found})


def fork_name(value: Any) -> str:
    """Decode the name of a fork. Raises: ValueError, whose text lists the names."""
    if type(value) is not str:
        raise ValueError(go_mismatch(kind(value), "string"))
    return fork_by_name(value).name


BLOCK_FIELDS = {
    "Number": GoField("number", big),
    "Difficulty": GoField("difficulty", big),
    "Time": GoField("time", uint64),
    "GasLimit": GoField("gas_limit", uint64),
    "FeeRecipient": GoField("fee_recipient", address),
    "PrevRandao": GoField("prev_randao", hash32),
    "BaseFeePerGas": GoField("base_fee_per_gas", big),
    "BlobBaseFee": GoField("blob_base_fee", big),
    "SlotNumber": GoField("slot_number", uint64),
    "Fork": GoField("fork", fork_name),
    "BeaconRoot": GoField("beacon_root", hash32),
    "Withdrawals": GoField("withdrawals", list_of(_withdrawal, "types.Withdrawals")),
}
"""`SlotNumber` and `Fork` are this service's own."""
_BLOCK_NAMES = {field.name: name for name, field in BLOCK_FIELDS.items()}


def decode_block_overrides(value: Any) -> BlockOverrides:
    """Decode overrides of a block's properties. null is none.

    Raises: ValueError.
    """
    found = decode_fields(value, "override.BlockOverrides", BLOCK_FIELDS)
    return BlockOverrides(**found)


def encode_block_overrides(overrides: BlockOverrides) -> dict[str, Any]:
    """Return overrides as `decode_block_overrides` reads them."""
    found: dict[str, Any] = {}
    for ours, name in _BLOCK_NAMES.items():
        value = getattr(overrides, ours)
        if value is None:
            continue
        if ours == "withdrawals":
            found[name] = [encode_withdrawal(each) for each in value]
        elif ours == "fork":
            found[name] = value
        else:
            found[name] = to_hex(value) if isinstance(value, bytes) else hex(value)
    return found


def encode_withdrawal(withdrawal: Withdrawal) -> dict[str, str]:
    """Return a withdrawal as a JSON object."""
    return {
        "index": hex(withdrawal.index),
        "validatorIndex": hex(withdrawal.validator_index),
        "address": to_hex(withdrawal.address),
        "amount": hex(withdrawal.amount_gwei),
    }


def _word(value: int) -> str:
    return f"0x{value:064x}"
