"""Trace records of the sample chain: all transactions, once, with the right sizes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evm.blocks import decode_block
from evm.signatures import keccak
from evm.tracers.call import CallConfig
from evm.tracers.derived import (
    FOUR_BYTE_DERIVATION,
    NOOP_DERIVATION,
    call_derivation,
    flat_call_derivation,
    mux_derivation,
    prestate_derivation,
)
from evm.tracers.prestate import PrestateConfig
from jsonrpc.stream import Stream
from nodeapi.chain.database import importer_connection
from tests.support import chains, copies, sample
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.usefixtures("sample_network")

DERIVATIONS = [
    call_derivation(CallConfig(with_log=True)),
    call_derivation(CallConfig(only_top_call=True)),
    flat_call_derivation(),
    FOUR_BYTE_DERIVATION,
    NOOP_DERIVATION,
    prestate_derivation(PrestateConfig(diff_mode=True)),
    prestate_derivation(PrestateConfig(disable_code=True, include_empty=True)),
    mux_derivation(
        (
            ("callTracer", call_derivation()),
            ("prestateTracer", prestate_derivation()),
        )
    ),
]


@pytest.fixture(scope="module")
def sample_network(module_db: None) -> int:
    """The sample chain, imported."""
    copies.sample_chain()
    with importer_connection() as connection:
        return chains.network_id(connection, "sample")


def read(running: Serving, method: str, *arguments: Any) -> bytes:
    async def answer() -> bytes:
        found = await getattr(running.service.store, method)(*arguments)
        assert found is not None
        return await found.read() if isinstance(found, Stream) else found

    result: bytes = running.ask(answer)
    return result


def test_each_transaction_of_each_block_has_its_entry_in_order(
    sample_network: int,
) -> None:
    with serving() as running:
        for raw in sample.raw_blocks():
            block = decode_block(raw)
            hashes = [f"0x{one.hash.hex()}" for one in block.transactions]
            for kind in ("calls", "prestate"):
                arguments = (sample_network, block.header.hash, kind)
                whole = json.loads(read(running, "block_trace", *arguments))
                assert [entry["txHash"] for entry in whole] == hashes
                assert None not in [entry["result"] for entry in whole]
            for derivation in DERIVATIONS:
                arguments = (sample_network, block.header.hash, derivation)
                whole = json.loads(read(running, "derived_block_trace", *arguments))
                assert [entry["txHash"] for entry in whole] == hashes
                assert None not in [entry["result"] for entry in whole]


def test_derived_defaults_are_what_is_stored(sample_network: int) -> None:
    with serving() as running:
        for raw in sample.raw_blocks():
            arguments = (sample_network, decode_block(raw).header.hash)
            for kind, derivation in (
                ("calls", call_derivation()),
                ("prestate", prestate_derivation()),
            ):
                stored = read(running, "block_trace", *arguments, kind)
                derived = read(running, "derived_block_trace", *arguments, derivation)
                assert stored == derived


def test_the_sizes_that_are_kept_are_those_of_the_answers(sample_network: int) -> None:
    with importer_connection() as connection, serving() as running:
        rows = connection.execute(
            "SELECT block.hash, record.index, calls_size, prestate_size"
            " FROM nodeapi_transactionrecord AS record"
            " JOIN nodeapi_block AS block ON block.id = record.block_id"
        ).fetchall()
        assert len(rows) > 300
        for block_hash, index, calls_size, prestate_size in rows:
            for kind, size in (("calls", calls_size), ("prestate", prestate_size)):
                arguments = (sample_network, bytes(block_hash), index, kind)
                assert len(read(running, "transaction_trace", *arguments)) == size


def test_raw_blocks_and_transactions_are_those_that_came_in(
    sample_network: int,
) -> None:
    with serving() as running:
        for raw in sample.raw_blocks():
            block = decode_block(raw)
            assert read(running, "raw_block", sample_network, block.header.hash) == raw
            for transaction in block.transactions:
                arguments = (sample_network, transaction.hash)
                found = read(running, "raw_transaction", *arguments)
                assert found == transaction.raw
                assert keccak(found) == transaction.hash


def test_bytes_of_a_transaction_stay_as_few_as_they_are(sample_network: int) -> None:
    with importer_connection() as connection:
        row = connection.execute(
            "SELECT avg(octet_length(receipt) + octet_length(calls)"
            " + octet_length(prestate) + octet_length(details)),"
            " avg(calls_size + prestate_size) FROM nodeapi_transactionrecord"
        ).fetchone()
    assert row is not None
    stored, answered = map(float, row)
    assert stored < answered / 3
