"""Calls after a block that is only imported after an earlier request for it."""

from __future__ import annotations

import pytest

from evm.blocks import decode_block
from tests.support import chains, sample
from tests.support.live import live_service

RAW_BLOCKS = sample.raw_blocks()[:20]
LAST = decode_block(RAW_BLOCKS[-1]).header


@pytest.mark.usefixtures("module_db")
def test_an_unknown_block_is_found_when_it_was_imported() -> None:
    genesis, tracer = sample.genesis(), {"tracer": "callTracer"}
    asked = {"to": "0x" + "c0" * 20}, f"0x{LAST.hash.hex()}", tracer
    raw_block = f"0x{RAW_BLOCKS[-1].hex()}", tracer
    chains.import_blocks("sample", genesis, RAW_BLOCKS[:-2])
    with live_service() as live, live.api(key=live.new_key(may_trace=True)) as api:
        missing = f"block 0x{LAST.hash.hex()} not found"
        assert api.error("debug_traceCall", *asked) == (-32000, missing)
        missing = f"block #{LAST.number - 1} not found"
        assert api.error("debug_traceBlock", *raw_block) == (-32000, missing)
        chains.import_blocks("sample", genesis, RAW_BLOCKS[-2:])
        assert api.result("debug_traceCall", *asked)["type"] == "CALL"
        assert isinstance(api.result("debug_traceBlock", *raw_block), list)
