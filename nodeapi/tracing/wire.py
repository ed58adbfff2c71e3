"""The protocol between the service and a worker process, over a socket.

The service sends settings once, then messages, each after its length. A message is a
trace job, or an array of task jobs. With a message's length it passes the descriptor of a
file for a long result. A trace job always has one; the worker keeps that of an array until
it is used.

The worker sends messages: one byte for the kind, the length of the rest, and the rest. To
an array, it sends any number of messages with outcomes, and one at the end. Tasks without
an outcome were not executed.
"""

from __future__ import annotations

import struct
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from eth_typing import Address, Hash32

from evm.changes import AccountValue
from evm.proved_state import Keys, ProvedValues, UnknownValues
from nodeapi.proofs.unknown import PastStates, UnknownPast

MARKER = struct.Struct(">H")
"""Content of the marker file: the place of the executing task in its array, plus one; 0
while none is executing."""
REPLAYS = struct.Struct(">QQQ")
"""The rest of the marker file: the numbers of `nodeapi.chain.replay_counts.ReplayCounts`."""
MARKER_BYTES = MARKER.size + REPLAYS.size
LENGTH = struct.Struct(">Q")
"""Prefix of settings and jobs."""
HEAD = struct.Struct(">cI")
"""Prefix of a worker's message: its kind, and the length of the rest."""

PREPARE = b"prepare"
"""A message to a worker: it loads what the first proof of a blob needs. It answers with
READY."""

READY = b"r"
PROGRESS = b"p"
"""The worker begins the next transaction, or a long task makes progress."""
DONE = b"d"
"""The job is done; the rest is the result's size."""
FAILED = b"f"
"""The job failed; the rest is geth's message for the caller."""
REFUSED = b"x"
"""The job failed; the rest is an array of an error object's code, message and data."""
UNKNOWN = b"k"
"""Values of a sparse state are unknown, which have to be proved before the job or task is
executed again. The rest is their keys; see `encode_unknown`."""
UNKNOWN_NODES = b"n"
"""Trie nodes of a sparse state are unknown. The rest are the keys whose proofs have them."""
TOO_LARGE = b"l"
UNAVAILABLE = b"u"
"""The database is unavailable."""
CRASHED = b"c"
"""The worker has failed; the error is logged."""

OUTCOMES = b"t"
"""Outcomes of tasks. The rest is any number of outcomes, each after its OUTCOME header."""
END = b"e"
"""No further task of the array is executed."""

SECONDS = struct.Struct(">d")
"""Prefix of the rest of an outcome of a trace job: the seconds of processor time."""

OUTCOME = struct.Struct(">HcQdI")
"""Head of a task's outcome: the task's place in its array, the kind, the gas used, the
seconds of processor time, and the length of the rest. The kind is DONE with the result; SPOOLED; FAILED with an array of an
error object's code, message and data, and whether it is lasting; UNKNOWN or UNKNOWN_NODES; TIMED_OUT;
TOO_LARGE, with the limit if it is not that of results; UNAVAILABLE or CRASHED."""
SPOOLED = b"s"
"""The result is in the file; the rest is its size."""
TIMED_OUT = b"o"

INLINE_BYTES = 2**18
"""Maximum size of a result in a message. A longer one is written to the file."""

TASKS_AT_ONCE = 64
"""Maximum number of tasks in an array. Large ones count several times."""

OUT_OF_MEMORY_STATUS = 3
"""Exit status of a worker at its memory limit, when there may be no memory for a
message."""


MAX_KEYS = 1024
"""Most keys of one outcome. What is left is found by the next execution."""


def encode_keys(keys: Keys) -> bytes:
    """Return up to MAX_KEYS keys as JSON."""
    return orjson.dumps(_keys_to_json(keys))


def decode_keys(data: bytes) -> Keys:
    """Return the keys that `encode_keys` has written."""
    return _keys_from_json(*orjson.loads(data))


def encode_unknown(error: UnknownValues) -> bytes:
    """Return the keys of an error, and for a past state its block, as JSON."""
    past = error.block_hash.hex() if isinstance(error, UnknownPast) else None
    return orjson.dumps([*_keys_to_json(error.keys), past])


def decode_unknown(data: bytes) -> UnknownValues:
    """Return the error that `encode_unknown` has written."""
    *found, past = orjson.loads(data)
    keys = _keys_from_json(*found)
    return UnknownValues(keys) if past is None else UnknownPast(keys, _bytes(past))


def _keys_to_json(keys: Keys) -> list[Any]:
    accounts = sorted(keys.accounts)[:MAX_KEYS]
    slots = sorted(keys.slots)[: MAX_KEYS - len(accounts)]
    return [
        [address.hex() for address in accounts],
        [[address.hex(), f"{slot:x}"] for address, slot in slots],
    ]


def _keys_from_json(accounts: list[str], slots: list[list[str]]) -> Keys:
    return Keys(
        {Address(_bytes(name)) for name in accounts},
        {(Address(_bytes(name)), int(slot, 16)) for name, slot in slots},
    )


def past_to_json(states: PastStates) -> Any:
    """Return values of past states as JSON values of a task's job."""
    return {
        block_hash.hex(): [
            {
                address.hex(): account
                and [
                    account.nonce,
                    f"{account.balance:x}",
                    account.code_hash.hex(),
                    account.storage_root and account.storage_root.hex(),
                ]
                for address, account in values.accounts.items()
            },
            [
                [address.hex(), f"{slot:x}", f"{value:x}"]
                for (address, slot), value in values.slots.items()
            ],
        ]
        for block_hash, values in states.items()
    }


def past_from_json(states: Any) -> PastStates:
    """Return the values that `past_to_json` has written."""
    return {
        _bytes(block_hash): ProvedValues(
            {
                Address(_bytes(name)): account and _account(*account)
                for name, account in accounts.items()
            },
            {
                (Address(_bytes(name)), int(slot, 16)): int(value, 16)
                for name, slot, value in slots
            },
        )
        for block_hash, (accounts, slots) in states.items()
    }


def _account(
    nonce: int, balance: str, code_hash: str, storage_root: str | None
) -> AccountValue:
    root = None if storage_root is None else Hash32(_bytes(storage_root))
    return AccountValue(nonce, int(balance, 16), Hash32(_bytes(code_hash)), root)


_bytes = bytes.fromhex


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The settings of a worker process."""

    conninfo: str
    """Database connection string of libpq."""
    memory_bytes: int
    """Memory limit, in addition to the memory of a ready worker."""
    result_bytes: int
    """Size limit of a result."""

    def encode(self) -> bytes:
        """Return the settings as JSON."""
        return orjson.dumps(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> WorkerSettings:
        """Return the settings that `encode` has written."""
        return cls(**orjson.loads(data))
