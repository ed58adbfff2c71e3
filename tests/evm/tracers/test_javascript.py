"""The data that a JavaScript tracer gets about a transaction and its failure."""

import pytest

from evm.tracers.steps import TracerError
from tests.support.programs import ALICE, CONTRACT, OTHER, trace_call

PUSHES = "6001 6000 00"
"""PUSH1 1, PUSH1 0, STOP, as in geth's tests."""
STORE8 = "60ff 6000 53 00"


def each_step(expression, prelude=""):
    """Return a tracer that collects an expression's value at each instruction."""
    return (
        f"{{ found: [], step: function(log, db) {{ {prelude} this.found.push("
        f"{expression}); }}, fault: function() {{}}, "
        "result: function() { return this.found; } }"
    )


def in_the_end(expression):
    """Return a tracer whose result is an expression's value."""
    return (
        "{ fault: function() {}, "
        f"result: function(ctx, db) {{ return {expression}; }} }}"
    )


def failure(tracer, code=PUSHES, **options):
    with pytest.raises(TracerError) as raised:
        trace_call(tracer, code, **options)
    return str(raised.value)


def indexed(data):
    return {str(index): byte for index, byte in enumerate(data)}


def test_log_shows_the_instruction():
    found = trace_call(
        each_step(
            "[log.getPC(), log.op.toString(), log.op.toNumber(), log.op.isPush(),"
            " log.getGas(), log.getCost(), log.getDepth(), log.getRefund(),"
            " log.getError() === undefined]"
        ),
        PUSHES,
        gas=50_000,
    )
    assert found == [
        [0, "PUSH1", 0x60, True, 29_000, 3, 1, 0, True],
        [2, "PUSH1", 0x60, True, 28_997, 3, 1, 0, True],
        [4, "STOP", 0x00, False, 28_994, 0, 1, 0, True],
    ]


def test_push0_is_a_push():
    assert trace_call(each_step("log.op.isPush()"), "5f") == [True]


def test_gas_beyond_31_bits_is_exact():
    """Integers of quickjs have 32 bits."""
    size = 2**25 - 10**6
    assert trace_call(each_step("log.getGas()"), "00", gas=size) == [size - 21_000]
    overpriced = each_step("log.getCost()")
    # MSTORE far beyond any affordable memory size.
    costs = trace_call(overpriced, "6001 64 0fffffffff 52")
    assert costs[-1] > 2**32


def test_stack_gives_big_integers_from_the_top():
    tracer = each_step("[log.stack.length(), log.stack.peek(0), log.stack.peek(1)]")
    word = "ff" * 32
    found = trace_call(
        tracer.replace("step: function(log, db) {", "step: function(log) {"
                       " if (log.stack.length() < 2) return;"),
        f"6005 7f {word} 00",
    )  # fmt: skip
    assert found == [[2, str(2**256 - 1), "5"]]


def test_memory_is_padded_and_has_words():
    tracer = each_step(
        "[log.memory.length(), log.memory.slice(0, 2), log.memory.slice(31, 33),"
        " log.memory.getUint(0)]",
        "if (log.op.toString() !== 'STOP') return;",
    )
    word = 0xFF << 248
    assert trace_call(tracer, STORE8) == [
        [32, indexed([255, 0]), indexed([0, 0]), str(word)]
    ]
    assert trace_call(each_step("log.memory.slice(7, 7)"), "00") == [{}]


def test_contract_object_describes_the_call():
    tracer = each_step(
        "[toHex(log.contract.getCaller()), toHex(log.contract.getAddress()),"
        " log.contract.getValue(), toHex(log.contract.getInput())]"
    )
    found = trace_call(tracer, "00", data=b"\x01\x02", value=7)
    assert found == [["0x" + ALICE.address.hex(), "0x" + CONTRACT.hex(), "7", "0x0102"]]


def test_db_shows_the_state_of_the_moment():
    tracer = each_step(
        "[db.getBalance(self), db.getNonce(self), toHex(db.getCode(self)),"
        " toHex(db.getState(self, toWord('0x01'))), db.exists(self),"
        " db.exists(toAddress('0xdead'))]",
        "var self = log.contract.getAddress();"
        " if (log.op.toString() !== 'STOP') return;",
    )
    code = "602a 6001 55 00"
    assert trace_call(tracer, code, value=1) == [
        [
            str(0x64 + 1),
            0,
            "0x" + code.replace(" ", ""),
            "0x" + "2a".rjust(64, "0"),
            True,
            False,
        ]
    ]


def test_ctx_describes_the_transaction():
    texts = "ctx.type, toHex(ctx.from), toHex(ctx.to), toHex(ctx.input)"
    found = trace_call(
        in_the_end(
            f"[{texts}, ctx.gas, ctx.gasUsed, ctx.gasPrice + '.' + ctx.value,"
            " ctx.block, ctx.txIndex, toHex(ctx.output), ctx.error === undefined,"
            " toHex(ctx.txHash).length, toHex(ctx.blockHash).length, "
            " ctx.intrinsicGas === undefined]"
        ),
        "60aa 6000 53 6001 6000 f3",
        value=5,
        gas=60_000,
    )
    assert found == [
        "CALL", "0x" + ALICE.address.hex(), "0x" + CONTRACT.hex(), "0x",
        60_000, 21_000 + 3 * 4 + 3 + 3, "99125000000.5",
        1, 0, "0xaa", True, 66, 66, True,
    ]  # fmt: skip


