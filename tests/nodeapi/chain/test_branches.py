"""Side blocks and reorganisations: all rows correspond to the canonical chain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from abi.encoding import call_data
from evm.errors import InvalidBlock
from networks.models import Network
from nodeapi.chain.database import importer_connection
from nodeapi.chain.forkchoice import Forkchoice
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.signers import Signer
from tests.support import chains

pytestmark = pytest.mark.django_db(transaction=True)

ALICE, BOB = Signer("alice"), Signer("bob")
ETHER = 10**18

_LONDON = (
    *("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople"),
    *("petersburg", "istanbul", "muirGlacier", "berlin", "london"),
)


def genesis(*, is_merged: bool) -> dict[str, Any]:
    config: dict[str, Any] = {f"{fork}Block": 0 for fork in _LONDON}
    if is_merged:
        config |= {"terminalTotalDifficulty": 0, "shanghaiTime": 0}
    return {
        "config": {"chainId": 7, **config},
        "difficulty": "0x20000",
        "gasLimit": "0x1c9c380",
        "alloc": {
            f"0x{signer.address.hex()}": {"balance": hex(1_000 * ETHER)}
            for signer in (ALICE, BOB)
        },
    }


class Line:
    """A builder with a contract in block 1 whose storage differs between the branches."""

    def __init__(self, chain: ChainBuilder) -> None:
        self.chain = chain
        self.slots = chain.deploy(ALICE, contract("slots").init_code())
        chain.block()

    def grow(
        self, chain: ChainBuilder, count: int, value: int, **block: Any
    ) -> list[Any]:
        """Add blocks. Each writes its own slot, and one that all blocks write."""
        for _ in range(count):
            number = chain.head.number + 1
            for slot in (0, number):
                chain.send(
                    ALICE,
                    self.slots,
                    call_data("set(uint256,uint256)", slot, value),
                )
            chain.send(BOB, Signer(f"{value} {number}").address, value=value)
            chain.block(extra_data=f"{value}".encode(), **block)
        return chain.blocks[-count:]


def canonical_rows(slug: str) -> dict[str, str]:
    """Return the digests of the rows that do not depend on the order of imports."""
    found = chains.rows(slug)
    names = "accounts", "slots", "appearances", "nodes", "head"
    return {name: found[name] for name in names}


def test_the_longer_branch_wins_and_back_again() -> None:
    start = genesis(is_merged=True)
    line = Line(ChainBuilder(start))
    short, long = line.chain.fork(), line.chain.fork()
    short_blocks = line.grow(short, 3, value=5)
    long_blocks = line.grow(long, 4, value=6)
    back_blocks = line.grow(short, 3, value=7)

    chains.import_blocks("net", start, [*line.chain.blocks, *short_blocks])
    assert chains.head("net")[1] == short_blocks[-1].header.hash
    chains.import_blocks("net", start, long_blocks[:3])
    assert chains.head("net")[1] == short_blocks[-1].header.hash
    assert chains.audit_all("net") == 5
    chains.import_blocks("net", start, long_blocks[3:])
    assert chains.head("net")[1] == long_blocks[-1].header.hash
    assert chains.audit_all("net") == 6
    chains.import_blocks("net", start, back_blocks)
    assert chains.head("net")[1] == back_blocks[-1].header.hash
    assert chains.audit_all("net") == 8

    chains.import_blocks("straight", start, short.blocks)
    assert canonical_rows("net") == canonical_rows("straight")


def test_before_the_merge_total_difficulty_decides() -> None:
    start = genesis(is_merged=False)
    line = Line(ChainBuilder(start, seconds_per_block=20))
    easy, hard = line.chain.fork(), line.chain.fork()
    easy_blocks = line.grow(easy, 4, value=5)
    hard.seconds_per_block = 1
    hard_blocks = line.grow(hard, 3, value=6)
    assert hard.total_difficulty - easy.total_difficulty < hard.head.difficulty
    chains.import_blocks("net", start, [*line.chain.blocks, *easy_blocks])
    chains.import_blocks("net", start, hard_blocks)
    expected = hard if hard.total_difficulty > easy.total_difficulty else easy
    assert chains.head("net")[1] == expected.head.hash
    chains.import_blocks("net", start, line.grow(hard, 2, value=8))
    assert chains.head("net")[1] == hard.head.hash
    assert chains.audit_all("net") == hard.head.number + 1


def test_a_deep_reorganisation_moves_everything() -> None:
    start = genesis(is_merged=True)
    line = Line(ChainBuilder(start))
    old, new = line.chain.fork(), line.chain.fork()
    chains.import_blocks("net", start, line.chain.blocks)
    chains.import_blocks("net", start, line.grow(old, 64, value=5))
    chains.import_blocks("net", start, line.grow(new, 65, value=6))
    chains.import_blocks("straight", start, new.blocks)
    assert canonical_rows("net") == canonical_rows("straight")
    with importer_connection() as connection:
        side = connection.execute(
            "SELECT count(*), count(diff) FROM nodeapi_block AS block"
            " LEFT JOIN nodeapi_sidediff ON block_id = block.id"
            " WHERE NOT is_canonical"
        ).fetchone()
    assert side == (64, 64)


def test_the_wanted_head_wins_over_a_longer_branch() -> None:
    start = genesis(is_merged=True)
    line = Line(ChainBuilder(start))
    short, long = line.chain.fork(), line.chain.fork()
    short_blocks = line.grow(short, 2, value=5)
    long_blocks = line.grow(long, 3, value=6)
    first = line.chain.head.hash
    wanted = Forkchoice(short.head.hash, safe=first, finalized=None)
    chains.import_blocks(
        "net",
        start,
        [*line.chain.blocks, *long_blocks, *short_blocks],
        forkchoice=wanted,
    )
    assert chains.head("net")[1] == short.head.hash
    assert chains.audit_all("net") == 4
    # A longer branch does not replace a requested head …
    more = line.grow(long, 2, value=9)
    chains.import_blocks("net", start, more, forkchoice=wanted)
    assert chains.head("net")[1] == short.head.hash
    # … until another head is requested.
    chains.import_blocks("net", start, [], forkchoice=Forkchoice(first, None, None))
    assert chains.head("net")[1] == short.head.hash
    chains.import_blocks(
        "net", start, [], forkchoice=Forkchoice(long.head.hash, first, first)
    )
    assert chains.head("net")[1] == long.head.hash
    assert chains.audit_all("net") == 7


def test_safe_and_finalized_blocks_end_with_their_branch() -> None:
    start = genesis(is_merged=True)
    line = Line(ChainBuilder(start))
    short, long = line.chain.fork(), line.chain.fork()
    first, *_ = short_blocks = line.grow(short, 2, value=5)
    shared = line.chain.head.hash
    chains.import_blocks(
        "net",
        start,
        [*line.chain.blocks, *short_blocks],
        forkchoice=Forkchoice(short.head.hash, first.header.hash, shared),
    )
    network = Network.objects.get(slug="net")
    assert bytes(network.safe_hash or b"") == first.header.hash
    chains.import_blocks("net", start, line.grow(long, 3, value=6))
    assert chains.head("net")[1] == long.head.hash
    network.refresh_from_db()
    assert network.safe_hash is None  # the head counts as safe
    assert bytes(network.finalized_hash or b"") == shared


def test_an_invalid_side_block_leaves_no_trace() -> None:
    start = genesis(is_merged=True)
    line = Line(ChainBuilder(start))
    old, new = line.chain.fork(), line.chain.fork()
    blocks = [*line.chain.blocks, *line.grow(old, 3, value=5)]
    side = line.grow(new, 2, value=6)
    chains.import_blocks("net", start, [*blocks, side[0]])
    before = chains.rows("net")
    wrong = replace(side[1], header=replace(side[1].header, state_root=bytes(32)))
    with pytest.raises(InvalidBlock, match="state root"):
        chains.import_blocks("net", start, [wrong])
    assert chains.rows("net") == before
