"""Growth of the database by blocks like mainnet's.

A block has 200 transactions, which write 1,000 slots, change 700 accounts and emit 400
logs. Mainnet's blocks had 183 transactions, 407 accounts and 583 slots in June 2025, at
a gas limit of 36 million.
Source: https://eips.ethereum.org/EIPS/eip-7928, analysis of block access lists
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection

from abi.encoding import topic
from bench.rows import Row
from bench.token_chain import ETHER, genesis_of, holders_of
from bench.turns import Say
from evm.blocks import encode_block
from samples.assembler import assemble
from samples.builder import ChainBuilder
from samples.signers import Signer

SLUG = "bench-storage"
WARM_BLOCKS = 20
"""Blocks before the measurement, so that tables and tries are not empty."""
BLOCKS = 40
BLOCKS_A_DAY = 7_200
"""One block in 12 s."""

TRANSACTIONS = 200
SLOTS = 5
"""Slots that a transaction writes."""
RECIPIENTS = 3
"""Recipients of ether of every second transaction. The others have one fewer."""
LOGS = 2
NEW_SLOTS = 0.4
HOLDERS = 5_000
GAS_LIMIT = 60_000_000
GAS = 250_000

SPREADER = b"\x71" * 20

TABLES = {
    "block": "blocks",
    "transaction": "transactions",
    "transactionrecord": "receipts and trace records",
    "blockaccesslist": "access lists",
    "accountversion": "account versions",
    "storageversion": "slot versions",
    "appearance": "appearances",
    "log": "log index",
    "trienode": "trie nodes",
    "code": "code",
}
"""Tables by their names in the database after `nodeapi_`."""

GIGABYTE = 10**9


def storage(folder: Path, say: Say) -> list[Row]:
    """Import blocks like mainnet's, and return the growth of each table per day."""
    say(f"storage: builds {WARM_BLOCKS + BLOCKS} blocks of {TRANSACTIONS} transactions")
    paths = _write_chain(folder)
    call_command(
        "import_chain", str(paths["warm"]), network=SLUG, genesis=paths["genesis"]
    )
    before = {name: _size(name) for name in TABLES}
    call_command("import_chain", str(paths["measured"]), network=SLUG)
    rows: list[Row] = []
    total = 0
    for name, meaning in TABLES.items():
        grown, added = (
            after - earlier
            for after, earlier in zip(_size(name), before[name], strict=True)
        )
        total += grown
        scale = BLOCKS_A_DAY / BLOCKS
        rows += [
            Row("storage", meaning, grown * scale / GIGABYTE, "GB/day"),
            Row("storage", meaning, added * scale / 10**6, "million rows/day"),
        ]
    day = total * BLOCKS_A_DAY / BLOCKS / GIGABYTE
    return [*rows, Row("storage", "all tables with their indexes", day, "GB/day")]


def _size(name: str) -> tuple[int, int]:
    """Return the size of a table with its indexes in bytes, and its number of rows."""
    table = f"nodeapi_{name}"
    with connection.cursor() as cursor:
        # Without this, the size would include space that the next rows reuse.
        cursor.execute(f"VACUUM {table}")
        cursor.execute(
            f"SELECT pg_total_relation_size('{table}'), (SELECT count(*) FROM {table})"
        )
        size, count = cursor.fetchone()
    return size, count


def _write_chain(folder: Path) -> dict[str, Path]:
    """Write the genesis and two files of blocks. Return their paths by name."""
    chance = random.Random(SLUG)
    holders = holders_of(HOLDERS)
    genesis = genesis_of_load(holders)
    chain, written = ChainBuilder(genesis), [chance.getrandbits(256)]
    for _ in range(WARM_BLOCKS + BLOCKS):
        add_block_of_load(chain, holders, chance, written)
    parts = {"warm": chain.blocks[:WARM_BLOCKS], "measured": chain.blocks[WARM_BLOCKS:]}
    paths = {name: folder / f"{name}.rlp" for name in parts}
    for name, blocks in parts.items():
        paths[name].write_bytes(b"".join(map(encode_block, blocks)))
    paths["genesis"] = folder / "genesis.json"
    paths["genesis"].write_text(json.dumps(genesis))
    return paths


def genesis_of_load(holders: list[Signer]) -> dict[str, Any]:
    """Return the genesis.json for blocks like mainnet's."""
    genesis = genesis_of(holders)
    genesis["gasLimit"] = hex(GAS_LIMIT)
    genesis["alloc"][f"0x{SPREADER.hex()}"] = {
        "balance": hex(10**6 * ETHER),
        "nonce": "0x1",
        "code": f"0x{assemble(_source()).hex()}",
    }
    return genesis


def _source() -> str:
    """Return a contract that writes slots, sends ether to addresses and emits logs.

    Its input are words: the slots, then the addresses. A slot gets the block's number.
    """
    writes = [f"NUMBER PUSH {32 * i} CALLDATALOAD SSTORE" for i in range(SLOTS)]
    sends = [
        f"PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH 1 PUSH {32 * (SLOTS + i)} CALLDATALOAD"
        " PUSH 0 CALL POP"
        for i in range(RECIPIENTS)
    ]
    transfer = topic("Transfer(address,address,uint256)")
    logs = ["NUMBER PUSH 0 MSTORE"] + [
        f"PUSH 0 CALLDATALOAD CALLER PUSH32 0x{transfer.hex()} PUSH 32 PUSH 0 LOG3"
    ] * LOGS
    return "\n".join([*writes, *sends, *logs, "STOP"])


def add_block_of_load(
    chain: ChainBuilder,
    holders: list[Signer],
    chance: random.Random,
    written: list[int],
    transactions: int = TRANSACTIONS,
    new_slots: float = NEW_SLOTS,
) -> None:
    """Add a block. written: the slots that were written so far, to which it adds.

    new_slots: share of the written slots that were never written before.
    """
    for index, sender in enumerate(chance.sample(holders, transactions)):
        slots: list[Any] = []
        for _ in range(SLOTS):
            if chance.random() < new_slots:
                written.append(chance.getrandbits(256))
                slots.append(written[-1])
            else:
                slots.append(chance.choice(written))
        recipients = chance.sample(holders, RECIPIENTS - index % 2)
        words = [slot.to_bytes(32, "big") for slot in slots]
        words += [holder.address.rjust(32, b"\0") for holder in recipients]
        chain.send(sender, SPREADER, b"".join(words), gas=GAS)
    chain.block()
    if not all(receipt.status for receipt in chain.outcomes[-1].receipts):
        raise RuntimeError(f"a transaction of block {chain.head.number} failed")
