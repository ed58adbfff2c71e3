"""Environment variables are parsed. Errors contain their names."""

from __future__ import annotations

import pytest

from config import env

NAME = "PORTCULLIS_TEST"


def variable(parse, default=None):
    return env.Variable(NAME, parse, default, "A variable for tests.")


@pytest.mark.parametrize("given", [None, ""])
def test_an_unset_or_empty_variable_has_its_default(monkeypatch, given):
    if given is not None:
        monkeypatch.setenv(NAME, given)
    assert variable(env.text, "default").value() == "default"
    assert variable(env.integer, 7).value() == 7
    assert variable(env.boolean, True).value() is True
    assert variable(env.count).value() is None


@pytest.mark.parametrize(
    ("parse", "given", "value"),
    [
        (env.boolean, "1", True),
        (env.boolean, "true", True),
        (env.boolean, "Yes", True),
        (env.boolean, "ON", True),
        (env.boolean, "off", False),
        (env.boolean, "No", False),
        (env.integer, "-3", -3),
        (env.count, "1", 1),
        (env.size, "0", 0),
        (env.duration, "0.5", 0.5),
        (env.words, " a.example, b.example ,,", ["a.example", "b.example"]),
        (env.Choice("text", "json"), "json", "json"),
    ],
)
def test_a_value_is_parsed(monkeypatch, parse, given, value):
    monkeypatch.setenv(NAME, given)
    assert variable(parse).value() == value


@pytest.mark.parametrize(
    ("parse", "given", "message"),
    [
        (env.boolean, "flase", "must be on or off, not 'flase'"),
        (env.integer, "many", "must be an integer, not 'many'"),
        (env.count, "0", "must be 1 or more, not 0"),
        (env.count, "-1", "must be 1 or more, not -1"),
        (env.count, "2.5", "must be an integer, not '2.5'"),
        (env.size, "-1", "must be 0 or more, not -1"),
        (env.duration, "0", "must be a number above 0, not '0'"),
        (env.duration, "nan", "must be a number above 0, not 'nan'"),
        (env.duration, "inf", "must be a number above 0, not 'inf'"),
        (env.duration, "soon", "must be a number above 0, not 'soon'"),
        (env.Choice("text", "json"), "xml", "must be one of text, json, not 'xml'"),
    ],
)
def test_an_invalid_value_is_reported_with_its_name(monkeypatch, parse, given, message):
    monkeypatch.setenv(NAME, given)
    with pytest.raises(env.InvalidSetting) as caught:
        variable(parse).value()
    assert str(caught.value) == f"{NAME} {message}"
