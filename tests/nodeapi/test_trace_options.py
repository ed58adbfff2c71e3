from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from evm.tracers.native import NativeTracer
from evm.tracers.struct_log import StructLogOptions
from jsonrpc.text import Number, parse
from networks.models import Tracer
from nodeapi.encoding import MAX_INDEX
from nodeapi.methods.debug_calls import call_trace_options
from nodeapi.methods.trace_options import (
    DEFAULT,
    BadTracerConfig,
    TraceOptions,
    trace_options,
)
from nodeapi.tracing.jobs import JavaScriptProgram, OpcodeTracer, TraceJob, TracerGroup


def tracer(name, config=None):
    return trace_options({"tracer": name, "tracerConfig": config}).tracer


@pytest.mark.parametrize("value", [None, {}, {"tracer": None}, {"reexec": "0x80"}])
def test_struct_logger_is_the_default(value):
    assert trace_options(value) == DEFAULT == TraceOptions(StructLogOptions())
    assert DEFAULT.names == ("structLog",)


def test_struct_logger_shows_what_its_options_select():
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
    assert trace_options(value) == TraceOptions(shown, timeout=60.0)


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
    without = trace_options({"tracer": "muxTracer"})
    assert without.tracer == NativeTracer("muxTracer")


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
    config |= {"4byteTracer": None, "prestateTracer": None, "erc7562Tracer": None}
    config |= {"keccak256PreimageTracer": None, "{}": None}
    inner = {"noopTracer": None, "muxTracer": config}
    for members in (config, inner):
        used = trace_options({"tracer": "muxTracer", "tracerConfig": members}).names
        assert {*used, "structLog"} == set(Tracer.values)


def test_mux_of_native_tracers_is_made_of_records_however_deep():
    config = {"muxTracer": {"callTracer": None}, "noopTracer": {}}
    options = trace_options({"tracer": "muxTracer", "tracerConfig": config})
    inner = NativeTracer("muxTracer", inner=(NativeTracer("callTracer"),))
    expected = NativeTracer("muxTracer", inner=(inner, NativeTracer("noopTracer")))
    assert options.tracer == expected
    assert options.names == ("muxTracer", "muxTracer", "callTracer", "noopTracer")
    empty = trace_options({"tracer": "muxTracer", "tracerConfig": None})
    assert empty.tracer == NativeTracer("muxTracer")


def test_mux_with_a_tracer_that_executes_is_a_group():
    config = {"{}": {"a": 1}, "callTracer": None, "erc7562Tracer": {"withLog": True}}
    options = trace_options({"tracer": "muxTracer", "tracerConfig": config})
    expected = TracerGroup(
        (
            ("callTracer", NativeTracer("callTracer")),
            ("erc7562Tracer", OpcodeTracer("erc7562Tracer", with_log=True)),
            ("{}", JavaScriptProgram("{}", '{"a":1}')),
        )
    )
    assert options.tracer == expected
    job = TraceJob(network_id=1, block_hash=bytes(32), tracer=expected, timeout=1.0)
    assert TraceJob.decode(job.encode()) == job


def test_mux_is_nested_sixteen_times_at_most():
    config = None
    for _ in range(16):
        config = {"muxTracer": config}
    with pytest.raises(
        BadTracerConfig, match=r"muxTracer is nested more than 16 times"
    ):
        trace_options({"tracer": "muxTracer", "tracerConfig": config})


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
def test_value_of_a_wrong_type_has_gos_error_text(value, told):
    with pytest.raises(ValueError) as caught:
        trace_options(value)
    assert str(caught.value) == f"json: cannot unmarshal {told}"


