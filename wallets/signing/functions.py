"""Describes the input of a contract call whose function is well known.

Four bytes select a function, and different functions may share them; then the arguments
usually can't be decoded. The contract's code may do anything, whatever the name says.
Source: https://docs.soliditylang.org/en/latest/abi-spec.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sha3 import keccak_256

_KNOWN = """
    transfer(address to, uint256 amount)
    transferFrom(address from, address to, uint256 amount)
    approve(address spender, uint256 amount)
    increaseAllowance(address spender, uint256 added)
    decreaseAllowance(address spender, uint256 subtracted)
    permit(address owner, address spender, uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
    mint(address to, uint256 amount)
    burn(uint256 amount)
    setApprovalForAll(address operator, bool approved)
    safeTransferFrom(address from, address to, uint256 token)
    safeTransferFrom(address from, address to, uint256 token, bytes data)
    safeTransferFrom(address from, address to, uint256 token, uint256 amount, bytes data)
    safeBatchTransferFrom(address from, address to, uint256[] tokens, uint256[] amounts, bytes data)
    deposit()
    withdraw(uint256 amount)
    transferOwnership(address owner)
    renounceOwnership()
    upgradeTo(address implementation)
    upgradeToAndCall(address implementation, bytes data)
    multicall(bytes[] calls)
    multicall(uint256 deadline, bytes[] calls)
    execute(bytes commands, bytes[] inputs)
    execute(bytes commands, bytes[] inputs, uint256 deadline)
"""
"""ERC-20, ERC-721, ERC-1155, ERC-2612, ERC-173, ERC-1822, wrapped ether, routers."""

_WORD = 32
_STATIC = re.compile(r"address|bool|uint256|uint8|bytes32")
_UNLIMITED = 2**255
"""Amounts from here on are shown as unlimited."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call, as text."""

    name: str
    type: str
    value: str


@dataclass(frozen=True, slots=True)
class Call:
    """A contract call.

    selector: the function's four bytes, as `0x…`.
    name: the function's name with parameter types; "" if it is unknown.
    arguments: the decoded arguments; empty if a parameter has a dynamic type.
    """

    selector: str
    name: str = ""
    arguments: tuple[Argument, ...] = ()


def describe_call(data: bytes) -> Call | None:
    """Return the call that an input makes, None without a selector."""
    if len(data) < 4:
        return None
    selector, rest = data[:4], data[4:]
    known = _FUNCTIONS.get(selector)
    if known is None:
        return Call("0x" + selector.hex())
    name, parameters = known
    try:
        arguments = _read_arguments(parameters, rest)
    except ValueError:  # another function with the same four bytes
        return Call("0x" + selector.hex())
    return Call("0x" + selector.hex(), name, arguments)


def _read_arguments(
    parameters: list[tuple[str, str]], data: bytes
) -> tuple[Argument, ...]:
    """Return the arguments of a call; () if a parameter has a dynamic type.

    Raises: ValueError when the input does not fit the parameters.
    """
    if not all(_STATIC.fullmatch(type_name) for type_name, _ in parameters):
        return ()
    if len(data) != _WORD * len(parameters):
        raise ValueError("too short or too long")
    words = [data[start : start + _WORD] for start in range(0, len(data), _WORD)]
    return tuple(
        Argument(name, type_name, _shown(type_name, word))
        for (type_name, name), word in zip(parameters, words, strict=True)
    )


def _shown(type_name: str, word: bytes) -> str:
    number = int.from_bytes(word)
    if type_name == "bytes32":
        return "0x" + word.hex()
    if type_name == "address":
        if number >= 2**160:
            raise ValueError("no address")
        return "0x" + word[12:].hex()
    if type_name == "bool":
        return {0: "false", 1: "true"}.get(number) or _refuse()
    if type_name == "uint8" and number > 255:
        _refuse()
    return f"{number:,}" if number < _UNLIMITED else f"{number:,} (unlimited)"


def _refuse() -> str:
    raise ValueError("out of range")


def _parse(line: str) -> tuple[bytes, tuple[str, list[tuple[str, str]]]]:
    """Return a function's selector, its name with types, and its parameters."""
    name, _, inside = line.strip().rstrip(")").partition("(")
    parameters: list[tuple[str, str]] = []
    for parameter in filter(None, inside.split(", ")):
        type_name, _, parameter_name = parameter.partition(" ")
        parameters.append((type_name, parameter_name))
    signature = f"{name}({','.join(type_name for type_name, _ in parameters)})"
    return keccak_256(signature.encode()).digest()[:4], (signature, parameters)


_FUNCTIONS = dict(_parse(line) for line in _KNOWN.strip().splitlines())
