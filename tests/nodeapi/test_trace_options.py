from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from jsonrpc.text import Number
from networks.models import Tracer
from nodeapi.encoding import MAX_INDEX
from nodeapi.methods.trace_options import (
    DEFAULT,
    BadTracerConfig,
    TraceOptions,
    trace_options,
)
from nodeapi.tracers.native import NativeTracer
from nodeapi.tracers.struct_log import StructLogOptions
from nodeapi.tracing.jobs import JavaScriptProgram


def tracer(name, config=None):
    return trace_options({"tracer": name, "tracerConfig": config}).tracer


@pytest.mark.parametrize("value", [None, {}, {"tracer": None}, {"reexec": "0x80"}])
def test_struct_logger_is_the_default(value):
    assert trace_options(value) == DEFAULT == TraceOptions(StructLogOptions())
    assert DEFAULT.names == ("structLog",)


def test_struct_logger_is_told_what_to_show():
    value = {
        "EnableMemory": True,
        "disablestack": True,
        "disableStorage": True,
        "enableReturnData": True,
        "limit": 7,
        "timeout": "1m",
        "debug": 5,
    }
    shown = StructLogOptions(True, True, True, True, 7)
    assert trace_options(value) == TraceOptions(shown, timeout=60)


@pytest.mark.parametrize(
    ("name", "config", "flags"),
    [
        ("callTracer", None, set()),
        ("callTracer", {"onlyTopCall": True, "withLog": False}, {"onlyTopCall"}),
        ("callTracer", {"WITHLOG": True, "unknown": 5}, {"withLog"}),
        ("flatCallTracer", {"convertParityErrors": True}, {"convertParityErrors"}),
        ("flatCallTracer", {"includePrecompiles": True}, {"includePrecompiles"}),
        (
            "prestateTracer",
            {"diffMode": True, "disableCode": True, "disableStorage": True},
            {"diffMode", "disableCode", "disableStorage"},
        ),
        ("prestateTracer", {"includeEmpty": True}, {"includeEmpty"}),
        ("4byteTracer", "whatever", set()),
        ("noopTracer", [1], set()),
    ],
)
def test_native_tracer_has_the_flags_that_are_on(name, config, flags):
    assert tracer(name, config) == NativeTracer(name, frozenset(flags))


def test_mux_holds_others_in_the_order_of_their_names():
    config = {"prestateTracer": {"diffMode": True}, "4byteTracer": None}
    options = trace_options({"tracer": "muxTracer", "tracerConfig": config})
    inner = (
        NativeTracer("4byteTracer"),
        NativeTracer("prestateTracer", frozenset({"diffMode"})),
    )
    assert options.tracer == NativeTracer("muxTracer", inner=inner)
    assert options.names == ("muxTracer", "4byteTracer", "prestateTracer")


@pytest.mark.parametrize("source", ["", "opcountTracer", "calltracer", "{fault: 1}"])
def test_every_other_name_is_a_program(source):
    options = trace_options({"tracer": source})
    assert options.tracer == JavaScriptProgram(source)
    assert options.names == ("javascript",)


def test_program_gets_its_options_as_they_are():
    config = {"a": [1, None, Number("12345678901234567890123"), {"b": "ä"}]}
    text = '{"a":[1,null,12345678901234567890123,{"b":"ä"}]}'
    assert tracer("{}", config) == JavaScriptProgram("{}", text)


def test_what_is_no_character_is_replaced_as_go_does():
    config = {"a": "\ud800", "b": Number("1.5")}
    program = tracer("'\ud83d' + '\U0001f600'", config)
    source = "'\N{REPLACEMENT CHARACTER}' + '\U0001f600'"
    assert program == JavaScriptProgram(source, '{"a": "\\ud800", "b": 1.5}')


