"""Requests of the execution layer to the consensus layer (EIP-7685)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from eth_typing import Address, Hash32

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evm.receipts import Log

DEPOSIT_REQUEST_TYPE = b"\x00"
WITHDRAWAL_REQUEST_TYPE = b"\x01"
CONSOLIDATION_REQUEST_TYPE = b"\x02"
BUILDER_DEPOSIT_REQUEST_TYPE = b"\x03"
BUILDER_EXIT_REQUEST_TYPE = b"\x04"

WITHDRAWAL_REQUEST_ADDRESS = Address(
    bytes.fromhex("00000961ef480eb55e80d19ad83579a64c007002")
)
"""Predeploy of https://eips.ethereum.org/EIPS/eip-7002."""

CONSOLIDATION_REQUEST_ADDRESS = Address(
    bytes.fromhex("0000bbddc7ce488642fb579f8b00f3a590007251")
)
"""Predeploy of https://eips.ethereum.org/EIPS/eip-7251."""

BUILDER_DEPOSIT_ADDRESS = Address(
    bytes.fromhex("0000bff46984e3725691fa540a8c7589300d8282")
)
"""Contract of builders' deposits: https://eips.ethereum.org/EIPS/eip-8282."""

BUILDER_EXIT_ADDRESS = Address(
    bytes.fromhex("000064d678505ad48f8ccb093bc65613800e8282")
)
"""Contract of builders' exits: https://eips.ethereum.org/EIPS/eip-8282."""

QUEUES = {
    WITHDRAWAL_REQUEST_TYPE: WITHDRAWAL_REQUEST_ADDRESS,
    CONSOLIDATION_REQUEST_TYPE: CONSOLIDATION_REQUEST_ADDRESS,
}
"""Request type → the system contract that keeps the requests, in order."""

BUILDER_QUEUES = {
    BUILDER_DEPOSIT_REQUEST_TYPE: BUILDER_DEPOSIT_ADDRESS,
    BUILDER_EXIT_REQUEST_TYPE: BUILDER_EXIT_ADDRESS,
}
"""The same from Amsterdam on, in addition."""

QUEUE_NAMES = {
    WITHDRAWAL_REQUEST_ADDRESS: "withdrawal",
    CONSOLIDATION_REQUEST_ADDRESS: "consolidation",
    BUILDER_DEPOSIT_ADDRESS: "builder deposit",
    BUILDER_EXIT_ADDRESS: "builder exit",
}
"""System contract → the queue's name in geth's texts."""

QUEUE_SLOTS = (0, 1, 2, 3)
"""Slots of each of these contracts that every block reads: the excess of requests, their
number in the block, and the queue's head and tail. The requests follow."""

_DEPOSIT_EVENT = bytes.fromhex(
    "649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5"
)
# DepositEvent(bytes pubkey, bytes withdrawal_credentials, bytes amount,
# bytes signature, bytes index): where the ABI must put each field, and its length.
_DEPOSIT_FIELDS = ((160, 48), (256, 32), (320, 8), (384, 96), (512, 8))
_DEPOSIT_EVENT_LENGTH = 576


class InvalidDepositEvent(ValueError):
    """Raised when an event of the deposit contract does not have the required layout."""


def deposit_requests(logs: Iterable[Log], deposit_contract: Address) -> bytes:
    """Return the concatenated deposits of the deposit contract's logs (EIP-6110).

    Raises: InvalidDepositEvent, which makes the block invalid.
    """
    return b"".join(
        _parse_deposit(log.data)
        for log in logs
        if log.address == deposit_contract
        and log.topics
        and log.topics[0] == _DEPOSIT_EVENT
    )


def _parse_deposit(data: bytes) -> bytes:
    if len(data) != _DEPOSIT_EVENT_LENGTH:
        raise InvalidDepositEvent(
            "unable to parse deposit data: deposit wrong length: "
            f"want {_DEPOSIT_EVENT_LENGTH}, have {len(data)}"
        )
    request = b""
    for i, (offset, length) in enumerate(_DEPOSIT_FIELDS):
        if int.from_bytes(data[32 * i : 32 * i + 32], "big") != offset:
            raise InvalidDepositEvent(f"deposit event field {i} is not at {offset}")
        start = offset + 32
        if int.from_bytes(data[offset:start], "big") != length:
            raise InvalidDepositEvent(f"deposit event field {i} has not {length} bytes")
        request += data[start : start + length]
    return request


def requests_hash(requests: Sequence[bytes]) -> Hash32:
    """Return the header's `requestsHash` (EIP-7685).

    requests: each is `type ‖ data`, and its data is not empty.
    """
    return Hash32(sha256(b"".join(sha256(r).digest() for r in requests)).digest())
