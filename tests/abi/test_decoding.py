"""Decoding of data that eth-abi has encoded, and of malformed data."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from eth_abi import encode

from abi.decoding import decode_call, decode_error, decode_log
from abi.definitions import Definition, parse_definition
from abi.selectors import Definitions
from abi.values import MAX_VALUES, Argument, Malformed, Value, decode
from evm.hexadecimal import to_hex
from explorer.arguments import value_text

ALICE, BOB = bytes([0xA1]) * 20, bytes([0xB0]) * 20


def plain(value: Value, kind: str) -> object:
    """Return a decoded value as eth-abi represents it."""
    if isinstance(value, tuple):
        return tuple(plain(one.value, one.type) for one in value)
    return to_hex(value) if kind == "address" and isinstance(value, bytes) else value


def plain_arguments(arguments: tuple[Argument, ...]) -> list[object]:
    return [plain(one.value, one.type) for one in arguments]


def parameters_of(types: str) -> Definition:
    return parse_definition(f"function f({types})")


VALUES: list[tuple[str, list[object]]] = [
    ("uint256, int8, bool", [2**256 - 1, -128, True]),
    ("address, bytes4, bytes32", [to_hex(ALICE), b"abcd", b"x" * 32]),
    ("string, bytes", ["“quoted” text", b"\0" * 77]),
    ("uint256[], address[2]", [(1, 2, 3), (to_hex(ALICE), to_hex(BOB))]),
    ("string[][2], uint8", [(("a", "b" * 40), ()), 7]),
    ("(uint256, string)[], (bool, (int24, bytes)[2])", [((1, "x"), (2, "y")), (True, ((-1, b""), (5, b"z")))]),
    ("(uint8[2][3], address), bytes[]", [(((1, 2), (3, 4), (5, 6)), to_hex(BOB)), (b"1", b"22")]),
    ("", []),
]  # fmt: skip


@pytest.mark.parametrize(("types", "values"), VALUES)
def test_values_are_those_that_were_encoded(types: str, values: list[object]) -> None:
    definition = parameters_of(types)
    data = encode([one.type.name for one in definition.inputs], values)
    decoded = decode(definition.inputs, data)
    assert plain_arguments(decoded.arguments) == values
    assert decoded.is_complete
    assert decoded.trailing == 0
    assert decode(definition.inputs, data + b"tail").trailing == 4


@pytest.mark.parametrize(("types", "values"), VALUES[:-1])
def test_data_that_end_early_are_malformed(types: str, values: list[object]) -> None:
    definition = parameters_of(types)
    data = encode([one.type.name for one in definition.inputs], values)
    with pytest.raises(Malformed):
        decode(definition.inputs, data[: len(data) - 64])


@pytest.mark.parametrize(
    ("types", "word"),
    [
        ("address", "01" + "00" * 31),
        ("bool", "00" * 31 + "02"),
        ("uint8", "00" * 30 + "0100"),
        ("int8", "00" * 31 + "80"),
        ("bytes4", "00" * 4 + "01" + "00" * 27),
        ("bytes", "ff" * 32),
        ("string", "00" * 31 + "20"),
        ("uint256[]", "00" * 31 + "20" + "ff" * 32),
        ("(string, bytes)[3]", "00" * 32),
    ],
)
def test_values_that_do_not_fit_their_type_are_malformed(types: str, word: str) -> None:
    with pytest.raises(Malformed):
        decode(parameters_of(types).inputs, bytes.fromhex(word))


def test_random_data_are_decoded_or_malformed_and_nothing_else() -> None:
    rng = random.Random(5)
    for types, values in VALUES:
        definition = parameters_of(types)
        data = encode([one.type.name for one in definition.inputs], values)
        for _ in range(300):
            broken = bytearray(data)
            for _ in range(rng.randint(1, 4)):
                if broken:
                    broken[rng.randrange(len(broken))] = rng.randrange(256)
            with suppress(Malformed):
                decode(definition.inputs, bytes(broken))


def test_offsets_that_share_data_do_not_multiply_it() -> None:
    """Each array's items are all the next array: 64 to the power of 6 values."""
    width, levels = 64, 6
    kind = "uint256" + "[]" * levels
    words = [32]
    for level in range(levels):
        words.append(width)
        # Offsets count from after the length.
        words += [0 if level == levels - 1 else 32 * width] * width
    data = b"".join(word.to_bytes(32) for word in words)
    with pytest.raises(Malformed):
        decode(parameters_of(kind).inputs, data, most=10**9)


