"""Decoding of calls, their results, custom errors and logs.

A name is a guess: four bytes select a function, different functions may share them, and a contract need not do what the name suggests. A definition is used only if the data
fit its types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from abi.definitions import Definition
from abi.selectors import Definitions, well_known
from abi.types import WORD, Elementary, Parameter
from abi.values import MAX_VALUES, Argument, Malformed, decode, decode_word

SELECTOR = 4
"""Bytes of a selector."""


@dataclass(frozen=True, slots=True)
class DecodedCall:
    """The input of a call, or the data of a custom error."""

    definition: Definition
    arguments: tuple[Argument, ...]
    interfaces: tuple[str, ...]
    """Well-known interfaces that have this signature; empty if it was uploaded."""
    is_complete: bool
    """Whether no items of arrays were omitted."""
    trailing: int
    """Number of bytes after the arguments. Solidity's contracts ignore them."""

    @property
    def name(self) -> str:
        """The function's name."""
        return self.definition.name

    @property
    def signature(self) -> str:
        """The function's name with the types of its parameters."""
        return self.definition.signature


@dataclass(frozen=True, slots=True)
class DecodedLog:
    """A log. arguments: in the order of the event's definition."""

    definition: Definition
    arguments: tuple[Argument, ...]
    interfaces: tuple[str, ...]
    is_complete: bool

    @property
    def name(self) -> str:
        """The event's name."""
        return self.definition.name

    @property
    def signature(self) -> str:
        """The event's name with the types of its parameters."""
        return self.definition.signature


def decode_call(
    data: bytes, abi: Definitions | None = None, most: int = MAX_VALUES
) -> DecodedCall | None:
    """Decode the input of a call, None if no known function fits.

    abi: definitions that take precedence over the well-known ones, such as an uploaded
        ABI. most: maximum number of decoded values.
    """
    selector = data[:SELECTOR]
    found = [one.functions(selector) for one in _sources(abi)]
    return _decode_first(found, data, most)


def decode_error(
    data: bytes, abi: Definitions | None = None, most: int = MAX_VALUES
) -> DecodedCall | None:
    """Decode the return data of a reverted call, None if no known error fits."""
    selector = data[:SELECTOR]
    found = [one.errors(selector) for one in _sources(abi)]
    return _decode_first(found, data, most)


def decode_log(
    topics: Sequence[bytes],
    data: bytes,
    abi: Definitions | None = None,
    most: int = MAX_VALUES,
) -> DecodedLog | None:
    """Decode a log, None if no known event fits.

    topics: of 32 bytes each. An anonymous event has no topic 0 and is never found.
    """
    if not topics:
        return None
    for source in _sources(abi):
        fitting = source.events(topics[0])
        for definition in fitting:
            try:
                arguments, is_complete = _log(definition, topics[1:], data, most)
            except Malformed:
                continue
            shape = [one.is_indexed for one in definition.inputs]
            names = _interfaces(
                one
                for one in fitting
                if [each.is_indexed for each in one.inputs] == shape
            )
            return DecodedLog(definition, arguments, names, is_complete)
    return None


def _sources(abi: Definitions | None) -> Iterator[Definitions]:
    if abi is not None:
        yield abi
    yield well_known()


def _decode_first(
    sources: Iterable[tuple[Definition, ...]], data: bytes, most: int
) -> DecodedCall | None:
    """Decode data by the first definition that fits them."""
    if len(data) < SELECTOR:
        return None
    for fitting in sources:
        for definition in fitting:
            try:
                decoded = decode(definition.inputs, data[SELECTOR:], most)
            except Malformed:
                continue
            same = (one for one in fitting if one.signature == definition.signature)
            return DecodedCall(
                definition,
                decoded.arguments,
                _interfaces(same),
                decoded.is_complete,
                decoded.trailing,
            )
    return None


def _log(
    definition: Definition, topics: Sequence[bytes], data: bytes, most: int
) -> tuple[tuple[Argument, ...], bool]:
    """Return the arguments of a log, and whether all of them were decoded.

    topics: without topic 0.
    Raises: Malformed.
    """
    indexed = [one for one in definition.inputs if one.is_indexed]
    if len(indexed) != len(topics) or any(len(topic) != WORD for topic in topics):
        raise Malformed("the event has another number of topics")
    others = [one for one in definition.inputs if not one.is_indexed]
    decoded = decode(others, data, most)
    by_topic = iter([_topic(*pair) for pair in zip(indexed, topics, strict=True)])
    by_data = iter(decoded.arguments)
    arguments = tuple(
        next(by_topic if one.is_indexed else by_data) for one in definition.inputs
    )
    return arguments, decoded.is_complete


def _topic(parameter: Parameter, topic: bytes) -> Argument:
    """Return an indexed argument. Texts, tuples and arrays are indexed by their hash."""
    kind = parameter.type
    argument = Argument(parameter.name, kind.name, topic, is_indexed=True)
    if isinstance(kind, Elementary) and not kind.is_dynamic:
        return replace(argument, value=decode_word(kind, topic))
    return replace(argument, is_hash=True)


def _interfaces(definitions: Iterable[Definition]) -> tuple[str, ...]:
    """Return the names of the interfaces of several definitions, each once."""
    return tuple(dict.fromkeys(name for one in definitions for name in one.interfaces))
