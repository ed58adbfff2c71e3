"""Malicious programs: each causes an error for its own transaction only."""

import os
import subprocess
import sys
import time

import pytest

from evm.tracers.javascript import JavaScriptTracer, tracer_source
from evm.tracers.javascript.tracer import MAX_SOURCE_CHARACTERS
from evm.tracers.steps import ExecutionTimeout, TracerError
from tests.support.programs import cpu_time_within, trace_call

SECONDS = 0.1
OVERSHOOT = 5.0
"""Tolerance in seconds, which is much longer than needed, because of other load."""


def stepping(body):
    return f"{{ step: function(log, db) {{ {body} }}, fault(){{}}, result(){{}} }}"


ENDLESS = {
    "loop": "while (true);",
    "loop that catches": "while (true) try { while (true); } catch (e) {} finally {}",
    "loop over the host": "while (true) log.memory.length();",
    "regular expression": "/^(a+)+$/.test('a'.repeat(50) + '!');",
    "recursion": "(function f(n) { if (n) { f(n - 1); f(n - 1); } })(100);",
    "generator": "function* g() { while (true) yield 1; } for (const x of g());",
    "stack trace": "Error.prepareStackTrace = () => null.x; while (true);",
}


@pytest.mark.parametrize("body", ENDLESS.values(), ids=list(ENDLESS))
def test_what_does_not_end_is_stopped_in_time(body):
    tracer = stepping(body)
    with (
        cpu_time_within(SECONDS + OVERSHOOT),
        pytest.raises(ExecutionTimeout, match=r"^execution timeout$"),
    ):
        trace_call(tracer, "00", seconds=SECONDS)


@pytest.mark.parametrize("hook", ["step", "enter", "exit", "fault", "result", "setup"])
def test_every_function_is_stopped(hook):
    hooks = dict.fromkeys(("step", "enter", "exit", "fault", "result"), "")
    hooks[hook] = "while (true);"
    written = [f"{name}() {{ {body} }}" for name, body in hooks.items()]
    call = "6000 6000 6000 6000 6000 6088 61 1000 f1 fe"
    with pytest.raises(ExecutionTimeout):
        trace_call("{" + ", ".join(written) + "}", call, seconds=SECONDS)


def test_the_time_of_all_steps_counts_together():
    """Each step takes milliseconds. The limit applies to their sum."""
    slow = stepping("for (let i = 0; i < 1e5; i++);")
    with pytest.raises(ExecutionTimeout), cpu_time_within(SECONDS + OVERSHOOT):
        trace_call(slow, "5b 6000 56", seconds=SECONDS, gas=10**6)


GREEDY = {
    "array doubling": "let a = [1]; while (true) a = a.concat(a);",
    "1 GB string": "this.a = 'x'.repeat(2 ** 30 - 25);",
    "many strings": "const a = []; while (true) a.push('x'.repeat(1e6) + a.length);",
    "1 GB buffer": "this.a = new Uint8Array(2 ** 30);",
    "deep object": "let a = {}; while (true) a = { a };",
}


@pytest.mark.parametrize("body", GREEDY.values(), ids=list(GREEDY))
def test_what_takes_too_much_memory_fails(body):
    with pytest.raises(TracerError) as raised:
        trace_call(stepping(body), "00")
    text = str(raised.value)
    assert text.startswith("InternalError: out of memory")
    assert text.endswith("    in server-side tracer function 'step'")


def test_deep_recursion_fails():
    with pytest.raises(TracerError, match="Maximum call stack size exceeded at f"):
        trace_call(stepping("(function f() { f(); })();"), "00")
    deep = "{ fault(){}, result() { return (function f(n) { return n && f(n - 1) })(2000) } }"
    assert trace_call(deep, "00") == 0


def test_a_getter_may_do_what_it_likes():
    calls = "{ calls: 0, get step() { this.calls++; return () => this.calls++; },"
    tracer = calls + "fault(){}, result() { return this.calls; } }"
    assert trace_call(tracer, "6000 00") == 3
    with pytest.raises(ExecutionTimeout):
        trace_call("{ get result() { while (true); } }", "00", seconds=SECONDS)


def test_a_long_source_is_refused():
    with (
        cpu_time_within(10),
        pytest.raises(TracerError, match=r"^tracer has 10000000 characters, at most"),
    ):
        JavaScriptTracer(" " * 10**7, "{}", time.monotonic() + 1)
    longest = "{ fault(){}, result(){} }".ljust(MAX_SOURCE_CHARACTERS)
    assert trace_call(longest, "00") == {}


@pytest.mark.parametrize("source", ["\x00", "\ud800", "{\x00}", "'\ud800'.x.y"])
def test_a_source_that_is_no_text_fails(source):
    with pytest.raises(TracerError):
        trace_call(source, "00")


