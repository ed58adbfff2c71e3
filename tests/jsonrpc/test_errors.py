from __future__ import annotations

import inspect

import pytest

from jsonrpc import errors
from jsonrpc.errors import RpcError, error_classes

OURS = [kind for kind in error_classes() if kind.__module__ == "jsonrpc.errors"]


def test_every_class_of_the_module_is_found():
    defined = [
        member
        for member in vars(errors).values()
        if inspect.isclass(member) and issubclass(member, RpcError)
    ]
    assert set(OURS) == set(defined) - {RpcError}


@pytest.mark.parametrize("kind", OURS)
def test_class_says_when_it_is_raised(kind):
    assert kind.__doc__.startswith("Raised ")
    assert kind.code < 0
    assert kind.http_status in {200, 400, 405, 408, 413, 415, 429, 503}


def test_data_contains_the_reason_and_a_link_to_the_documentation():
    assert errors.BodyTooLarge(5).linked_data("https://node.example") == {
        "reason": "body_too_large",
        "see": "https://node.example/docs/errors#body_too_large",
        "limit": 5,
    }


def test_what_geth_says_comes_without_data():
    assert errors.ParseError().data is None
    assert str(errors.ParseError()) == "parse error"
