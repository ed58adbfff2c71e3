"""Words of 32 bytes in the input, output and logs of contracts.

Source: https://docs.soliditylang.org/en/latest/abi-spec.html
"""

from __future__ import annotations

from eth_hash.auto import keccak

WORD = 32


def selector(function: str) -> str:
    """Return the first four bytes of a call as hexadecimal digits, without 0x."""
    return keccak(function.encode())[:4].hex()


def topic(event: str) -> str:
    """Return the first topic of an event's logs, as `0x…`."""
    return "0x" + keccak(event.encode()).hex()


def address_word(address: str) -> str:
    """Return an address as hexadecimal digits of a word, without 0x."""
    return address.removeprefix("0x").lower().rjust(2 * WORD, "0")


def number_word(number: int) -> str:
    """Return an unsigned number as hexadecimal digits of a word, without 0x."""
    return f"{number:0{2 * WORD}x}"


def numbers(data: bytes) -> list[int]:
    """Return the words of data as unsigned numbers.

    Raises: ValueError if it does not consist of whole words.
    """
    if len(data) % WORD:
        raise ValueError("not whole words")
    return [
        int.from_bytes(data[start : start + WORD])
        for start in range(0, len(data), WORD)
    ]


def to_address(number: int) -> str:
    """Return the address in a word, in lower case. Raises: ValueError."""
    if number >> 160:
        raise ValueError("not an address")
    return f"0x{number:040x}"


def array_at(words: list[int], place: int) -> list[int]:
    """Return the dynamic array of words to which a word refers.

    place: index of the word with the offset.
    Raises: ValueError, IndexError.
    """
    offset, rest = divmod(words[place], WORD)
    if rest:
        raise ValueError("an offset within a word")
    length = words[offset]
    found = words[offset + 1 : offset + 1 + length]
    if len(found) != length:
        raise ValueError("the array is cut off")
    return found
