from __future__ import annotations

import pytest

from config import env


def test_an_empty_variable_counts_as_unset(monkeypatch):
    monkeypatch.setenv("PORTCULLIS_TEST", "")
    assert env.text("PORTCULLIS_TEST", "default") == "default"
    assert env.integer("PORTCULLIS_TEST", 7) == 7
    assert env.boolean("PORTCULLIS_TEST", True) is True
    assert env.given(PORTCULLIS_TEST=int) == {}


@pytest.mark.parametrize("value", ["1", "true", "Yes", "ON"])
def test_words_for_true_are_true(monkeypatch, value):
    monkeypatch.setenv("PORTCULLIS_TEST", value)
    assert env.boolean("PORTCULLIS_TEST", False) is True


def test_given_variables_are_read_by_their_readers(monkeypatch):
    monkeypatch.setenv("PORTCULLIS_TEST", "2.5")
    assert env.given(PORTCULLIS_TEST=float, PORTCULLIS_OTHER=int) == {
        "PORTCULLIS_TEST": 2.5
    }


def test_a_wrong_value_is_reported_with_its_name(monkeypatch):
    monkeypatch.setenv("PORTCULLIS_TEST", "many")
    with pytest.raises(ValueError, match="PORTCULLIS_TEST must be an integer"):
        env.integer("PORTCULLIS_TEST", 1)
    with pytest.raises(ValueError, match="PORTCULLIS_TEST: invalid literal"):
        env.given(PORTCULLIS_TEST=int)


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        (env.count, "0"),
        (env.count, "-1"),
        (env.count, "2.5"),
        (env.size, "-1"),
        (env.duration, "0"),
        (env.duration, "nan"),
        (env.duration, "inf"),
    ],
)
def test_a_number_with_which_nothing_would_go_on_is_reported(
    monkeypatch, reader, value
):
    monkeypatch.setenv("PORTCULLIS_TEST", value)
    with pytest.raises(env.InvalidSetting, match=r"^PORTCULLIS_TEST: "):
        env.given(PORTCULLIS_TEST=reader)


def test_numbers_are_read_as_they_are_meant():
    assert (env.count("1"), env.size("0"), env.duration("0.5")) == (1, 0, 0.5)


def test_words_are_separated_by_commas(monkeypatch):
    monkeypatch.setenv("NAMES", " a.example, b.example ,,")
    assert env.words("NAMES") == ["a.example", "b.example"]
    monkeypatch.setenv("NAMES", "")
    assert env.words("NAMES", "*") == ["*"]


def test_one_of_few_values_is_one_of_them(monkeypatch):
    monkeypatch.setenv("KIND", "json")
    assert env.one_of("KIND", "text", "json") == "json"
    monkeypatch.setenv("KIND", "xml")
    with pytest.raises(env.InvalidSetting, match="KIND must be one of text, json"):
        env.one_of("KIND", "text", "json")