def test_long_arrays_are_counted_and_decoded_in_part() -> None:
    definition = parameters_of("uint256[] values, bytes data")
    data = encode(["uint256[]", "bytes"], [range(150_000), b"end"])
    decoded = decode(definition.inputs, data)
    values, tail = decoded.arguments
    assert isinstance(values.value, tuple)
    assert len(values.value) < MAX_VALUES
    assert values.length == 150_000
    assert tail.value == b"end"
    assert not decoded.is_complete


def test_transfer_is_decoded() -> None:
    data = bytes.fromhex("a9059cbb") + encode(
        ["address", "uint256"], [to_hex(BOB), 10**18]
    )
    call = decode_call(data)
    assert call is not None
    assert (call.name, call.signature) == ("transfer", "transfer(address,uint256)")
    assert [(one.name, value_text(one)) for one in call.arguments] == [
        ("to", "0xB0B0b0B0B0B0B0b0B0B0B0b0b0b0b0B0b0b0B0B0"),
        ("amount", "1,000,000,000,000,000,000"),
    ]
    assert call.interfaces == ("ERC-20",)


def test_calls_that_do_not_fit_their_function_are_unknown() -> None:
    assert decode_call(bytes.fromhex("a9059cbb")) is None
    assert decode_call(bytes.fromhex("a9059cbb") + b"\xff" * 64) is None
    assert decode_call(bytes.fromhex("12345678") + bytes(64)) is None
    assert decode_call(b"\xa9\x05") is None


def test_uploaded_definitions_take_precedence() -> None:
    own = parse_definition("function transfer(address receiver, uint256 shares)")
    other = parse_definition("error Paused((uint48 since, string reason) state)")
    abi = Definitions.of([own, other])
    data = bytes.fromhex("a9059cbb") + encode(["address", "uint256"], [to_hex(BOB), 3])
    call = decode_call(data, abi)
    assert call is not None
    assert [one.name for one in call.arguments] == ["receiver", "shares"]
    assert call.interfaces == ()
    reason = other.key + encode(["(uint48,string)"], [(9, "a\u202edlog")])
    error = decode_error(reason, abi)
    assert error is not None
    (state,) = error.arguments
    assert isinstance(state.value, tuple)
    assert [value_text(one) for one in state.value] == ["9", "“a⟨U+202E⟩dlog”"]
    assert decode_error(reason) is None


def test_transfers_of_both_kinds_of_tokens_are_told_apart() -> None:
    topic = bytes.fromhex("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")  # fmt: skip
    ends = [bytes(12) + ALICE, bytes(12) + BOB]
    fungible = decode_log([topic, *ends], (5).to_bytes(32))
    assert fungible is not None
    assert "ERC-20" in fungible.interfaces
    assert plain_arguments(fungible.arguments) == [to_hex(ALICE), to_hex(BOB), 5]
    unique = decode_log([topic, *ends, (5).to_bytes(32)], b"")
    assert unique is not None
    assert unique.interfaces == ("ERC-721",)
    assert unique.arguments[2].is_indexed
    assert decode_log([topic], b"") is None
    assert decode_log([topic, *ends], b"") is None
    assert decode_log([], b"") is None


def test_indexed_texts_are_hashes() -> None:
    event = parse_definition("event Named(string indexed name, uint256 number)")
    log = decode_log(
        [event.key, b"\x07" * 32], (1).to_bytes(32), Definitions.of([event])
    )
    assert log is not None
    assert log.arguments[0].is_hash
    assert log.arguments[0].value == b"\x07" * 32


@pytest.mark.parametrize(
    ("bits", "value", "text"),
    [
        (256, 2**256 - 1, " (unlimited)"),
        (160, 2**160 - 1, " (unlimited)"),
        (256, 2**160 - 1, " (unlimited)"),
        (256, 10**18, ""),
    ],
)
def test_unlimited_amounts_say_so(bits: int, value: int, text: str) -> None:
    argument = Argument("amount", f"uint{bits}", value)
    assert value_text(argument) == f"{value:,}{text}"
    assert value_text(Argument("deadline", f"uint{bits}", value)) == f"{value:,}"


def test_long_texts_and_bytes_are_cut() -> None:
    assert len(value_text(Argument("", "string", "x" * 10**6))) < 400
    assert value_text(Argument("", "bytes", b"\1" * 1000)).endswith("… (1,000 bytes)")
