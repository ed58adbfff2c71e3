"""JSON schemas of arguments and results, for the OpenRPC document.

Objects that several methods share are in COMPONENTS, and are used by reference.
"""

from __future__ import annotations

from jsonrpc.params import Schema

COMPONENTS: dict[str, Schema] = {}
"""Schemas by name, `#/components/schemas/<name>` in the document."""


def named(name: str, schema: Schema) -> Schema:
    """Return an OpenRPC content descriptor: a schema with a name."""
    return {"name": name, "schema": schema}


def _data(size: int) -> Schema:
    return {"type": "string", "pattern": f"^0x[0-9a-fA-F]{{{2 * size}}}$"}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(schema: Schema) -> Schema:
    return {"oneOf": [schema, {"type": "null"}]}


def _object(properties: dict[str, Schema], optional: str = "") -> Schema:
    """Return an object's schema. optional: space-separated names of members."""
    required = [name for name in properties if name not in optional.split()]
    return {"type": "object", "required": required, "properties": properties}


def _component(name: str, schema: Schema) -> Schema:
    COMPONENTS[name] = schema
    return {"$ref": f"#/components/schemas/{name}"}


BOOLEAN: Schema = {"type": "boolean"}
_STRING: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "integer", "minimum": 0}
DATA = _component("Data", {"type": "string", "pattern": "^0x([0-9a-fA-F]{2})*$"})
QUANTITY = _component(
    "Quantity", {"type": "string", "pattern": "^0x(0|[1-9a-f][0-9a-f]*)$"}
)
HASH32 = _component("Hash32", _data(32))
ADDRESS = _component("Address", _data(20))
STORAGE_POSITION = _component(
    "StoragePosition", {"type": "string", "pattern": "^(0x)?[0-9a-fA-F]{0,64}$"}
)
_TAG = _component(
    "BlockTag",
    {"type": "string", "enum": ["latest", "earliest", "pending", "safe", "finalized"]},
)
BLOCK_NUMBER_OR_TAG: Schema = {"oneOf": [QUANTITY, _TAG]}
BLOCK_PARAMETER = _component(
    "BlockParameter",
    {
        "oneOf": [
            QUANTITY,
            _TAG,
            HASH32,
            _object({"blockNumber": BLOCK_NUMBER_OR_TAG}),
            _object(
                {"blockHash": HASH32, "requireCanonical": BOOLEAN},
                optional="requireCanonical",
            ),
        ]
    },
)
POSITIONS_BY_ADDRESS = _component(
    "PositionsByAddress",
    {"type": "object", "additionalProperties": _array(HASH32)},
)

ACCOUNT_OR_NULL = _or_null(
    _object(
        {
            "balance": QUANTITY,
            "codeHash": HASH32,
            "nonce": QUANTITY,
            "storageRoot": HASH32,
        }
    )
)
ACCOUNT_INFO = _object({"balance": QUANTITY, "nonce": QUANTITY, "code": DATA})

QUANTITY_OR_NULL = _or_null(QUANTITY)
BLOCK_COUNT: Schema = {"oneOf": [QUANTITY, {"type": "integer", "minimum": 0}]}
PERCENTILES: Schema = {
    "oneOf": [
        {
            "type": "array",
            "items": {"type": "number", "minimum": 0, "maximum": 100},
            "maxItems": 100,
        },
        {"type": "null"},
    ]
}
_RATIOS: Schema = {"type": "array", "items": {"type": "number"}}
FEE_HISTORY = _object(
    {
        "oldestBlock": QUANTITY,
        "reward": _array(_array(QUANTITY)),
        "baseFeePerGas": _array(QUANTITY),
        "gasUsedRatio": {"oneOf": [_RATIOS, {"type": "null"}]},
        "baseFeePerBlobGas": _array(QUANTITY),
        "blobGasUsedRatio": _RATIOS,
    },
    optional="reward baseFeePerGas baseFeePerBlobGas blobGasUsedRatio",
)

NO_ACCOUNTS: Schema = {"type": "array", "items": ADDRESS, "maxItems": 0}

