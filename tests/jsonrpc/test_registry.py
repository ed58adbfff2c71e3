from __future__ import annotations

import pytest

from jsonrpc.registry import MethodRegistry


def test_methods_are_found_by_name_in_their_order():
    registry = MethodRegistry()

    @registry.method("b", result={}, summary="B.")
    def b(context):
        return None

    @registry.method("a", result={}, summary="A.", credits=5, capability="trace")
    def a(context):
        return None

    assert [method.name for method in registry] == ["b", "a"]
    found = registry.find("a")
    assert found is not None
    assert (found.handler, found.credits, found.capability) == (a, 5, "trace")
    assert registry.find("c") is None


def test_name_is_registered_once():
    registry = MethodRegistry()
    register = registry.method("a", result={}, summary="A.")
    register(lambda context: None)
    with pytest.raises(ValueError, match="a is registered twice"):
        register(lambda context: None)
