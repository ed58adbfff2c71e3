"""Selectors, topics, words and slots, as Solidity's contract ABI encodes them.

Source: https://docs.soliditylang.org/en/latest/abi-spec.html
"""

from __future__ import annotations

from sha3 import keccak_256


def selector(signature: str) -> bytes:
    """Return the 4-byte selector of a signature such as `transfer(address,uint256)`."""
    return topic(signature)[:4]


def topic(signature: str) -> bytes:
    """Return an event's topic 0, the 32-byte hash of its signature."""
    digest: bytes = keccak_256(signature.encode()).digest()
    return digest


def word(value: int | bytes) -> bytes:
    """Return a 32-byte word: numbers and addresses are padded on the left."""
    if isinstance(value, int):
        return value.to_bytes(32, "big")
    return value.rjust(32, b"\0")


def call_data(signature: str, *arguments: int | bytes) -> bytes:
    """Return the call data of a function with parameters of static types."""
    return selector(signature) + b"".join(map(word, arguments))


def mapping_slot(key: int | bytes, position: int) -> int:
    """Return the storage slot of a mapping's element.

    position: the slot number of the mapping itself.
    Source: https://docs.soliditylang.org/en/latest/internals/layout_in_storage.html
    """
    return int.from_bytes(keccak_256(word(key) + word(position)).digest(), "big")