_CONTRACTS: Schema = {"type": "object", "additionalProperties": ADDRESS}
_FORK_CONFIG = _component(
    "ForkConfig",
    _object(
        {
            "activationTime": _NUMBER,
            "blobSchedule": _or_null(
                _object(
                    {
                        "target": _NUMBER,
                        "max": _NUMBER,
                        "baseFeeUpdateFraction": _NUMBER,
                    }
                )
            ),
            "chainId": QUANTITY,
            "forkId": _data(4),
            "precompiles": _CONTRACTS,
            "systemContracts": _CONTRACTS,
        }
    ),
)
CONFIG = _object(
    dict.fromkeys(("current", "next", "last"), _or_null(_FORK_CONFIG)),
)
_KEPT = _object(
    {
        "disabled": BOOLEAN,
        "oldestBlock": QUANTITY,
        "deleteStrategy": _object({"type": _STRING, "retentionBlocks": QUANTITY}),
    },
    optional="oldestBlock deleteStrategy",
)
CAPABILITIES = _object(
    {
        "head": _object({"number": QUANTITY, "hash": HASH32}),
        **dict.fromkeys(
            ("state", "tx", "logs", "receipts", "blocks", "stateproofs"), _KEPT
        ),
    }
)
STORAGE_KEYS = _array(STORAGE_POSITION)

PROOF = _component(
    "Proof",
    _object(
        {
            "address": ADDRESS,
            "accountProof": _array(DATA),
            "balance": QUANTITY,
            "codeHash": HASH32,
            "nonce": QUANTITY,
            "storageHash": HASH32,
            "storageProof": _array(
                _object(
                    {
                        "key": {"oneOf": [QUANTITY, HASH32]},
                        "value": QUANTITY,
                        "proof": _array(DATA),
                    }
                )
            ),
        }
    ),
)

WITNESS = _component(
    "Witness",
    _object(
        {
            "headers": _array({"type": "object"}),
            "codes": _array(DATA),
            "state": _array(DATA),
            "keys": {"type": "null"},
        }
    ),
)

SUBSCRIPTION_KIND: Schema = {
    "type": "string",
    "enum": ["newHeads", "logs", "newPendingTransactions", "syncing"],
}
_TOPIC: Schema = {"oneOf": [HASH32, _array(HASH32), {"type": "null"}]}
SUBSCRIPTION_OPTIONS = _component(
    "SubscriptionOptions",
    _object(
        {
            "address": {"oneOf": [ADDRESS, _array(ADDRESS)]},
            "topics": {**_array(_TOPIC), "maxItems": 4},
        },
        optional="address topics",
    ),
)
"""The filter of a subscription to logs."""

ACCESS_LIST = _array(_object({"address": ADDRESS, "storageKeys": _array(HASH32)}))
LOG_CRITERIA = _component(
    "LogCriteria",
    _object(
        {
            "blockHash": HASH32,
            "fromBlock": BLOCK_NUMBER_OR_TAG,
            "toBlock": BLOCK_NUMBER_OR_TAG,
            "address": {"oneOf": [ADDRESS, _array(ADDRESS), {"type": "null"}]},
            "topics": {**_array(_TOPIC), "maxItems": 4},
        },
        optional="blockHash fromBlock toBlock address topics",
    ),
)
"""The blocks, addresses and topics of a search for logs."""


_AUTHORIZATION = _object(
    {
        "chainId": QUANTITY,
        "address": ADDRESS,
        "nonce": QUANTITY,
        "yParity": QUANTITY,
        "r": QUANTITY,
        "s": QUANTITY,
    }
)

_WITHDRAWAL = _object(
    {
        "index": QUANTITY,
        "validatorIndex": QUANTITY,
        "address": ADDRESS,
        "amount": QUANTITY,
    }
)

TRANSACTION = _component(
    "Transaction",
    _object(
        {
            "blockHash": _or_null(HASH32),
            "blockNumber": _or_null(QUANTITY),
            "blockTimestamp": _or_null(QUANTITY),
            "transactionIndex": _or_null(QUANTITY),
            "hash": HASH32,
            "type": QUANTITY,
            "from": ADDRESS,
            "to": _or_null(ADDRESS),
            "nonce": QUANTITY,
            "gas": QUANTITY,
            "gasPrice": QUANTITY,
            "maxFeePerGas": QUANTITY,
            "maxPriorityFeePerGas": QUANTITY,
            "maxFeePerBlobGas": QUANTITY,
            "value": QUANTITY,
            "input": DATA,
            "chainId": QUANTITY,
            "accessList": ACCESS_LIST,
            "blobVersionedHashes": _array(HASH32),
            "authorizationList": _array(_AUTHORIZATION),
            "v": QUANTITY,
            "r": QUANTITY,
            "s": QUANTITY,
            "yParity": QUANTITY,
        },
        optional="maxFeePerGas maxPriorityFeePerGas maxFeePerBlobGas chainId "
        "accessList blobVersionedHashes authorizationList yParity",
    ),
)

