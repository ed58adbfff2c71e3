from __future__ import annotations

import pytest

from jsonrpc.text import Number
from nodeapi.go.decoding import Field, duration, struct

FIELDS = {
    "name": Field("T.Name", "string"),
    "limit": Field("T.Config.Limit", "int"),
    "isOn": Field("T.Config.IsOn", "bool"),
    "raw": Field("T.Raw"),
}


def test_members_are_found_whatever_their_capitals():
    given = {"NAME": "a", "ison": True, "lImIt": -5, "raw": [1], "other": {}}
    found = {"name": "a", "isOn": True, "limit": -5, "raw": [1]}
    assert struct(given, "T", FIELDS) == found


def test_last_of_two_spellings_counts():
    assert struct({"name": "a", "Name": "b"}, "T", FIELDS) == {"name": "b"}


def test_null_is_absent():
    assert struct(None, "T", FIELDS) == {}
    assert struct({"name": None, "raw": None}, "T", FIELDS) == {}


@pytest.mark.parametrize(
    ("value", "kind"),
    [("x", "string"), (5, "number"), (1.5, "number"), (True, "bool"), ([], "array")],
)
def test_other_values_are_no_object(value, kind):
    with pytest.raises(ValueError) as caught:
        struct(value, "tracers.TraceConfig", FIELDS)
    text = f"json: cannot unmarshal {kind} into Go value of type tracers.TraceConfig"
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"name": 5}, "number into Go struct field T.Name of type string"),
        ({"name": {}}, "object into Go struct field T.Name of type string"),
        ({"isOn": "true"}, "string into Go struct field T.Config.IsOn of type bool"),
        ({"isOn": 1}, "number into Go struct field T.Config.IsOn of type bool"),
        ({"limit": "1"}, "string into Go struct field T.Config.Limit of type int"),
        ({"limit": True}, "bool into Go struct field T.Config.Limit of type int"),
        ({"limit": 1.5}, "number 1.5 into Go struct field T.Config.Limit of type int"),
        (
            {"limit": Number("1e3")},
            "number 1e3 into Go struct field T.Config.Limit of type int",
        ),
        (
            {"limit": 2**63},
            f"number {2**63} into Go struct field T.Config.Limit of type int",
        ),
    ],
)
def test_member_of_another_type_is_an_error(value, told):
    with pytest.raises(ValueError) as caught:
        struct(value, "T", FIELDS)
    assert str(caught.value) == f"json: cannot unmarshal {told}"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("0", 0), ("5s", 5), ("300ms", 0.3), ("1m30s", 90), ("1.5h", 5400)),
        *(("-2s", -2), ("+2s", 2), (".5s", 0.5), ("1.s", 1), ("-0", 0)),
        *(("1us", 1e-6), ("1µs", 1e-6), ("1μs", 1e-6), ("7ns", 7e-9)),
        ("0000000000000000000000000000000000000000000000000005s", 5),
        ("0.100000000000000000000000000000000000000000s", 0.1),
        ("2562047h47m16.854775807s", 9223372036.854775807),
    ],
)
def test_duration_is_seconds(text, seconds):
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", 'invalid duration ""'),
        ("-", 'invalid duration "-"'),
        ("s", 'invalid duration "s"'),
        (".s", 'invalid duration ".s"'),
        ("soon", 'invalid duration "soon"'),
        (" 5s", 'invalid duration " 5s"'),
        ("5", 'missing unit in duration "5"'),
        ("1m5", 'missing unit in duration "1m5"'),
        ("5 s", 'unknown unit " s" in duration "5 s"'),
        ("5d", 'unknown unit "d" in duration "5d"'),
        ("5s-3s", 'unknown unit "s-" in duration "5s-3s"'),
        ("1é", r'unknown unit "\xc3\xa9" in duration "1\xc3\xa9"'),
        ('"\\', r'invalid duration "\"\\"'),
        ("2562048h", 'invalid duration "2562048h"'),
        ("9" * 5000 + "s", f'invalid duration "{"9" * 5000}s"'),
        ("0s" * 5001, "invalid duration of 10002 characters"),
    ],
)
def test_invalid_duration_has_gos_error_text(text, told):
    with pytest.raises(ValueError) as caught:
        duration(text)
    assert str(caught.value) == f"time: {told}"
