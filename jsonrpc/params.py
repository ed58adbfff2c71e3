"""Positional parameters, decoded in geth's order and with its error texts.

Source: go-ethereum rpc/json.go, parsePositionalArguments
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from jsonrpc.errors import InvalidParams
from jsonrpc.source import Text, argument

Decoder = Callable[[Any], Any]
"""Converts a JSON value to an argument, or raises ValueError with an error text."""

Schema = dict[str, Any]
"""A JSON schema."""


def anything(value: Any) -> Any:
    """Return a value unchanged, for parameters that the method decodes itself."""
    return value


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a method.

    decoder: converts a JSON value other than null to an argument, or raises ValueError.
    required: whether the argument must be present, and not null. Only the last parameters
        may be optional.
    default: the argument if an optional parameter is absent or null.
    reads_text: whether the decoder has a second, optional argument, a
        `jsonrpc.source.Text`.
    """

    name: str
    decoder: Callable[..., Any]
    schema: Schema = field(default_factory=dict)
    required: bool = True
    default: object = None
    summary: str = ""
    reads_text: bool = False


class Signature:
    """The parameters of a method, in order."""

    __slots__ = ("_decoders", "_defaults", "_required", "params", "reads_text")

    def __init__(self, params: Sequence[Param]) -> None:
        self.params = tuple(params)
        self._required = sum(param.required for param in params)
        if not all(param.required for param in params[: self._required]):
            raise ValueError("an optional parameter stands before a required one")
        self._decoders = [param.decoder for param in params]
        self._defaults = [param.default for param in params]
        self.reads_text = any(param.reads_text for param in params)

    def decode(self, params: object, message: Text | None = None) -> list[Any]:
        """Convert a message's `params` to arguments.

        message: the message's text, for decoders that read it.

        Raises: InvalidParams for the first error.
        """
        if params is None:
            params = []
        elif type(params) is not list:
            raise InvalidParams("non-array args")
        decoders = self._decoders if message is None else self._with_text(message)
        arguments: list[Any] = []
        index = 0
        try:
            for value in params:
                if index == len(decoders):
                    raise InvalidParams(f"too many arguments, want at most {index}")
                if value is None:
                    if index < self._required:
                        raise _missing(index)
                    arguments.append(self._defaults[index])
                else:
                    arguments.append(decoders[index](value))
                index += 1
        except ValueError as error:
            raise InvalidParams(f"invalid argument {index}: {error}") from error
        if index < len(decoders):
            if index < self._required:
                raise _missing(index)
            arguments += self._defaults[index:]
        return arguments

    def _with_text(self, message: Text) -> list[Callable[[Any], Any]]:
        """Return the decoders, with the text bound for those that read it."""
        return [
            self._decoder_with_text(param, partial(argument, message, index))
            if param.reads_text
            else self._decoders[index]
            for index, param in enumerate(self.params)
        ]

    @staticmethod
    def _decoder_with_text(param: Param, text: Text) -> Callable[[Any], Any]:
        return lambda value: param.decoder(value, text)


def _missing(index: int) -> InvalidParams:
    return InvalidParams(f"missing value for required argument {index}")


class UndecodedSignature(Signature):
    """The parameters of a method that decodes them itself: its argument is `params`."""

    __slots__ = ()

    def decode(self, params: object, message: Text | None = None) -> list[Any]:
        """Return a message's `params` as the only argument."""
        return [params]
