"""`bigInt`, against Python's integers and the documented behaviour of big-integer."""

import json
from functools import cache
from pathlib import Path

import pytest
import quickjs
from hypothesis import given
from hypothesis import strategies as st

from evm.tracers import javascript

SCRIPT = Path(javascript.__file__).parent / "runtime" / "big_int.js"


@cache
def context():
    made = quickjs.Context()
    made.set("source", SCRIPT.read_text())
    made.eval("const bigInt = (0, eval)(source)")
    return made


def js(expression):
    return json.loads(context().eval(f"JSON.stringify([{expression}])"))[0]


def truncated(a, b):
    """Return the quotient as JavaScript rounds it: towards zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


integers = st.integers(-(2**300), 2**300)


@given(integers, integers)
def test_arithmetic_is_exact(a, b):
    x, y = f"bigInt('{a}')", f"'{b}'"
    assert js(f"{x}.add({y})") == str(a + b)
    assert js(f"{x}.minus({y})") == str(a - b)
    assert js(f"{x}.times({y})") == str(a * b)
    assert js(f"{x}.and({y})") == str(a & b)
    assert js(f"{x}.or({y})") == str(a | b)
    assert js(f"{x}.xor({y})") == str(a ^ b)
    assert js(f"{x}.compare({y})") == (a > b) - (a < b)
    assert js(f"{x}.equals({y})") == (a == b)
    assert js(f"{x}.greaterOrEquals({y})") == (a >= b)
    if b:
        quotient = truncated(a, b)
        assert js(f"{x}.divide({y})") == str(quotient)
        assert js(f"{x}.mod({y})") == str(a - quotient * b)


@given(integers, st.integers(0, 400))
def test_shifts_and_lengths_are_pythons(a, n):
    x = f"bigInt('{a}')"
    assert js(f"{x}.shiftLeft({n})") == str(a << n)
    assert js(f"{x}.shiftRight({n})") == str(a >> n)
    assert js(f"{x}.not()") == str(~a)
    length = a.bit_length() if a >= 0 else (-a - 1).bit_length()
    assert js(f"{x}.bitLength()") == str(length)


@given(integers)
def test_text_in_any_base_comes_back(a):
    for base in (2, 8, 10, 16, 36):
        assert js(f"bigInt(bigInt('{a}').toString({base}), {base})") == str(a)
    assert js(f"bigInt('{a}').toString(16)") == format(a, "x")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("bigInt()", "0"),
        ("bigInt('1e3')", "1000"),
        ("bigInt('+5')", "5"),
        ("bigInt('0x10')", "16"),
        ("bigInt('FF', 16)", "255"),
        ("bigInt('-101', 2)", "-5"),
        ("bigInt('ba', 3, 'abc')", "3"),
        ("bigInt(7n)", "7"),
        ("bigInt(bigInt(7))", "7"),
        ("bigInt(2).pow(256).toString(16)", "1" + "0" * 64),
        ("bigInt(2).pow(-1)", "0"),
        ("bigInt(-1).pow(-3)", "-1"),
        ("bigInt(3).modPow(200, 13)", str(pow(3, 200, 13))),
        ("bigInt(3).modInv(11)", "4"),
        ("bigInt.gcd(42, 56)", "14"),
        ("bigInt.lcm(21, 6)", "42"),
        ("bigInt.max(3, 5)", "5"),
        ("bigInt.fromArray([1, 2, 3])", "123"),
        ("bigInt(123).toArray(10)", {"value": [1, 2, 3], "isNegative": False}),
        ("bigInt(12).divmod(5)", {"quotient": "2", "remainder": "2"}),
        ("bigInt(3) + bigInt(4)", 7),
        ("'' + bigInt(3)", "3"),
        ("bigInt(3) < 4", True),
        ("bigInt('9007199254740993').toJSNumber()", 2**53),
        ("bigInt(473160 * 999980301174)", "473150679303489860"),
        ("bigInt(-(2 ** 90))", "-1237940039285380300000000000"),
        ("bigInt(0).isZero()", True),
        ("bigInt(6).isDivisibleBy(4)", False),
        ("bigInt(-7).abs().isOdd()", True),
        ("bigInt.isInstance(bigInt(1)) && !bigInt.isInstance(1)", True),
        ("bigInt(1) instanceof bigInt", True),
        ("bigInt(5).compare(Infinity)", -1),
        ("typeof bigInt(1)", "object"),
    ],
)
def test_the_librarys_ways(expression, expected):
    assert js(expression) == expected


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("bigInt('x')", "Invalid integer: x"),
        ("bigInt('')", "Invalid integer: "),
        ("bigInt('1.5')", "Invalid integer: 1.5"),
        ("bigInt(1.5)", "1.5 is not an integer."),
        ("bigInt('12', 2)", "2 is not a valid digit in base 2."),
        ("bigInt('1#', 16)", "# is not a valid character"),
        ("bigInt(1).divide(0)", "Cannot divide by zero"),
        ("bigInt(2).modInv(4)", "2 and 4 are not co-prime"),
    ],
)
def test_errors_are_the_librarys(expression, text):
    found = js(
        f"(() => {{ try {{ {expression} }} catch (e) {{ return e.message }} }})()"
    )
    assert found == text
