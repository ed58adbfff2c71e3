"""Trace records with damaged bytes cause errors or broken transfers, and no results."""

from __future__ import annotations

import json
import os

import httpx
import pytest
from django.db import connection

from evm.tracers.record import pack
from nodeapi.models import Block, TransactionRecord
from tests.support.live import Api, live_service, request
from tests.support.records import Recorded, add_recorded_block, keccak
from tests.support.rows import hash_of, make_network, set_head
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

DAMAGED = 1
"""The place of the damaged transaction, in either block."""
CRASHED = -32603
WITH_LOG = {"tracer": "callTracer", "tracerConfig": {"withLog": True}}
CODE = b"\x60\x01" * 300
LONG_CODE = b"\x60\x01" * 500_000


def digits(count: int) -> bytes:
    return os.urandom(count // 2).hex().encode()


SHORT = [Recorded("a", codes=[CODE]), Recorded("b", codes=[CODE]), Recorded("c")]
LONG = [
    Recorded(f"long-{n}", output=digits(1_500_000), codes=[CODE, os.urandom(900_000)])
    for n in range(3)
]


def damage(block: Block, *columns: str) -> None:
    """Invert all bits of the byte in the middle of a record."""
    for column in columns:
        middle = f"octet_length({column}) / 2"
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE nodeapi_transactionrecord SET {column} ="
                f" set_byte({column}, {middle}, 255 - get_byte({column}, {middle}))"
                " WHERE block_id = %s AND index = %s",
                [block.pk, DAMAGED],
            )
            assert cursor.rowcount == 1


def name(word: str) -> str:
    return "0x" + hash_of(word).hex()


def fails(api: Api, method: str, *params: object) -> bool:
    """Return whether a call fails with an error, or with a body that is not JSON."""
    received = b""
    try:
        with api.stream(request(method, *params)) as response:
            for part in response.iter_bytes():
                received += part
    except httpx.RemoteProtocolError:
        with pytest.raises(json.JSONDecodeError):
            json.loads(received)
        return True
    return bool(json.loads(received)["error"]["code"] == CRASHED)


def test_damaged_records_are_never_answered_and_others_are() -> None:
    network = make_network("net")
    add_recorded_block(network, "zero", 0, [])
    short = add_recorded_block(network, "short", 1, SHORT)
    long = add_recorded_block(network, "long", 2, LONG)
    set_head(network, "long", 2)
    damage(short, "calls", "prestate", "details", "receipt")
    damage(long, "calls", "prestate")
    with live_service(may_crash=True) as live:
        key = live.new_key(may_trace=True)
        with live.api("net", key, **{"accept-encoding": "identity"}) as api:
            for tracer in ("callTracer", "prestateTracer"):
                options = {"tracer": tracer}
                by_block, single = "debug_traceBlockByHash", "debug_traceTransaction"
                assert api.error(by_block, name("short"), options)[0] == CRASHED
                assert api.error(single, name("b"), options)[0] == CRASHED
                kept = api.result(single, name("c"), options)
                part = {**options, "fromTx": "0x2"}
                entry = {"txHash": name("c"), "result": kept}
                assert api.result(by_block, name("short"), part) == [entry]
                assert fails(api, by_block, name("long"), options)
                assert fails(api, single, name("long-1"), options)
                assert api.result(single, name("long-2"), options)
            assert api.error(by_block, name("short"), WITH_LOG)[0] == CRASHED
            receipts = "eth_getBlockReceipts", name("short")
            assert api.error(*receipts)[0] == CRASHED
            assert api.error("eth_getTransactionReceipt", name("b"))[0] == CRASHED
            assert api.result("eth_getTransactionReceipt", name("c"))
        log = live.log()
    for block in (short, long):
        for column in ("calls", "prestate"):
            assert f"block_id {block.pk}, index {DAMAGED}, {column}" in log
    assert f'"transactionHash":"{name("b")}"' in log.replace("\\", "")


@pytest.mark.parametrize("filler_digits", [300_000, 2_000_000])
def test_code_that_only_damage_names_is_no_missing_code(filler_digits: int) -> None:
    """A damaged code hash is looked up before the checksum is verified."""

    def naming(code: bytes) -> bytes:
        account = b'"0x%040x":{"code":"0x\x05","codeHash":"0x%s"}'
        hashed = keccak(code).hex().encode()
        return pack(b"{" + account % (1, hashed) + b',"0x":"' + filler + b'"}')

    filler = digits(filler_digits)
    network = make_network("net")
    add_recorded_block(network, "zero", 0, [])
    block = add_recorded_block(network, "long", 1, [Recorded("a", codes=[LONG_CODE])])
    set_head(network, "long", 1)
    checksum = naming(LONG_CODE)[-4:]
    TransactionRecord.objects.update(prestate=naming(b"none")[:-4] + checksum)
    with live_service(may_crash=True) as live:
        key = live.new_key(may_trace=True)
        with live.api("net", key) as api:
            options = {"tracer": "prestateTracer"}
            assert fails(api, "debug_traceBlockByHash", name("long"), options)
        wait_until(lambda: f"block_id {block.pk}, index 0, prestate" in live.log())