def test_ctx_describes_a_creation_and_an_error():
    kind = in_the_end("[ctx.type, toHex(ctx.input), ctx.to.length, ctx.error]")
    found = trace_call(kind, to=b"", data=b"\xfe", gas=80_000)
    assert found == ["CREATE", "0xfe", 20, "invalid opcode: INVALID"]


def test_all_frames_except_the_outermost_are_reported():
    """The code makes a CALL with 3 wei to OTHER, which fails, and a STATICCALL."""
    tracer = """{
      found: [],
      enter: function(frame) {
        this.found.push([frame.getType(), toHex(frame.getFrom()), toHex(frame.getTo()),
          toHex(frame.getInput()), frame.getGas(), frame.getValue()]);
      },
      exit: function(result) {
        this.found.push([result.getGasUsed(), toHex(result.getOutput()),
          result.getError()]);
      },
      fault: function() {},
      result: function() { return this.found; }
    }"""
    call = f"6000 6000 6002 6000 6003 73{OTHER.hex()} 61 1000 f1 50"
    static = f"6000 6000 6000 6000 73{'00' * 19}04 61 1000 fa 00"
    found = trace_call(tracer, call + static, codes={OTHER: "fe"})
    us, them = "0x" + CONTRACT.hex(), "0x" + OTHER.hex()
    gas = 0x1000 + 2300
    assert found == [
        ["CALL", us, them, "0x0000", gas, "3"],
        [gas, "0x", "invalid opcode: INVALID"],
        ["STATICCALL", us, "0x" + "00" * 19 + "04", "0x", 0x1000, None],
        [15, "0x", None],
    ]


def test_fault_is_called_with_its_reason():
    tracer = (
        "{ steps: 0, found: [], step: function() { this.steps++; },"
        " fault: function(log) { this.found.push(log.getPC(), log.getError()); },"
        " result: function() { return [this.steps, this.found]; } }"
    )
    assert trace_call(tracer, "6003 56") == [2, [2, "invalid jump destination"]]
    # The same holds without `step`, if `fault` does something.
    quiet = tracer.replace("step: function() { this.steps++; },", "")
    # `log` then only has the error, because geth sets the other fields for `step`.
    assert trace_call(quiet, "6003 56") == [0, [0, "invalid jump destination"]]


def test_fault_sees_the_stack_as_it_was_before_the_instruction():
    tracer = (
        "{ step: function() {}, fault: function(log) { const { stack } = log;"
        " this.found = [stack.length(), stack.peek(0), stack.peek(1)].map(Number); },"
        " result: function() { return this.found; } }"
    )
    assert trace_call(tracer, "60aa 60bb 6020 6000 fd") == [4, 0, 32]


def test_setup_gets_the_config_as_text():
    tracer = (
        "{ setup: function(config) { this.config = config; }, fault: function() {},"
        " result: function() { return [this.config, JSON.parse(this.config).a]; } }"
    )
    assert trace_call(tracer, "00", config='{"a": 1}') == ['{"a": 1}', 1]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("toHex([1, 2])", "0x0102"),
        ("toWord('0xffaa')", indexed([0] * 30 + [255, 170])),
        ("toAddress('0x' + '11'.repeat(32))", indexed([17] * 20)),
        ("toAddress(new String('0x1'))", indexed([0] * 19 + [1])),
        ("toAddress(Array.prototype.slice.call(ctx.to)).length", 20),
        ("slice(ctx.to, 0, 2)", indexed([0x77, 0x77])),
        ("isPrecompiled(toAddress('0x09'))", True),
        ("isPrecompiled(toAddress('0x0a'))", False),
        (
            "toHex(toContract('0x6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0', 1))",
            "0x343c43a37d37dff08ae8c4a11544c718abb4fcf8",
        ),
        (  # The second example of EIP-1014.
            "toHex(toContract2('0xdeadbeef00000000000000000000000000000000',"
            " '0x00', '0x00'))",
            "0xb928f69bb1d91cd65274e3c79d8986362984fda3",
        ),
        ("bigInt(5).add('7')", "12"),
        ("({a: undefined, b: [undefined, NaN], c: 'ü<\\u0000'})",
         {"b": [None, None], "c": "ü<\x00"}),
        ("'\\ud800'", "\ud800"),
        ("undefined", {}),
        ("null", {}),
        ("Symbol.iterator", {}),
        ("[undefined, null, NaN]", [None, None, None]),
        ("new Uint8Array([1, 2])", indexed([1, 2])),
    ],
)  # fmt: skip
def test_globals_and_json(expression, expected):
    assert trace_call(in_the_end(expression), "00") == expected