@pytest.mark.parametrize("depth", [200, 300, 900])
def test_depth_is_no_danger(depth):
    config = orjson.loads("[" * depth + "]" * depth)
    try:
        assert orjson.loads(tracer("{}", config).config) == config
    except ValueError as error:
        assert depth > 300 and str(error) == "the options are nested too deeply"


def test_names_are_those_that_networks_offer():
    config = dict.fromkeys(("callTracer", "flatCallTracer", "noopTracer"))
    config |= {"4byteTracer": None, "prestateTracer": None}
    used = trace_options({"tracer": "muxTracer", "tracerConfig": config}).names
    assert {*used, "structLog", "javascript"} == set(Tracer.values)


@pytest.mark.parametrize(
    ("first", "last"), [(2, 5), ("0x2", "0x5"), (0, 0), (3, 2**62), (3, "0xffffffff")]
)
def test_slice_is_of_numbers_or_quantities(first, last):
    options = trace_options({"fromTx": first, "toTx": last})
    as_number = [int(v, 16) if isinstance(v, str) else v for v in (first, last)]
    assert [options.first, options.last] == [min(v, MAX_INDEX) for v in as_number]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("callTracer", "string into Go value of type tracers.TraceConfig"),
        (
            {"tracer": 5},
            "number into Go struct field TraceConfig.Tracer of type string",
        ),
        (
            {"enableMemory": "yes"},
            "string into Go struct field TraceConfig.Config.EnableMemory of type bool",
        ),
        ({"fromTx": True}, "non-string into Go value of type hexutil.Uint"),
        (
            {"toTx": "5"},
            "hex string without 0x prefix into Go value of type hexutil.Uint",
        ),
    ],
)
def test_what_does_not_fit_is_told_in_gos_words(value, told):
    with pytest.raises(ValueError) as caught:
        trace_options(value)
    assert str(caught.value) == f"json: cannot unmarshal {told}"


def test_options_that_are_known_are_the_same_again():
    value = {"tracer": "callTracer", "tracerConfig": {"withLog": True}}
    assert trace_options(value) is trace_options(dict(value))
    assert trace_options({**value, "fromTx": 1}) == replace(
        trace_options(value), first=1
    )
    sources = [f"{{result: {number}}}" for number in range(3000)]
    found = [trace_options({"tracer": source}).tracer.source for source in sources]
    assert found == sources


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"fromTx": 5, "toTx": "0x4"}, "fromTx 5 is greater than toTx 4"),
        ({"fromTx": -1}, "fromTx is negative"),
        ({"limit": -1}, "limit is negative"),
    ],
)
def test_what_makes_no_sense_is_told(value, told):
    with pytest.raises(ValueError) as caught:
        trace_options(value)
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"timeout": "soon"}, 'time: invalid duration "soon"'),
        (
            {"tracer": "callTracer", "tracerConfig": "withLog"},
            "json: cannot unmarshal string into Go value of type native.callTracerConfig",
        ),
        (
            {"tracer": "callTracer", "tracerConfig": {"withLog": 1}},
            "json: cannot unmarshal number into Go struct field "
            "callTracerConfig.withLog of type bool",
        ),
        (
            {
                "tracer": "prestateTracer",
                "tracerConfig": {"diffMode": True, "includeEmpty": True},
            },
            "cannot use diffMode with includeEmpty",
        ),
        ({"tracer": "muxTracer"}, "unexpected end of JSON input"),
        (
            {"tracer": "muxTracer", "tracerConfig": []},
            "json: cannot unmarshal array into Go value of type "
            "map[string]json.RawMessage",
        ),
        (
            {"tracer": "muxTracer", "tracerConfig": {"muxTracer": {}}},
            "muxTracer takes native tracers, and 'muxTracer' is none",
        ),
    ],
)
def test_what_a_tracer_does_not_take_is_an_error_of_its_own(value, told):
    with pytest.raises(BadTracerConfig) as caught:
        trace_options(value)
    assert (caught.value.code, caught.value.message) == (-32000, told)