def test_nothing_but_the_language_is_there():
    """The host's functions are not globals either."""
    tracer = (
        "{ fault(){}, result() { return Object.getOwnPropertyNames(globalThis)"
        ".filter((name) => !/^[A-Z]/.test(name)).sort(); } }"
    )
    assert trace_call(tracer, "00") == [
        *("atob", "bigInt", "btoa", "decodeURI", "decodeURIComponent", "encodeURI"),
        *("encodeURIComponent", "escape", "eval", "globalThis", "isFinite", "isNaN"),
        *("isPrecompiled", "parseFloat", "parseInt", "performance", "queueMicrotask"),
        *("slice", "toAddress", "toContract", "toContract2", "toHex", "toWord"),
        *("undefined", "unescape"),
    ]
    absent = "[typeof require, typeof process, typeof std, typeof os, typeof Atomics]"
    found = trace_call(f"{{ fault(){{}}, result() {{ return {absent}; }} }}", "00")
    assert set(found) == {"undefined"}


ODD = {
    "setup that asks": "{ x: isPrecompiled('0x01'), fault(){}, result() { return this.x } }",
    "text that is none": "{ fault(){}, result() { return JSON.rawJSON('\"\\ud800\"') } }",
    "endless numbers": "{ fault(){}, result() { return toContract('0x01', Infinity).length } }",
}


@pytest.mark.parametrize("tracer", ODD.values(), ids=list(ODD))
def test_what_is_odd_is_answered_all_the_same(tracer):
    assert trace_call(tracer, "00") in (False, "\ufffd", 20)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("String.prototype.padStart = () => 'zz'; db.getNonce([1]);", "invalid buffer"),
        (
            "String.prototype.slice = () => '\\ud800'; db.getNonce([1]);",
            "invalid buffer",
        ),
        ("String.prototype.slice = () => 'abc'; db.getNonce([1]);", "invalid argument"),
        ("Math.trunc = Number = () => ({}); log.stack.peek('a');", "tracer accessed"),
        ("throw '\\ud800';", "\ufffd  "),
        ("throw 'x'.repeat(1e6);", "x" * 10_000 + "  "),
    ],
)
def test_what_goes_to_the_host_is_checked(body, text):
    with pytest.raises(TracerError) as raised:
        trace_call(stepping(body), "00")
    assert str(raised.value).startswith(text)


HOSTILE = {
    "errors whose properties call the host": """
      for (const name of ['stack', 'name', 'message', 'toString'])
        Object.defineProperty(Error.prototype, name,
          { get() { log.stack.length(); while (true); } });
      while (true);""",
    "stack traces that are objects": """
      Error.prepareStackTrace = () => ({ toString() { log.stack.length(); } });
      while (true);""",
    "conversions that call the host": """
      Object.prototype[Symbol.toPrimitive] = () => log.stack.length();
      Object.defineProperty(Object.prototype, 'stack',
        { get() { return log.stack.length(); } });
      while (true);""",
    "built-in functions that are others": """
      const call = () => { while (true) log.memory.slice(0, 64); };
      for (const type of [Array, String, RegExp, Function, Uint8Array, Object, JSON])
        for (const owner of [type, type.prototype || {}])
          for (const name of Object.getOwnPropertyNames(owner))
            try { owner[name] = call; } catch (error) {}
      toHex([1]);""",
}
"""A program whose errors are converted to text when Python must not be called any more."""


def test_the_process_survives():
    script = (
        "from tests.support.programs import trace_call\n"
        "from evm.tracers.steps import TracerError\n"
        "import sys\n"
        "for body in sys.argv[1:]:\n"
        "    for _ in range(2):\n"
        "        try: trace_call(body, '00', seconds=0.1)\n"
        "        except TracerError as error: print(error, flush=True)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, *map(stepping, HOSTILE.values())],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    lines = ran.stdout.count("\n")
    assert (ran.returncode, lines) == (0, 2 * len(HOSTILE)), ran.stderr


def test_a_failure_of_the_host_is_not_the_programs():
    """Otherwise an unavailable database would be reported as an error of the tracer."""

    class Broken:
        def get_balance(self, address):
            raise ConnectionError("the database has gone")

    class Transaction:
        state = Broken()

    source = stepping("try { db.getBalance(toAddress('0x01')); } catch (error) {}")
    tracer = JavaScriptTracer(tracer_source(source), "{}", time.monotonic() + 5)
    tracer.start(Transaction())
    with pytest.raises(ConnectionError, match="the database has gone"):
        tracer.step(AnyStep())


class AnyStep:
    pc = op = gas = cost = refund = 0
    depth = 1