_HEADER: dict[str, Schema] = {
    "number": _or_null(QUANTITY),
    "hash": _or_null(HASH32),
    "parentHash": HASH32,
    "nonce": _or_null(_data(8)),
    "mixHash": HASH32,
    "sha3Uncles": HASH32,
    "logsBloom": _or_null(_data(256)),
    "transactionsRoot": HASH32,
    "stateRoot": HASH32,
    "receiptsRoot": HASH32,
    "miner": _or_null(ADDRESS),
    "difficulty": QUANTITY,
    "extraData": DATA,
    "size": QUANTITY,
    "gasLimit": QUANTITY,
    "gasUsed": QUANTITY,
    "timestamp": QUANTITY,
    "uncles": _array(HASH32),
    "baseFeePerGas": QUANTITY,
    "withdrawalsRoot": HASH32,
    "blobGasUsed": QUANTITY,
    "excessBlobGas": QUANTITY,
    "parentBeaconBlockRoot": HASH32,
    "requestsHash": HASH32,
}
_FORK_MEMBERS = (
    "baseFeePerGas withdrawalsRoot blobGasUsed excessBlobGas parentBeaconBlockRoot "
    "requestsHash"
)

HEADER = _component(
    "Header",
    _object(
        {
            name: schema
            for name, schema in _HEADER.items()
            if name not in ("size", "uncles")
        },
        optional=_FORK_MEMBERS,
    ),
)

BLOCK = _component(
    "Block",
    _object(
        {
            **_HEADER,
            "totalDifficulty": QUANTITY,
            "transactions": _array({"oneOf": [HASH32, TRANSACTION]}),
            "withdrawals": _array(_WITHDRAWAL),
        },
        optional=f"totalDifficulty withdrawals {_FORK_MEMBERS}",
    ),
)

UNCLE = _component("Uncle", _object(_HEADER, optional=_FORK_MEMBERS))


TRACE_OPTIONS = _component(
    "TraceOptions",
    _object(
        {
            "tracer": _STRING,
            "tracerConfig": {},
            "timeout": {"type": "string", "pattern": r"^[-+]?([0-9.]+[a-zµμ]+)+$|^0$"},
            "enableMemory": BOOLEAN,
            "disableStack": BOOLEAN,
            "disableStorage": BOOLEAN,
            "enableReturnData": BOOLEAN,
            "limit": {"type": "integer"},
            "fromTx": {"oneOf": [QUANTITY, _NUMBER]},
            "toTx": {"oneOf": [QUANTITY, _NUMBER]},
        },
        optional="tracer tracerConfig timeout enableMemory disableStack disableStorage "
        "enableReturnData limit fromTx toTx",
    ),
)

TRACE = _component("Trace", {"description": "What the tracer has found."})

BLOCK_TRACES = _array(
    _object({"txHash": HASH32, "result": TRACE, "error": _STRING}, "result error")
)

_FLAT_TRACE = _component(
    "FlatTrace",
    _object(
        {
            "action": {"type": "object"},
            "blockHash": HASH32,
            "blockNumber": _NUMBER,
            "error": _STRING,
            "result": _or_null({"type": "object"}),
            "subtraces": _NUMBER,
            "traceAddress": _array(_NUMBER),
            "transactionHash": _or_null(HASH32),
            "transactionPosition": _or_null(_NUMBER),
            "type": {"type": "string", "enum": ["call", "create", "suicide", "reward"]},
        },
        optional="error result",
    ),
)

TRACE_TYPES: Schema = _array(
    {"type": "string", "enum": ["trace", "vmTrace", "stateDiff"]}
)

_CHANGE: Schema = {"oneOf": [{"type": "string", "enum": ["="]}, {"type": "object"}]}

