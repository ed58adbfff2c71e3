"""Positional parameters, decoded in geth's order and with its words.

Source: go-ethereum rpc/json.go, parsePositionalArguments
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jsonrpc.errors import InvalidParams

Decoder = Callable[[Any], Any]
"""Makes an argument of a JSON value, or raises ValueError saying what is wrong."""

Schema = dict[str, Any]
"""A JSON schema."""


def anything(value: Any) -> Any:
    """Return a value as it is: a decoder where what it means shows later."""
    return value


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a method.

    required: whether it must be there. Only parameters at the end may be optional.
    default: the argument where an optional parameter is absent or null.
    """

    name: str
    decoder: Decoder
    schema: Schema = field(default_factory=dict)
    required: bool = True
    default: object = None
    summary: str = ""

    def decode(self, value: Any) -> Any:
        """Return the argument that a JSON value stands for.

        Raises: ValueError. A required parameter's decoder is asked about null, too.
        """
        if value is None and not self.required:
            return self.default
        return self.decoder(value)


class Signature:
    """The parameters of a method, in order."""

    __slots__ = ("_decoders", "_defaults", "_required", "params")

    def __init__(self, params: Sequence[Param]) -> None:
        self.params = tuple(params)
        self._required = sum(param.required for param in params)
        if not all(param.required for param in params[: self._required]):
            raise ValueError("an optional parameter stands before a required one")
        self._decoders = [
            param.decoder if param.required else param.decode for param in params
        ]
        self._defaults = [param.default for param in params]

    def decode(self, params: object) -> list[Any]:
        """Return the arguments that a message's `params` stand for.

        A list is used up: the arguments take the place of what they are made of.
        Raises: InvalidParams, for the first fault.
        """
        if type(params) is not list:
            if params is not None:
                raise InvalidParams("non-array args")
            params = []
        decoders = self._decoders
        index = 0
        try:
            for value in params:
                if index == len(decoders):
                    raise InvalidParams(f"too many arguments, want at most {index}")
                params[index] = decoders[index](value)
                index += 1
        except ValueError as error:
            raise InvalidParams(f"invalid argument {index}: {error}") from error
        if index < len(decoders):
            if index < self._required:
                raise InvalidParams(f"missing value for required argument {index}")
            params += self._defaults[index:]
        return params
