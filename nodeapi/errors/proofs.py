"""Values of a network that started at a checkpoint, which have to be proved first."""

from __future__ import annotations

from jsonrpc.errors import RpcError


class TooManyUnknownValues(RpcError):
    """Raised when a customer asks for too many values that are not known yet.

    Each of them is fetched from upstream nodes with its proof, once.
    limit: number of values at a time. rate: values per second.
    """

    remedy = (
        "Wait for responses before you request more, or read fewer new accounts and "
        "slots per second. Values that were read once are not counted."
    )
    http_status = 429
    code = -32005
    reason = "too_many_unknown_values"
    headers = {"Retry-After": "1"}

    def __init__(self, limit: int, rate: int) -> None:
        super().__init__(
            "too many values that have to be proved first: at most "
            f"{limit} at a time and {rate} per second",
            limit=limit,
            rate=rate,
        )


class TooMuchToProve(RpcError):
    """Raised when one request needs more unknown values than it may fetch."""

    code = -32005
    reason = "too_much_to_prove"
    remedy = (
        "Repeat the request: the values that it has read so far are known now. Or send "
        "smaller ones. Trie nodes are not kept, so that a simulation or proof of this "
        "size always fails."
    )
    text = (
        "the request needs too many accounts and slots that are not known yet, or their "
        "proofs take too long"
    )


class SlotsNotEnumerable(RpcError):
    """Raised when all slots of an account are needed, and only single ones can be proved.

    The network started at a checkpoint, and the account had storage there.
    """

    reason = "slots_not_enumerable"
    remedy = "Read single slots with eth_getStorageAt or eth_getStorageValues."
    text = (
        "the slots of this account can't be listed, because the network started at a "
        "checkpoint"
    )


class TooManyRounds(RpcError):
    """Raised when a call still needs unknown values after it was repeated many times.

    rounds: number of repetitions.
    """

    code = 4444
    reason = "too_many_rounds"
    remedy = (
        "Repeat the call: the values that it has read so far are known now. Or send "
        "their accounts and slots to eth_getProof or eth_getStorageValues first."
    )

    def __init__(self, rounds: int) -> None:
        super().__init__(
            f"values were still unknown after {rounds} repetitions; try again",
            rounds=rounds,
        )