_STATE_DIFF = _component(
    "StateDiff",
    {
        "type": "object",
        "additionalProperties": _object(
            {
                "balance": _CHANGE,
                "code": _CHANGE,
                "nonce": _CHANGE,
                "storage": {"type": "object", "additionalProperties": _CHANGE},
            }
        ),
    },
)

_VM_TRACE = _component(
    "VmTrace",
    _object(
        {
            "code": DATA,
            "ops": _array(
                _object(
                    {
                        "pc": _NUMBER,
                        "cost": _NUMBER,
                        "ex": _or_null({"type": "object"}),
                        "sub": _or_null({"$ref": "#/components/schemas/VmTrace"}),
                    }
                )
            ),
        }
    ),
)

_PARITY_TRACE = _component(
    "ParityTrace",
    _object(
        {
            "action": {"type": "object"},
            "error": _STRING,
            "result": {"type": "object"},
            "subtraces": _NUMBER,
            "traceAddress": _array(_NUMBER),
            "type": {"type": "string", "enum": ["call", "create", "suicide"]},
        },
        optional="error result",
    ),
)

PARITY_RESULT = _component(
    "ParityResult",
    _object(
        {
            "output": DATA,
            "stateDiff": _or_null(_STATE_DIFF),
            "trace": _array(_PARITY_TRACE),
            "transactionHash": HASH32,
            "vmTrace": _or_null(_VM_TRACE),
        },
        optional="transactionHash",
    ),
)
PARITY_RESULT_OR_NULL = _or_null(PARITY_RESULT)
PARITY_RESULTS = _array(PARITY_RESULT)
PARITY_RESULTS_OR_NULL = _or_null(PARITY_RESULTS)

FLAT_TRACES = _array(_FLAT_TRACE)
FLAT_TRACES_OR_NULL = _or_null(FLAT_TRACES)
FLAT_TRACE_OR_NULL = _or_null(_FLAT_TRACE)

NUMBER: Schema = {"oneOf": [_NUMBER, {"type": "string"}]}
"""A JSON number, or decimal or hexadecimal digits."""
INDICES = _array(NUMBER)

TRACE_FILTER = _component(
    "TraceFilter",
    _object(
        {
            "fromBlock": {"oneOf": [_NUMBER, _STRING]},
            "toBlock": {"oneOf": [_NUMBER, _STRING]},
            "fromAddress": _array(ADDRESS),
            "toAddress": _array(ADDRESS),
            "mode": {"type": "string", "enum": ["union", "intersection"]},
            "after": {"oneOf": [_NUMBER, _STRING]},
            "count": {"oneOf": [_NUMBER, _STRING]},
        },
        optional="fromBlock toBlock fromAddress toAddress mode after count",
    ),
)
"""The filter of trace_filter. Numbers may be JSON numbers or digits in a string."""

SYNCING: Schema = {
    "oneOf": [
        {"type": "boolean", "enum": [False]},
        {
            "type": "object",
            "required": ["startingBlock", "currentBlock", "highestBlock"],
            "additionalProperties": QUANTITY,
        },
    ]
}

BLOCK_OR_NULL = _or_null(BLOCK)
BAD_BLOCKS = _array(_object({"hash": HASH32, "block": BLOCK, "rlp": DATA}))
HEADER_OR_NULL = _or_null(HEADER)
UNCLE_OR_NULL = _or_null(UNCLE)
TRANSACTION_OR_NULL = _or_null(TRANSACTION)

LOG = _component(
    "Log",
    _object(
        {
            "address": ADDRESS,
            "topics": _array(HASH32),
            "data": DATA,
            "blockHash": HASH32,
            "blockNumber": QUANTITY,
            "blockTimestamp": QUANTITY,
            "transactionHash": HASH32,
            "transactionIndex": QUANTITY,
            "logIndex": QUANTITY,
            "removed": BOOLEAN,
        }
    ),
)
LOGS = _array(LOG)
FILTER_CHANGES = _array({"oneOf": [LOG, HASH32, TRANSACTION]})
"""What a filter returns: logs, hashes of blocks, or pending transactions."""

