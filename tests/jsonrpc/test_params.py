from __future__ import annotations

import pytest

from jsonrpc.errors import InvalidParams
from jsonrpc.params import Param, Signature
from tests.jsonrpc.support import SUM, call, error, number, told


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"a": 1, "b": 2}, "non-array args"),
        ("text", "non-array args"),
        (0, "non-array args"),
        (False, "non-array args"),
        (None, "missing value for required argument 0"),
        ([], "missing value for required argument 0"),
        ([1], "missing value for required argument 1"),
        ([1, 2, 3, 4], "too many arguments, want at most 3"),
        (["x"], "invalid argument 0: not a number"),
        ([1, "x", "y"], "invalid argument 1: not a number"),
        ([1, 2, "x", 4], "invalid argument 2: not a number"),
        ([None, 2], "missing value for required argument 0"),
        ([1, None, "x"], "missing value for required argument 1"),
        ([1, 2, True], "invalid argument 2: not a number"),
    ],
)
def test_first_fault_is_reported(params, message):
    request = {**call("sum"), "params": params}
    assert told(request) == error(-32602, message)


@pytest.mark.parametrize("params", [[1, 2], [1, 2, None], [1, 2, 100]])
def test_optional_parameter_may_be_absent_or_null(params):
    assert Signature(SUM).decode(params) == [1, 2, 100]


@pytest.mark.parametrize("request_", [call("nothing"), {**call("nothing")}])
def test_method_without_parameters_takes_none(request_):
    assert told(request_)["result"] is None
    for params in (None, []):
        assert told({**request_, "params": params})["result"] is None
    message = "too many arguments, want at most 0"
    assert told({**request_, "params": [None]}) == error(-32602, message)


def test_defaults_are_not_shared_between_calls():
    signature = Signature(SUM)
    signature.decode([1, 2]).append("mine")
    assert signature.decode([1, 2]) == [1, 2, 100]


def test_optional_parameter_stands_behind_required_ones():
    with pytest.raises(ValueError, match="optional"):
        Signature([Param("a", number, required=False), Param("b", number)])


def test_cause_is_kept():
    with pytest.raises(InvalidParams) as caught:
        Signature(SUM).decode(["x"])
    assert isinstance(caught.value.__cause__, ValueError)


def test_the_list_of_the_caller_is_left_as_it_was() -> None:
    params = [1, 2]
    assert Signature(SUM).decode(params) == [1, 2, 100]
    assert params == [1, 2]