STEP = "    in server-side tracer function 'step'"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("log.memory.slice(-1, -2)",
         "tracer accessed out of bound memory: offset -1, end -2"),
        ("log.stack.peek(-1)", "tracer accessed out of bound stack: size 0, index -1"),
        ("log.stack.peek(3)", "tracer accessed out of bound stack: size 0, index 3"),
        ("log.memory.getUint(-64)",
         "tracer accessed out of bound memory: available 0, offset -64, size 32"),
        ("log.memory.slice(5, 1025 * 1024)",
         "reached limit for padding memory slice: 1049600"),
        ("slice([1, 2, 3], 1, 9)",
         "Tracer accessed out of bound memory: available 3, offset 1, size 8"),
        ("toHex('0x01')", "invalid buffer type"),
        ("db.getBalance('0x01')", "invalid buffer type"),
        ("missing", "ReferenceError: missing is not defined"),
        ("bigInt('x1')", "Error: Invalid integer: x1"),
    ],
)  # fmt: skip
def test_failures_have_geths_texts(expression, text):
    found = failure(each_step(expression))
    assert found.startswith(text + " at step (<eval>:1:")
    assert found.endswith(STEP)


def test_padding_counts_from_the_end_of_memory():
    tracer = each_step(
        "log.memory.slice(5, 1025 * 1024)",
        "if (log.op.toString() !== 'STOP') return;",
    )
    assert "padding memory slice: 1049568 at step" in failure(tracer, STORE8)


def test_a_bound_can_not_be_overstepped_by_catching():
    tracer = each_step("1", "try { log.stack.peek(9) } catch (error) {}")
    assert failure(tracer).startswith("tracer accessed out of bound stack: size 0")


def test_a_position_is_that_of_the_tracers_own_line():
    tracer = "{\n  step: function(log) {\n    log.stack.peek(9);\n  },\n fault(){}, result(){} }"
    assert "index 9 at step (<eval>:3:" in failure(tracer)


@pytest.mark.parametrize(
    ("tracer", "text"),
    [
        ("{ fault: function() {} }", "trace object must expose a function result()"),
        ("{ result: function() {} }", "trace object must expose a function fault()"),
        ("{ fault(){}, result(){}, enter(){} }",
         "trace object must expose either both or none of enter() and exit()"),
        ("{ fault(){}, result(){}, exit(){} }",
         "trace object must expose either both or none of enter() and exit()"),
        ("nonesuchTracer", "ReferenceError: nonesuchTracer is not defined at <eval>:1:2"),
        ("", "SyntaxError: unexpected token in expression: ')' at <eval>:1:2"),
        ("{ setup: function() { throw new Error('no') }, fault(){}, result(){} }",
         "Error: no at setup (<eval>:1:34)"),
    ],
)  # fmt: skip
def test_what_is_no_tracer_is_refused(tracer, text):
    assert failure(tracer) == text


@pytest.mark.parametrize("hook", ["step", "enter", "exit", "fault", "result"])
def test_a_throw_names_the_function(hook):
    hooks = dict.fromkeys(("step", "enter", "exit", "fault", "result"), "")
    hooks[hook] = "throw new Error('boo')"
    written = [f"{name}: function() {{ {body} }}" for name, body in hooks.items()]
    tracer = "{" + ", ".join(written) + "}"
    call = f"6000 6000 6000 6000 6000 73{OTHER.hex()} 61 1000 f1 fe"
    found = failure(tracer, call, codes={OTHER: "00"})
    assert found.startswith(f"Error: boo at {hook} (<eval>:1:")
    assert found.endswith(f"    in server-side tracer function '{hook}'")


def test_each_transaction_has_a_context_of_its_own():
    counting = in_the_end("globalThis.count = (globalThis.count || 0) + 1")
    assert [trace_call(counting, "00") for _ in range(2)] == [1, 1]


def test_an_empty_contract_exists_until_eip_161_and_with_a_nonce_after_it():
    untouched = "toAddress('0x" + "d1" * 20 + "')"
    asked = in_the_end(f"[db.exists(ctx.to), db.exists({untouched}), ctx.type]")
    for fork in ("homestead", "tangerine_whistle", "spurious_dragon", "osaka"):
        found = trace_call(asked, to=b"", gas=100_000, fork=fork)
        assert found == [True, False, "CREATE"], fork


def test_a_call_without_value_brings_an_account_into_being_until_eip_161():
    nobody = "d1" * 20
    call = f"6000 6000 6000 6000 6000 73{nobody} 61ffff f1 50 00"
    asked = in_the_end(f"[db.getBalance(toAddress('0x{nobody}')).toString(),"
                       f" db.exists(toAddress('0x{nobody}'))]")  # fmt: skip
    assert trace_call(asked, call, fork="homestead") == ["0", True]
    assert trace_call(asked, call, fork="spurious_dragon") == ["0", False]


@pytest.mark.parametrize(
    ("value", "text"), [("0/0", "NaN"), ("1/0", "+Inf"), ("-1/0", "-Inf")]
)
def test_a_number_that_json_lacks_is_gos_error(value, text):
    error = failure(in_the_end(value), "00")
    assert error == f"json: unsupported value: {text}"