RECEIPT = _component(
    "Receipt",
    _object(
        {
            "blockHash": HASH32,
            "blockNumber": QUANTITY,
            "transactionHash": HASH32,
            "transactionIndex": QUANTITY,
            "type": QUANTITY,
            "from": ADDRESS,
            "to": _or_null(ADDRESS),
            "contractAddress": _or_null(ADDRESS),
            "effectiveGasPrice": QUANTITY,
            "cumulativeGasUsed": QUANTITY,
            "gasUsed": QUANTITY,
            "status": QUANTITY,
            "root": HASH32,
            "blobGasUsed": QUANTITY,
            "blobGasPrice": QUANTITY,
            "logsBloom": _data(256),
            "logs": LOGS,
        },
        optional="status root blobGasUsed blobGasPrice",
    ),
)

RAW_RECEIPTS_OR_NULL = _or_null(_array(DATA))
RECEIPT_OR_NULL = _or_null(RECEIPT)
RECEIPTS_OR_NULL = _or_null(_array(RECEIPT))
COUNT_OR_NULL = _or_null(QUANTITY)

TRANSACTIONS = _array(TRANSACTION)

POOL_STATUS = _object({"pending": QUANTITY, "queued": QUANTITY})
_BY_NONCE: Schema = {"type": "object", "additionalProperties": TRANSACTION}
_BY_SENDER: Schema = {"type": "object", "additionalProperties": _BY_NONCE}
POOL_CONTENT_FROM = _object({"pending": _BY_NONCE, "queued": _BY_NONCE})
POOL_CONTENT = _object({"pending": _BY_SENDER, "queued": _BY_SENDER})
_LINES: Schema = {
    "type": "object",
    "additionalProperties": {"type": "object", "additionalProperties": _STRING},
}
POOL_LINES = _object({"pending": _LINES, "queued": _LINES})

# Calls

_CALL_MEMBERS: dict[str, Schema] = {
    "from": ADDRESS,
    "to": _or_null(ADDRESS),
    "gas": QUANTITY,
    "gasPrice": QUANTITY,
    "maxFeePerGas": QUANTITY,
    "maxPriorityFeePerGas": QUANTITY,
    "value": QUANTITY,
    "nonce": QUANTITY,
    "data": DATA,
    "input": DATA,
    "accessList": ACCESS_LIST,
    "chainId": QUANTITY,
    "maxFeePerBlobGas": QUANTITY,
    "blobVersionedHashes": _array(HASH32),
    "authorizationList": _array(_AUTHORIZATION),
}
CALL = _component("Call", _object(_CALL_MEMBERS, " ".join(_CALL_MEMBERS)))
CREATED_ACCESS_LIST = _object(
    {"accessList": ACCESS_LIST, "error": {"type": "string"}, "gasUsed": QUANTITY},
    optional="error",
)

_SLOTS: Schema = {
    "type": "object",
    "propertyNames": HASH32,
    "additionalProperties": HASH32,
}
_ACCOUNT_OVERRIDE_MEMBERS: dict[str, Schema] = {
    "nonce": QUANTITY,
    "code": DATA,
    "balance": QUANTITY,
    "state": _SLOTS,
    "stateDiff": _SLOTS,
    "movePrecompileToAddress": ADDRESS,
}
STATE_OVERRIDES = _component(
    "StateOverrides",
    {
        "type": "object",
        "propertyNames": ADDRESS,
        "additionalProperties": _object(
            _ACCOUNT_OVERRIDE_MEMBERS, " ".join(_ACCOUNT_OVERRIDE_MEMBERS)
        ),
    },
)
_BLOCK_OVERRIDE_MEMBERS: dict[str, Schema] = {
    "number": QUANTITY,
    "difficulty": QUANTITY,
    "time": QUANTITY,
    "gasLimit": QUANTITY,
    "feeRecipient": ADDRESS,
    "prevRandao": HASH32,
    "baseFeePerGas": QUANTITY,
    "blobBaseFee": QUANTITY,
}
BLOCK_OVERRIDES = _component(
    "BlockOverrides",
    _object(_BLOCK_OVERRIDE_MEMBERS, " ".join(_BLOCK_OVERRIDE_MEMBERS)),
)


# Simulations

