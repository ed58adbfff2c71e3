from __future__ import annotations

import sys
from typing import Any

import pytest

from jsonrpc.source import BatchSource, argument, elements, members
from tests.jsonrpc.support import told


def test_parts_are_as_they_were_sent() -> None:
    array = ' [ 1.0 ,"a\\u00e9,]", {"b" : [ ] },\t-2e+3,null]'
    assert [*elements(array)] == [
        "1.0",
        '"a\\u00e9,]"',
        '{"b" : [ ] }',
        "-2e+3",
        "null",
    ]
    assert [*elements(" [ ] ")] == []
    found = [*members(' {"a" : 1 , "\\u0062":{"}":"{"},"a":[1 ,2] }')]
    assert found == [("a", "1"), ("b", '{"}":"{"}'), ("a", "[1 ,2]")]
    assert [*members("{}")] == []
    assert [*elements("[" + "9" * 5000 + "]")] == ["9" * 5000]


def test_the_last_of_repeated_params_counts() -> None:
    message = '{"params":[1], "params" : [2, {"x":  3} ]}'
    assert argument(lambda: message, 1) == '{"x":  3}'


def test_what_is_nested_too_deeply_has_no_text() -> None:
    # The deepest nesting that can be parsed. If the EVM has raised Python's recursion
    # limit, that is not too deep.
    nested = "[" * 1024 + "]" * 1024
    message = f'{{"params":[{nested}]}}'
    assert argument(lambda: message, 0) in (None, nested)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(500)
    try:
        assert argument(lambda: message, 0) is None
        assert BatchSource(f"[{message}]".encode()).message(0) is None
    finally:
        sys.setrecursionlimit(limit)
    assert argument(lambda: None, 0) is None


@pytest.mark.parametrize("text", ['{"a": 1.0}', "[1 ,2]", '"x"', "1e3"])
def test_a_decoder_that_reads_the_text_is_given_its_argument_as_sent(text: str) -> None:
    def call(number: int) -> str:
        params = f"[ 0, {text} ]"
        return f'{{"id":{number},"params":{params},"method":"echo","jsonrpc":"2.0"}}'

    def answer(number: int) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": number, "result": text}

    assert told(call(1).encode()) == answer(1)
    batch = f"[{call(1)} , 5, {call(2)}]".encode()
    first, _, second = told(batch)
    assert (first, second) == (answer(1), answer(2))
