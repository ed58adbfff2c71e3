"""Parts of states, and changes by blocks, compared with reads of accounts and slots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from eth_hash.auto import keccak

from evm.blocks import decode_block
from tests.support import chains, copies, sample
from tests.support.live import Api, Live, live_service

RAW_BLOCKS = sample.raw_blocks()
BLOCKS = [decode_block(raw) for raw in RAW_BLOCKS]
HEAD = len(BLOCKS)
UNKNOWN = "0x" + "12" * 32
DIFF = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}

Slots = dict[str, str]


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    copies.sample_chain()
    chains.import_blocks("later", sample.genesis(), RAW_BLOCKS[:1])
    with live_service() as live:
        yield live


def hashed(key: bytes | str) -> bytes:
    return keccak(bytes.fromhex(key[2:]) if isinstance(key, str) else key)


def test_roots_end_with_the_root_of_a_block_without_further_changes(api: Api) -> None:
    compared = 0
    for block in BLOCKS:
        name = f"0x{block.header.hash.hex()}"
        roots = api.result("debug_intermediateRoots", name)
        if not block.transactions:
            assert roots is None
            continue
        assert len(roots) == len(block.transactions)
        receipts = api.result("eth_getBlockReceipts", name)
        for root, receipt in zip(roots, receipts, strict=True):
            if "root" in receipt:
                assert root == receipt["root"]
                compared += 1
        # Neither rewards nor withdrawals nor requests have changed the state further.
        header = block.header
        if not (header.difficulty or block.withdrawals or header.requests_hash):
            assert roots[-1] == f"0x{header.state_root.hex()}"
            compared += 1
    assert compared > 10
    genesis = api.result("eth_getBlockByNumber", "0x0", False)["hash"]
    expected = (-32000, "genesis is not traceable")
    assert api.error("debug_intermediateRoots", genesis) == expected
    assert api.error("debug_intermediateRoots", UNKNOWN, {}) == (
        -32000,
        f"block {UNKNOWN} not found",
    )


def test_modified_accounts_are_those_whose_state_differs(api: Api) -> None:
    for first, last in [(0, 1), (3, 9), (HEAD - 20, HEAD)]:
        touched = {
            account
            for number in range(first + 1, last + 1)
            for entry in api.result("debug_traceBlockByNumber", hex(number), DIFF)
            for account in entry["result"]["pre"] | entry["result"]["post"]
        }
        found = api.result("debug_getModifiedAccountsByNumber", first, last) or []
        assert found == sorted(found, key=hashed)
        for account in touched | set(found):
            before = api.result("eth_getAccount", account, hex(first))
            after = api.result("eth_getAccount", account, hex(last))
            assert (account in found) is (after is not None and after != before)
        names = [
            api.result("eth_getBlockByNumber", hex(number), False)["hash"]
            for number in (first, last)
        ]
        by_hash = api.result("debug_getModifiedAccountsByHash", *names)
        assert (by_hash or []) == found
    one = api.result("debug_getModifiedAccountsByNumber", 5)
    assert one == api.result("debug_getModifiedAccountsByNumber", 4, 5)


@pytest.mark.parametrize(
    ("blocks", "text"),
    [
        ((HEAD + 1,), f"start block {HEAD + 1:x} not found"),
        ((0, HEAD + 1), f"end block {HEAD + 1} not found"),
        ((0,), "block 0 has no parent"),
        (
            (3, 3),
            "start block height (3) must be less than end block height (3)",
        ),
    ],
)
def test_blocks_to_compare_have_to_be_in_order(
    api: Api, blocks: tuple[int, ...], text: str
) -> None:
    assert api.error("debug_getModifiedAccountsByNumber", *blocks) == (-32000, text)


def written_slots(api: Api) -> dict[str, list[tuple[int, int, Slots]]]:
    """Return number, index and written slots of transactions, by account."""
    found: dict[str, list[tuple[int, int, Slots]]] = {}
    for number in range(1, HEAD + 1):
        entries: list[dict[str, Any]] = api.result(
            "debug_traceBlockByNumber", hex(number), DIFF
        )
        for index, entry in enumerate(entries):
            before, after = entry["result"]["pre"], entry["result"]["post"]
            for account in before:
                slots = {
                    slot: after.get(account, {}).get("storage", {}).get(slot, "0x0")
                    for slot in before[account].get("storage", {})
                    | after.get(account, {}).get("storage", {})
                }
                if slots and account in after:
                    found.setdefault(account, []).append((number, index, slots))
    return found


def test_storage_is_that_before_the_transaction(api: Api) -> None:
    written = written_slots(api)
    account = max(written, key=lambda one: len(written[one]))
    assert len(written[account]) > 5
    for number, index, slots in written[account][:12]:
        before = api.result(
            "debug_storageRangeAt", hex(number), index, account, "0x", 1000
        )
        values = {
            each["key"]: each["value"] for each in (before["storage"] or {}).values()
        }
        for key in before["storage"] or {}:
            slot = before["storage"][key]["key"]
            assert key == f"0x{hashed(slot).hex()}"
        count = api.result("eth_getBlockTransactionCountByNumber", hex(number))
        if index + 1 < int(count, 16):
            after = api.result(
                "debug_storageRangeAt", hex(number), index + 1, account, "0x", 1000
            )
            shown = {
                each["key"]: each["value"] for each in (after["storage"] or {}).values()
            }
            for slot, value in slots.items():
                assert int(shown.get(slot, "0x0"), 16) == int(value, 16)
            assert {k: v for k, v in shown.items() if k not in slots} == {
                k: v for k, v in values.items() if k not in slots
            }
        if index == 0:
            for slot, value in values.items():
                parent = hex(number - 1)
                assert api.result("eth_getStorageAt", account, slot, parent) == value


def test_pages_of_a_storage_are_parts_of_the_whole(api: Api) -> None:
    written = written_slots(api)
    latest = hex(HEAD)
    ranges = {
        account: api.result("debug_storageRangeAt", latest, 0, account, "0x", 1000)
        for account in written
    }
    account = max(ranges, key=lambda one: len(ranges[one]["storage"] or ()))
    whole = ranges[account]["storage"]
    assert len(whole) > 3
    assert ranges[account]["nextKey"] is None
    found: dict[str, Any] = {}
    start: str | None = "0x"
    while start is not None:
        page = api.result("debug_storageRangeAt", latest, 0, account, start, 2)
        found |= page["storage"]
        start = page["nextKey"]
    assert list(found.items()) == list(whole.items())
    nothing = {"storage": None, "nextKey": None}
    nobody = "0x" + "ab" * 20
    assert api.result("debug_storageRangeAt", latest, 0, nobody, "0x", 9) == nothing
    name = api.result("eth_getBlockByNumber", latest, False)["hash"]
    assert api.error("debug_storageRangeAt", name, 99, account, "0x", 9) == (
        -32000,
        f"transaction index 99 out of range for block {name}",
    )
    assert api.error("debug_storageRangeAt", "0x0", 0, account, "0x", 9) == (
        -32000,
        "no transaction in genesis",
    )


def test_block_that_was_unknown_is_found_once_it_is_imported(
    live: Live, api: Api
) -> None:
    name = f"0x{BLOCKS[1].header.hash.hex()}"
    expected = api.result("debug_intermediateRoots", name)
    with live.api("later", live.new_key(may_trace=True)) as later:
        assert later.error("debug_intermediateRoots", name) == (
            -32000,
            f"block {name} not found",
        )
        chains.import_blocks("later", sample.genesis(), RAW_BLOCKS[1:2])
        assert later.result("debug_intermediateRoots", name) == expected