_SIMULATION_BLOCK_OVERRIDES = _object(
    {
        **_BLOCK_OVERRIDE_MEMBERS,
        "beaconRoot": HASH32,
        "withdrawals": _array(_WITHDRAWAL),
    },
    " ".join([*_BLOCK_OVERRIDE_MEMBERS, "beaconRoot withdrawals"]),
)
_BLOCK_STATE_CALLS = _object(
    {
        "blockOverrides": _SIMULATION_BLOCK_OVERRIDES,
        "stateOverrides": STATE_OVERRIDES,
        "calls": _array(CALL),
    },
    optional="blockOverrides stateOverrides calls",
)
SIMULATION = _component(
    "Simulation",
    _object(
        {
            "blockStateCalls": _array(_BLOCK_STATE_CALLS),
            "traceTransfers": BOOLEAN,
            "validation": BOOLEAN,
            "returnFullTransactions": BOOLEAN,
        },
        optional="traceTransfers validation returnFullTransactions",
    ),
)
_SIMULATED_CALL = _component(
    "SimulatedCall",
    _object(
        {
            "returnData": DATA,
            "logs": _array(LOG),
            "gasUsed": QUANTITY,
            "maxUsedGas": QUANTITY,
            "status": QUANTITY,
            "error": _object(
                {"message": _STRING, "code": {"type": "integer"}, "data": DATA},
                optional="data",
            ),
        },
        optional="error",
    ),
)
SIMULATED_BLOCKS = _array(
    {
        "allOf": [
            BLOCK,
            _object({"calls": _array(_SIMULATED_CALL)}),
        ]
    }
)

CALLS_WITH_TYPES: Schema = _array(
    {"type": "array", "prefixItems": [CALL, TRACE_TYPES], "minItems": 2, "maxItems": 2}
)

CALL_TRACE_OPTIONS = _component(
    "CallTraceOptions",
    {
        "allOf": [
            TRACE_OPTIONS,
            _object(
                {
                    "stateOverrides": STATE_OVERRIDES,
                    "blockOverrides": BLOCK_OVERRIDES,
                    "txIndex": QUANTITY,
                },
                optional="stateOverrides blockOverrides txIndex",
            ),
        ]
    },
)

HASH32_OR_NULL = _or_null(HASH32)

OTTERSCAN_TRACE = _array(
    _object(
        {
            "type": _STRING,
            "depth": _NUMBER,
            "from": ADDRESS,
            "to": ADDRESS,
            "value": _or_null(QUANTITY),
            "input": DATA,
            "output": DATA,
        }
    )
)
OTTERSCAN_OPERATIONS = _array(
    _object(
        {
            "type": {"type": "integer", "enum": [0, 1, 2, 3]},
            "from": ADDRESS,
            "to": ADDRESS,
            "value": QUANTITY,
        }
    )
)
CONTRACT_CREATOR_OR_NULL = _or_null(_object({"hash": HASH32, "creator": ADDRESS}))

_OTTERSCAN_BLOCK = _object(
    {
        **_HEADER,
        "totalDifficulty": QUANTITY,
        "transactionCount": _NUMBER,
        "transactions": _array(TRANSACTION),
        "withdrawals": _array(_WITHDRAWAL),
    },
    optional=f"totalDifficulty transactions withdrawals {_FORK_MEMBERS}",
)
BLOCK_DETAILS_OR_NULL = _or_null(
    _object(
        {
            "block": _OTTERSCAN_BLOCK,
            "issuance": _object(
                {"blockReward": QUANTITY, "uncleReward": QUANTITY, "issuance": QUANTITY}
            ),
            "totalFees": QUANTITY,
        }
    )
)
BLOCK_PAGE_OR_NULL = _or_null(
    _object({"fullblock": _OTTERSCAN_BLOCK, "receipts": _array({"type": "object"})})
)
SEARCH_PAGE = _object(
    {
        "txs": _array(TRANSACTION),
        "receipts": _array({"allOf": [RECEIPT, _object({"timestamp": _NUMBER})]}),
        "firstPage": BOOLEAN,
        "lastPage": BOOLEAN,
    }
)

INTEGER: Schema = {"type": "integer"}
HASHES_OR_NULL = _or_null(_array(HASH32))
ADDRESSES_OR_NULL = _or_null(_array(ADDRESS))
STORAGE_RANGE = _object(
    {
        "storage": _or_null(
            {
                "type": "object",
                "additionalProperties": _object(
                    {"key": _or_null(HASH32), "value": HASH32}
                ),
            }
        ),
        "nextKey": _or_null(HASH32),
    }
)
