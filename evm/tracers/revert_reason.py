"""Reasons of reverts: decoding of `Error(string)` and `Panic(uint256)` as in geth.

Source: go-ethereum, accounts/abi/abi.go; https://docs.soliditylang.org, "Panic via
assert and Error via require"
"""

from __future__ import annotations

import codecs

_ERROR = bytes.fromhex("08c379a0")
_PANIC = bytes.fromhex("4e487b71")

_PANICS = {
    0x00: "generic panic",
    0x01: "assert(false)",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
    0x21: "enum overflow",
    0x22: "invalid encoded storage byte array accessed",
    0x31: "out-of-bounds array access; popping on an empty array",
    0x32: "out-of-bounds access of an array or bytesN",
    0x41: "out of memory",
    0x51: "uninitialized function",
}


def revert_reason(output: bytes) -> str | None:
    """Return the reason in a revert's return data, or None if it has another format."""
    selector, arguments = output[:4], output[4:]
    if len(arguments) < 32:
        return None
    if selector == _PANIC:
        code = int.from_bytes(arguments[:32], "big")
        return _PANICS.get(code, f"unknown panic code: {code:#x}")
    return _string(arguments) if selector == _ERROR else None


def _string(arguments: bytes) -> str | None:
    """Return the ABI-encoded string, or None if it exceeds the data."""
    start = int.from_bytes(arguments[:32], "big") + 32
    if start > len(arguments):
        return None
    end = start + int.from_bytes(arguments[start - 32 : start], "big")
    if end > len(arguments):
        return None
    return arguments[start:end].decode("utf-8", _GO)


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    """Replace each invalid UTF-8 byte by U+FFFD, as Go does.

    Python replaces sequences.
    """
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


_GO = "replace_each_byte"
codecs.register_error(_GO, _replace_each_byte)
