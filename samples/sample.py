"""The sample chain: a hundred blocks with the features of all forks.

`make run` serves it. Each build gives the same bytes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from samples import sample_stake, sample_work
from samples.schedules import make_genesis
from samples.story import ALICE, BOB, CAROL, DAVE, ETHER, HOLDER_SIGNERS, Story

SLUG = "sample"
NAME = "Sample chain"
CHAIN_ID = 202_611

FIRST_BLOCKS = {
    "homestead": 6,
    "tangerine_whistle": 11,
    "spurious_dragon": 15,
    "byzantium": 21,
    "constantinople": 27,
    "petersburg": 32,
    "istanbul": 35,
    "muir_glacier": 39,
    "berlin": 41,
    "london": 46,
    "arrow_glacier": 52,
    "gray_glacier": 54,
    "paris": 56,
    "shanghai": 61,
    "cancun": 67,
    "prague": 76,
    "osaka": 87,
    "bpo1": 93,
    "bpo2": 97,
}
"""Fork → number of its first block."""

TERMINAL_TOTAL_DIFFICULTY = 7_300_000
"""Reached by the last proof-of-work block, and not by the one before it."""

README_NOTICE = "<!-- made by `manage.py build_sample_chain` -->"


def sample_genesis() -> dict[str, Any]:
    """Return the chain's genesis.json."""
    return make_genesis(
        chain_id=CHAIN_ID,
        first_blocks=FIRST_BLOCKS,
        alloc={
            f"0x{signer.address.hex()}": {"balance": hex(10_000 * ETHER)}
            for signer in (ALICE, BOB, CAROL, DAVE, *HOLDER_SIGNERS)
        },
        terminal_total_difficulty=TERMINAL_TOTAL_DIFFICULTY,
        extra_data=NAME.encode(),
    )


def build_sample_chain() -> Story:
    """Build the complete sample chain."""
    story = Story(sample_genesis())
    for scene in (*sample_work.SCENES, *sample_stake.SCENES):
        scene(story)
    return story


def sample_files(story: Story) -> dict[str, bytes]:
    """Return the contents of the checked-in files, by path relative to `samples/`."""
    genesis = json.dumps(sample_genesis(), indent=1) + "\n"
    return {
        f"{SLUG}/genesis.json": genesis.encode(),
        f"{SLUG}/chain.rlp": story.chain.rlp(),
        "README.md": sample_readme(story).encode(),
    }


def write_sample_chain(folder: Path) -> Story:
    """Build the chain, write its files below a folder, and return it."""
    story = build_sample_chain()
    for name, content in sample_files(story).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return story


def sample_readme(story: Story) -> str:
    """Return a README that describes each block."""
    contracts = "\n".join(
        f"| {name} | `0x{address.hex()}` |"
        for name, address in story.contracts.items()
        if story.has_code(address)
    )
    blocks = "\n".join(
        f"| {note.number} | {note.fork} | {note.text} | {_statuses(note.statuses)} |"
        for note in story.notes
    )
    return f"""{README_NOTICE}

# {NAME}

`{SLUG}/genesis.json` (geth's format) and `{SLUG}/chain.rlp` (the blocks after it,
concatenated) are a chain of {len(story.notes)} blocks with chain id {CHAIN_ID} that
goes through every fork from Frontier to BPO2. The builder in `samples/sample.py`
made it from the contracts in `samples/contracts/`; nothing in it comes from
another network, and proof-of-work seals are empty. To make it again:

    manage.py build_sample_chain

Each block's extra data says what it shows.

## Blocks

The last column has a sign for each transaction: `+` success, `-` failure, `.` for
blocks before Byzantium, whose receipts have no status.

| block | fork | shows | transactions |
|---:|---|---|---|
{blocks}

## Contracts that are there at the end

| name | address |
|---|---|
{contracts}
"""


def _statuses(statuses: tuple[int | None, ...]) -> str:
    signs = "".join({None: ".", 0: "-", 1: "+"}[status] for status in statuses)
    if len(signs) > 12:
        return f"{len(signs)}, of them {signs.count('-')} failures"
    return f"`{signs}`" if signs else "none"
