"""A creation whose gas does not suffice for its code, which succeeds in Frontier.

The contract is then created without code. geth's callTracer and erc7562Tracer show a creation that went
well and what its init code returned; the other tracers report the error.
Source: go-ethereum v1.16.7, core/vm/evm.go `captureEnd`; core/vm/instructions.go
`opCreate`; eth/tracers/logger/logger.go and js/goja.go `OnExit`, native/call.go
`processOutput`
"""

import json
import time

import pytest

from evm.tracers.call import call_json
from evm.tracers.erc7562 import Erc7562Tracer
from evm.tracers.javascript import JavaScriptTracer
from evm.tracers.struct_log import StructLogger, StructLogOptions
from tests.support.executed import Account, Chain, replay_of, transaction
from tests.support.random_calls import push

SIZE = 2**14
"""Bytes of code; at 200 gas each they can't be paid for."""
INIT = push(SIZE) + push(0) + b"\xf3"
CODE = "0x" + "00" * SIZE
UNPAID = "contract creation code storage out of gas"

CREATOR = b"\xaa" * 20
CREATE = (
    push(int.from_bytes(INIT.ljust(32, b"\x00"), "big"))
    + push(0)
    + b"\x52"
    + push(len(INIT))
    + push(0)
    + push(0)
    + b"\xf0\x60\x00\x55"
)
"""Creates the contract, and stores its address at slot 0."""

PROGRAM = """{
    ends: [],
    enter: function(frame) {},
    exit: function(end) {
        this.ends.push([end.getError() || null, toHex(end.getOutput()).length]);
    },
    fault: function(log, db) {},
    result: function(ctx, db) {
        return [this.ends, ctx.error || null, toHex(ctx.output).length];
    }
}"""


def struct_log(fork, to, data=b"", accounts=None):
    pieces = []
    logger = StructLogger(StructLogOptions(), pieces.append)
    replay_of(fork, accounts or {}, transaction(0, to, data)).trace(logger, 60)
    pieces.append(logger.result())
    return json.loads(b"".join(pieces))


def program(fork, to, data=b"", accounts=None):
    tracer = JavaScriptTracer(PROGRAM, "{}", time.monotonic() + 60)
    replay_of(fork, accounts or {}, transaction(0, to, data)).trace(tracer, 60)
    return json.loads(tracer.result())


def erc7562(fork, to, data=b"", accounts=None):
    tracer = Erc7562Tracer()
    replay_of(fork, accounts or {}, transaction(0, to, data)).trace(tracer, 60)
    return json.loads(tracer.result())


def test_a_creating_transaction_went_well_for_the_call_tracer_alone():
    chain = Chain("frontier", {})
    top = json.loads(call_json(chain.run(None, INIT)))
    assert "error" not in top
    assert top["output"] == CODE
    made = bytes.fromhex(top["to"][2:])
    assert (chain.world.account_exists(made), chain.world.get_code(made)) == (True, b"")
    found = struct_log("frontier", None, INIT)
    assert (found["failed"], found["returnValue"]) == (True, "0x")
    # The code deposit was not charged.
    assert hex(found["gas"]) == top["gasUsed"]
    assert found["gas"] < 30_000
    assert program("frontier", None, INIT) == [[], UNPAID, len(CODE)]


def test_so_it_is_in_a_call():
    accounts = {CREATOR: Account(0, 1, CREATE)}
    chain = Chain("frontier", accounts)
    (frame,) = chain.run(CREATOR).calls
    assert (frame.error, len(frame.output)) == (None, SIZE)
    assert chain.world.get_storage(CREATOR, 0) == int.from_bytes(frame.to, "big")
    found = struct_log("frontier", CREATOR, accounts=accounts)
    assert (found["failed"], found["returnValue"]) == (False, "0x")
    store = found["structLogs"][-2]
    assert store["op"] == "SSTORE"
    assert int(store["stack"][0], 16) == int.from_bytes(frame.to, "big")
    assert program("frontier", CREATOR, accounts=accounts) == [
        [[UNPAID, len(CODE)]],
        None,
        len("0x"),
    ]


def test_erc7562_tracer_shows_no_error_before_homestead():
    top = erc7562("frontier", None, INIT)
    (call,) = erc7562("frontier", CREATOR, accounts={CREATOR: Account(0, 1, CREATE)})[
        "calls"
    ]
    for created, is_out_of_gas in ((top, False), (call, True)):
        assert created["output"] == CODE
        assert created["to"].startswith("0x")
        assert "error" not in created
        assert created["outOfGas"] is is_out_of_gas
    later = erc7562("homestead", None, INIT)
    assert later["error"] == UNPAID
    assert not later.keys() & {"to", "output"}


@pytest.mark.parametrize("fork", ["homestead", "osaka"])
def test_later_it_is_a_failure_like_any_other(fork):
    top = json.loads(call_json(Chain(fork, {}).run(None, INIT)))
    assert top["error"] == UNPAID
    assert not top.keys() & {"to", "output"}
    found = struct_log(fork, None, INIT)
    assert (found["failed"], found["returnValue"]) == (True, "0x")
    assert found["gas"] == int(top["gas"], 16)
    assert program(fork, None, INIT) == [[], UNPAID, len(CODE)]


def test_code_that_was_paid_for_is_returned():
    init = push(32) + push(0) + b"\xf3"
    found = struct_log("frontier", None, init)
    assert (found["failed"], found["returnValue"]) == (False, "0x" + "00" * 32)
    assert program("frontier", None, init) == [[], None, len("0x") + 64]
