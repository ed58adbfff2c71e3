"""The registry of methods: their handlers, parameters and costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CoroutineType
from typing import Any, TypeVar

from jsonrpc.later import Later
from jsonrpc.params import Param, Schema, Signature, UndecodedSignature

Handler = Callable[..., Any]
"""Takes the context and the arguments. Returns a value, a `Later`, or a coroutine."""

Encoder = Callable[[Any], bytes]
"""Encodes a handler's value as JSON. It is not called for a `Stream`."""

HandlerT = TypeVar("HandlerT", bound=Handler)


def json_or_null(value: bytes | None) -> bytes:
    """Return JSON unchanged, and `null` for None."""
    return b"null" if value is None else value


@dataclass(frozen=True, slots=True)
class Method:
    """A registered method.

    result: the schema of the result.
    credits: the cost of a call.
    capability: what the caller needs permission for, or None.
    is_slow: whether it has the longer timeout, and is cancelled if the caller
        disconnects.
    needs_socket: whether it can only be called on a WebSocket.
    takes_room: whether the handler has an optional last argument `room`, the maximum
        number of bytes of the result. In a batch, such calls are executed one after
        the other.
    """

    name: str
    handler: Handler
    signature: Signature
    encode: Encoder
    result: Schema
    summary: str
    credits: int
    capability: str | None
    is_slow: bool
    needs_socket: bool = False
    takes_room: bool = False

    def start(self, context: object, arguments: Sequence[Any]) -> Later[Any]:
        """Call the handler and return its result, complete if no I/O is needed.

        Never raises. An exception of the handler becomes the result's error.
        """
        try:
            value = self.handler(context, *arguments)
        except Exception as error:
            return Later.failed(error)
        if type(value) is Later:
            return value
        if type(value) is CoroutineType:
            return Later.from_coroutine(value)
        return Later(value)


class MethodRegistry:
    """Methods by their names."""

    def __init__(self) -> None:
        self._methods: dict[str, Method] = {}
        self.find = self._methods.get
        """Return the method of a name, or None."""

    def __iter__(self) -> Iterator[Method]:
        """Yield all methods in the order in which they were registered."""
        return iter(self._methods.values())

    def map(self, change: Callable[[Method], Method]) -> MethodRegistry:
        """Return a new registry with the result of `change` for each method."""
        registry = MethodRegistry()
        registry._methods.update((method.name, change(method)) for method in self)
        return registry

    def method(
        self,
        name: str,
        *,
        params: Sequence[Param] = (),
        encode: Encoder = json_or_null,
        result: Schema,
        summary: str,
        credits: int = 1,
        capability: str | None = None,
        is_slow: bool = False,
        needs_socket: bool = False,
        takes_room: bool = False,
        takes_params: bool = False,
    ) -> Callable[[HandlerT], HandlerT]:
        """Register the decorated function under a name.

        takes_params: whether the handler's only argument is the message's `params`,
            which it decodes. `params` is for the documentation then.
        """
        signature = UndecodedSignature(params) if takes_params else Signature(params)

        def register(handler: HandlerT) -> HandlerT:
            if name in self._methods:
                raise ValueError(f"{name} is registered twice")
            self._methods[name] = Method(
                name=name,
                handler=handler,
                signature=signature,
                encode=encode,
                result=result,
                summary=summary,
                credits=credits,
                capability=capability,
                is_slow=is_slow,
                needs_socket=needs_socket,
                takes_room=takes_room,
            )
            return handler

        return register
