"""Definitions of functions, events and custom errors, in Solidity's notation.

A definition is a line such as `function transfer(address to, uint256 amount) returns
(bool)` or `event Transfer(address indexed from, address indexed to, uint256 amount)`.
Members of tuples have names too: `function lockdown((address token, address spender)[]
approvals)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from sha3 import keccak_256

from abi.types import (
    MAX_DEPTH,
    InvalidType,
    Parameter,
    Type,
    arrays,
    elementary,
    struct,
)

IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,99}")

_TOKEN = re.compile(r"[A-Za-z_$][\w$]*|[(),]|\[(?:[0-9]{1,9})?\]|\s+", re.ASCII)
_LOCATIONS = frozenset({"memory", "calldata", "storage"})
_MUTABILITIES = frozenset(
    {"pure", "view", "payable", "nonpayable", "external", "public"}
)


class Kind(StrEnum):
    """The kinds of definitions."""

    FUNCTION = "function"
    EVENT = "event"
    ERROR = "error"


class InvalidDefinition(ValueError):
    """Raised for a line that is not a definition."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, an event or a custom error."""

    kind: Kind
    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...] = ()
    is_anonymous: bool = False
    """Whether the logs of an event lack topic 0."""
    interfaces: tuple[str, ...] = ()
    """Well-known interfaces that have it, such as `ERC-20`."""

    @property
    def signature(self) -> str:
        """The name with the canonical types: `transfer(address,uint256)`."""
        return f"{self.name}({','.join(one.type.name for one in self.inputs)})"

    @property
    def key(self) -> bytes:
        """The selector of a function or an error, 4 bytes; topic 0 of an event, 32."""
        digest: bytes = keccak_256(self.signature.encode()).digest()
        return digest if self.kind is Kind.EVENT else digest[:4]

    @property
    def line(self) -> str:
        """The definition as text, which `parse_definition` reads."""
        text = f"{self.kind} {self.name}({_texts(self.inputs)})"
        if self.is_anonymous:
            text += " anonymous"
        return f"{text} returns ({_texts(self.outputs)})" if self.outputs else text


def parse_definition(line: str, interfaces: tuple[str, ...] = ()) -> Definition:
    """Return the definition that a line contains.

    Raises: InvalidDefinition.
    """
    try:
        return _Parser(line).definition(interfaces)
    except (IndexError, InvalidType) as error:
        raise InvalidDefinition(f"{line[:200]!r} is not a definition") from error


def _texts(parameters: tuple[Parameter, ...]) -> str:
    return ", ".join(one.text for one in parameters)


class _Parser:
    """A recursive-descent parser. An IndexError means that the line ends too early."""

    def __init__(self, line: str) -> None:
        tokens = _TOKEN.findall(line)
        if "".join(tokens) != line:
            raise InvalidDefinition(f"{line[:200]!r} has unknown characters")
        self._tokens = [token for token in tokens if not token.isspace()]
        self._at = 0

    def definition(self, interfaces: tuple[str, ...]) -> Definition:
        """Parse a line that contains one definition and nothing else."""
        try:
            kind = Kind(self._next())
        except ValueError:
            raise InvalidDefinition(
                "a definition begins with what it defines"
            ) from None
        name = self._identifier()
        inputs = self._parameters(0)
        outputs: tuple[Parameter, ...] = ()
        is_anonymous = False
        while self._at < len(self._tokens):
            word = self._next()
            if word == "returns" and kind is Kind.FUNCTION and not outputs:
                outputs = self._parameters(0)
            elif word == "anonymous" and kind is Kind.EVENT:
                is_anonymous = True
            elif word not in _MUTABILITIES or kind is not Kind.FUNCTION:
                raise InvalidDefinition(f"{word!r} is unexpected")
        return Definition(kind, name, inputs, outputs, is_anonymous, interfaces)

    def _next(self) -> str:
        self._at += 1
        return str(self._tokens[self._at - 1])

    def _peek(self) -> str:
        return str(self._tokens[self._at])

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise InvalidDefinition(f"{token!r} is missing")

    def _identifier(self) -> str:
        name = self._next()
        if not IDENTIFIER.fullmatch(name):
            raise InvalidDefinition(f"{name!r} is not a valid name")
        return name

    def _parameters(self, level: int) -> tuple[Parameter, ...]:
        if level > MAX_DEPTH:
            raise InvalidDefinition("tuples are nested too deeply")
        self._expect("(")
        if self._peek() == ")":
            self._at += 1
            return ()
        found = [self._parameter(level)]
        while self._peek() == ",":
            self._at += 1
            found.append(self._parameter(level))
        self._expect(")")
        return tuple(found)

    def _parameter(self, level: int) -> Parameter:
        kind = self._type(level)
        is_indexed, name = False, ""
        while self._peek() not in (",", ")"):
            word = self._identifier()
            if word == "indexed" and not name:
                is_indexed = True
            elif name:
                raise InvalidDefinition(f"{word!r} is unexpected")
            elif word not in _LOCATIONS:
                name = word
        return Parameter(name, kind, is_indexed)

    def _type(self, level: int) -> Type:
        item: Type
        if self._peek() == "tuple":
            self._at += 1
        if self._peek() == "(":
            item = struct(self._parameters(level + 1))
        else:
            item = elementary(self._next())
        lengths: list[int | None] = []
        while self._at < len(self._tokens) and self._peek().startswith("["):
            number = self._next()[1:-1]
            lengths.append(int(number) if number else None)
        return arrays(item, lengths)
