"""The register of methods: what can be called, with what, and what it costs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from jsonrpc.params import Param, Schema, Signature

Handler = Callable[..., Any]
"""Takes the context and the arguments; returns a value, or something to await for it.

What is answered at once must not pay for a coroutine, hence no handler has to be one.
"""

Encoder = Callable[[Any], bytes]
"""Makes finished JSON of the value that a handler returned, unless that is a Stream."""

HandlerT = TypeVar("HandlerT", bound=Callable[..., object | Awaitable[object]])


def json_or_null(value: bytes | None) -> bytes:
    """Return JSON that is finished already, null in the place of nothing."""
    return b"null" if value is None else value


@dataclass(frozen=True, slots=True)
class Method:
    """A method that can be called.

    result: the schema of what it answers.
    credits: what a call costs.
    capability: what a caller must have been granted, None for nothing special.
    is_slow: whether it may take longer than others, as long as the caller waits.
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
        """Return a registry with a changed method in the place of each."""
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
    ) -> Callable[[HandlerT], HandlerT]:
        """Register the decorated function under a name."""

        def register(handler: HandlerT) -> HandlerT:
            if name in self._methods:
                raise ValueError(f"{name} is registered twice")
            self._methods[name] = Method(
                name=name,
                handler=handler,
                signature=Signature(params),
                encode=encode,
                result=result,
                summary=summary,
                credits=credits,
                capability=capability,
                is_slow=is_slow,
            )
            return handler

        return register
