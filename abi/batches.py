"""Calls inside the arguments of calls that execute several others.

These are the functions of Multicall3, whose calls name their targets, and `multicall` of
Uniswap and others, whose calls are of the contract itself.

Calls can be nested, and repeated thousands of times: depth, calls and values are limited.
Source: https://github.com/mds1/multicall3; Uniswap v3-periphery IMulticall.sol
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from abi.decoding import SELECTOR, DecodedCall, decode_call
from abi.selectors import Definitions
from abi.values import MAX_VALUES, Argument, InnerCall

MAX_DEPTH = 3
"""Levels of calls inside calls that are decoded."""

MAX_CALLS = 50
"""Calls inside a call that are decoded, on all levels together."""

_CALL, _CALL3, _CALL3_VALUE = (
    f"(address,{members}bytes)[]" for members in ("", "bool,", "bool,uint256,")
)
_BATCHES = frozenset(
    {
        f"aggregate({_CALL})",
        f"blockAndAggregate({_CALL})",
        f"tryAggregate(bool,{_CALL})",
        f"tryBlockAndAggregate(bool,{_CALL})",
        f"aggregate3({_CALL3})",
        f"aggregate3Value({_CALL3_VALUE})",
        "multicall(bytes[])",
        "multicall(uint256,bytes[])",
        "multicall(bytes32,bytes[])",
    }
)
"""The last argument has the calls: their data, or tuples that begin with the target and
end with the data."""

AbiOf = Callable[[bytes | None], Definitions | None]
"""Returns the uploaded definitions for a contract, None without any."""


def no_abi(to: bytes | None) -> None:
    """Return that nothing was uploaded for a contract."""


def decode_batch(
    data: bytes, to: bytes | None, abi_of: AbiOf, most: int = MAX_VALUES
) -> DecodedCall | None:
    """Decode the input of a call as `decode_call` does, and the calls inside it.

    to: the called contract. most: maximum number of decoded values of all calls.
    Returns: the call. It is incomplete if calls inside it exceed the limits.
    """
    return _Batch(abi_of, most).call(data, to, 0)


def selectors_in(data: bytes) -> set[bytes]:
    """Return the selectors of a call and of the calls inside it, also of unknown ones."""
    batch = _Batch(no_abi, MAX_VALUES)
    batch.call(data, None, 0)
    return batch.selectors


def has_selector(data: bytes, wanted: Collection[bytes]) -> bool:
    """Return whether a call, or one inside it, has one of some selectors.

    The arguments need not fit a known function. If there are more calls than are decoded,
    a selector at any place of the data counts.
    """
    batch = _Batch(no_abi, MAX_VALUES)
    call = batch.call(data, None, 0)
    if not batch.selectors.isdisjoint(wanted):
        return True
    is_cut = call is not None and not call.is_complete
    return is_cut and any(one in data for one in wanted)


class _Batch:
    """Decodes a call and those inside it, and counts calls and values."""

    def __init__(self, abi_of: AbiOf, most: int) -> None:
        self._abi_of = abi_of
        self._values_left = most
        self._calls_left = MAX_CALLS
        self._has_omitted = False
        self.selectors: set[bytes] = set()

    def call(self, data: bytes, to: bytes | None, depth: int) -> DecodedCall | None:
        """Decode a call. depth: number of calls that contain it."""
        self.selectors.add(data[:SELECTOR])
        found = decode_call(data, self._abi_of(to), self._values_left)
        if found is None:
            return None
        self._values_left = max(0, self._values_left - _count(found.arguments))
        if found.signature in _BATCHES:
            *others, calls = found.arguments
            inner = replace(calls, value=tuple(self._items(calls, to, depth)))
            found = replace(found, arguments=(*others, inner))
        if depth or not self._has_omitted:
            return found
        return replace(found, is_complete=False)

    def _items(
        self, calls: Argument, to: bytes | None, depth: int
    ) -> Iterator[Argument]:
        assert isinstance(calls.value, tuple)
        for item in calls.value:
            if not isinstance(item.value, tuple):
                yield self._with_call(item, to, depth)
                continue
            target, *others, data = item.value
            assert isinstance(target.value, bytes)
            last = self._with_call(data, target.value, depth)
            yield replace(item, value=(target, *others, last))

    def _with_call(self, data: Argument, to: bytes | None, depth: int) -> Argument:
        """Return data with the call that they encode, if it is known."""
        assert isinstance(data.value, bytes)
        if depth == MAX_DEPTH or not self._calls_left or not self._values_left:
            self._has_omitted = True
            return data
        self._calls_left -= 1
        found = self.call(data.value, to, depth + 1)
        if found is None:
            return data
        if not found.is_complete:
            self._has_omitted = True
        return replace(data, inner=InnerCall(found.signature, found.arguments))


def _count(arguments: tuple[Argument, ...]) -> int:
    """Return the number of values. Those of inner calls are not among them."""
    return sum(
        1 + (_count(one.value) if isinstance(one.value, tuple) else 0)
        for one in arguments
    )
