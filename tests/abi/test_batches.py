"""Calls inside the arguments of Multicall3 and of `multicall`, and the limits for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from eth_abi import encode

from abi.batches import (
    MAX_CALLS,
    MAX_DEPTH,
    decode_batch,
    selectors_in,
)
from abi.decoding import DecodedCall
from abi.definitions import parse_definition
from abi.selectors import Definitions
from abi.values import Argument, InnerCall

ALICE, BOB, TOKEN = (bytes([number]) * 20 for number in (0xA1, 0xB0, 0x70))
TRANSFER = "transfer(address,uint256)"
UNKNOWN = b"\x12\x34\x56\x78" + b"\1" * 32


def signatures_in(call: DecodedCall) -> Iterator[str]:
    """Yield the signatures of a call and of the calls inside it."""
    yield call.signature
    yield from _inner_signatures(call.arguments)


def _inner_signatures(arguments: tuple[Argument, ...]) -> Iterator[str]:
    for one in arguments:
        if isinstance(one.value, tuple):
            yield from _inner_signatures(one.value)
        elif one.inner is not None:
            yield one.inner.signature
            yield from _inner_signatures(one.inner.arguments)


def call(signature: str, *values: object) -> bytes:
    definition = parse_definition(f"function {signature}")
    types = [one.type.name for one in definition.inputs]
    return definition.key + encode(types, values)


def transfer(amount: int = 5) -> bytes:
    return call(TRANSFER, BOB, amount)


def multicall(*calls: bytes) -> bytes:
    return call("multicall(bytes[])", list(calls))


def decoded(data: bytes, most: int = 1000) -> DecodedCall:
    found = decode_batch(data, TOKEN, lambda _: None, most)
    assert found is not None
    return found


def inner_of(found: DecodedCall) -> Sequence[InnerCall | None]:
    """Return the calls in the last argument, None for those that are unknown."""
    items = found.arguments[-1].value
    assert isinstance(items, tuple)
    last = [one.value[-1] if isinstance(one.value, tuple) else one for one in items]
    return [one.inner for one in last]


@pytest.mark.parametrize(
    ("signature", "before", "members"),
    [
        ("aggregate((address,bytes)[])", (), ()),
        ("blockAndAggregate((address,bytes)[])", (), ()),
        ("tryAggregate(bool,(address,bytes)[])", (True,), ()),
        ("tryBlockAndAggregate(bool,(address,bytes)[])", (False,), ()),
        ("aggregate3((address,bool,bytes)[])", (), (True,)),
        ("aggregate3Value((address,bool,uint256,bytes)[])", (), (True, 7)),
    ],
)
def test_calls_of_multicall3_are_decoded(
    signature: str, before: tuple[object, ...], members: tuple[object, ...]
) -> None:
    calls = [(TOKEN, *members, transfer()), (BOB, *members, UNKNOWN)]
    found = decoded(call(signature, *before, calls))
    known, unknown = inner_of(found)
    assert known is not None
    assert known.signature == TRANSFER
    assert [one.value for one in known.arguments] == [BOB, 5]
    assert unknown is None
    assert found.is_complete
    assert list(signatures_in(found)) == [signature, TRANSFER]


@pytest.mark.parametrize(
    ("signature", "before"),
    [
        ("multicall(bytes[])", ()),
        ("multicall(uint256,bytes[])", (1_800_000_000,)),
        ("multicall(bytes32,bytes[])", (b"\7" * 32,)),
    ],
)
def test_calls_of_the_contract_itself_are_decoded(
    signature: str, before: tuple[object, ...]
) -> None:
    found = decoded(call(signature, *before, [transfer(1), transfer(2)]))
    assert [one and one.arguments[1].value for one in inner_of(found)] == [1, 2]


def test_each_call_is_decoded_by_the_definitions_of_its_target() -> None:
    own = {
        target: Definitions.of([parse_definition(f"function {name}()")])
        for target, name in ((ALICE, "ofAlice"), (TOKEN, "ofToken"))
    }
    of_alice, of_token = (
        parse_definition(f"function {name}()").key for name in ("ofAlice", "ofToken")
    )
    data = call(
        "aggregate((address,bytes)[])",
        [(ALICE, of_alice), (BOB, of_alice), (TOKEN, multicall(of_token))],
    )
    found = decode_batch(data, BOB, lambda to: own.get(to or b""))
    assert found is not None
    assert list(signatures_in(found))[1:] == [
        "ofAlice()",
        "multicall(bytes[])",
        "ofToken()",
    ]
    assert {of_alice, of_token} < selectors_in(data), "also those that are unknown"


def test_only_some_levels_are_decoded() -> None:
    data = transfer()
    for _ in range(MAX_DEPTH):
        data = multicall(data)
    assert TRANSFER in signatures_in(decoded(data))
    assert decoded(data).is_complete
    found = decoded(multicall(data))
    assert TRANSFER not in signatures_in(found)
    assert not found.is_complete


def test_only_some_calls_are_decoded() -> None:
    found = decoded(multicall(*[transfer()] * (MAX_CALLS + 1)))
    inner = inner_of(found)
    assert [one is not None for one in inner] == [True] * MAX_CALLS + [False]
    assert not found.is_complete
    assert decoded(multicall(*[transfer()] * MAX_CALLS)).is_complete


def test_values_of_all_calls_are_limited_together() -> None:
    many = call("multicall(bytes[])", [b""] * 90)
    found = decoded(multicall(*[many] * 20), most=100)
    assert not found.is_complete
    values = 0
    waiting = [*found.arguments]
    while waiting:
        one = waiting.pop()
        values += 1
        waiting.extend(one.value if isinstance(one.value, tuple) else ())
        waiting.extend(one.inner.arguments if one.inner else ())
    assert values < 130


def test_bytes_of_other_functions_are_not_taken_for_calls() -> None:
    data = call(
        "safeTransferFrom(address,address,uint256,bytes)", ALICE, BOB, 1, transfer()
    )
    assert decoded(data).arguments[-1].inner is None