def test_options_of_a_traced_call_are_named_with_their_struct():
    with pytest.raises(ValueError) as caught:
        call_trace_options({"tracer": 5, "txIndex": "0x0"})
    path = "TraceCallConfig.TraceConfig.Tracer"
    told = f"json: cannot unmarshal number into Go struct field {path} of type string"
    assert str(caught.value) == told


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
    ],
)
def test_invalid_option_is_an_error(value, told):
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
            {"tracer": "prestateTracer", "tracerConfig": 1},
            "json: cannot unmarshal number into Go value of type "
            "native.PrestateTracerConfig",
        ),
        (
            {"tracer": "prestateTracer", "tracerConfig": {"diffMode": "x"}},
            "json: cannot unmarshal string into Go struct field "
            "PrestateTracerConfig.diffMode of type bool",
        ),
        (
            {
                "tracer": "prestateTracer",
                "tracerConfig": {"diffMode": True, "includeEmpty": True},
            },
            "cannot use diffMode with includeEmpty",
        ),
        (
            {"tracer": "muxTracer", "tracerConfig": []},
            "json: cannot unmarshal array into Go value of type "
            "map[string]json.RawMessage",
        ),
        (
            {"tracer": "muxTracer", "tracerConfig": {"muxTracer": 1}},
            "json: cannot unmarshal number into Go value of type "
            "map[string]json.RawMessage",
        ),
        (
            {"tracer": "muxTracer", "tracerConfig": dict.fromkeys(map(str, range(17)))},
            "muxTracer takes at most 16 JavaScript tracers",
        ),
        (
            {"tracer": "erc7562Tracer", "tracerConfig": []},
            "json: cannot unmarshal array into Go value of type "
            "native.erc7562TracerConfig",
        ),
        (
            {"tracer": "erc7562Tracer", "tracerConfig": {"ignoredOpcodes": "0x1"}},
            "json: cannot unmarshal string into Go struct field "
            "erc7562TracerConfig.ignoredOpcodes of type []hexutil.Uint64",
        ),
        (
            {"tracer": "erc7562Tracer", "tracerConfig": {"ignoredOpcodes": ["0x01"]}},
            "json: cannot unmarshal hex number with leading zero digits into Go struct "
            "field erc7562TracerConfig.ignoredOpcodes of type hexutil.Uint64",
        ),
        (
            {"tracer": "erc7562Tracer", "tracerConfig": {"ignoredOpcodes": [None]}},
            "json: cannot unmarshal non-string into Go struct field "
            "erc7562TracerConfig.ignoredOpcodes of type hexutil.Uint64",
        ),
        (
            {"tracer": "erc7562Tracer", "tracerConfig": {"stackTopItemsSize": -1}},
            "stackTopItemsSize is negative",
        ),
    ],
)
def test_option_that_a_tracer_rejects_is_a_separate_error(value, told):
    with pytest.raises(BadTracerConfig) as caught:
        trace_options(value)
    assert (caught.value.code, caught.value.message) == (-32000, told)


SENT = '{"a": 1.0,  "b":[1e3, 123456789012345678901234567890], "a":"\\u00e9"}'


@pytest.mark.parametrize("config", [SENT, "null", '"x y"', "[1 , 2]", " 5 ".strip()])
def test_a_programs_config_is_the_text_that_was_sent(config):
    text = f'{{"tracer":"{{}}", "TracerConfig" : {config} }}'
    options = trace_options(parse(text.encode()), lambda: text)
    assert options.tracer == JavaScriptProgram("{}", config)
    again = text.replace(config, '{"other": 1}')
    assert trace_options(parse(again.encode()), lambda: again).tracer.config == (
        '{"other": 1}'
    )


def test_programs_in_a_mux_get_their_own_texts():
    inner = f'{{"{{}}":{SENT}, "callTracer":{{"withLog": true}}}}'
    text = f'{{"tracer":"muxTracer","tracerConfig":{{"muxTracer": {inner}}}}}'
    ((name, group),) = trace_options(parse(text.encode()), lambda: text).tracer.members
    assert name == "muxTracer"
    assert dict(group.members) == {
        "callTracer": NativeTracer("callTracer", frozenset({"withLog"})),
        "{}": JavaScriptProgram("{}", SENT),
    }


def test_a_program_without_a_config_gets_an_empty_one():
    text = '{"tracer":"{}"}'
    options = trace_options(parse(text.encode()), lambda: text)
    assert options.tracer == JavaScriptProgram("{}", "{}")
    unknown = trace_options({"tracer": "{}", "tracerConfig": {"a": 1.0}}, lambda: None)
    assert unknown.tracer == JavaScriptProgram("{}", '{"a":1.0}')


def test_an_error_shows_a_number_as_it_was_sent() -> None:
    text = '{"limit": 100000000000000000000}'
    with pytest.raises(ValueError, match="number 100000000000000000000 into"):
        trace_options({"limit": 1e20}, lambda: text)
