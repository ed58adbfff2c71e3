"""Compare chains with the oracle: `python -m tests.differential [NAME …]`.

The name `real_blocks` stands for the blocks of `tests.support.real_blocks`, which py-evm
executes as well.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from evm.opcodes import OPCODE_NAMES
from evm.tracers.steps import Step, TracedTransaction
from nodeapi.chain import block_audit, py_evm
from nodeapi.chain.replay import Replay
from tests.differential.cases import CASES, NOT_SPECIFIED, Case, told_block
from tests.support import real_blocks

PROJECT = Path(__file__).resolve().parents[2]
REAL_BLOCKS = "real_blocks"
ORACLE = PROJECT / ".venv-eels" / "bin" / "python"
PC, OP, GAS, COST, DEPTH, REFUND, FAILED, STACK, MEMORY, RETURNED = range(10)
FIELDS = ["pc", "op", "gas", "cost", "depth", "refund", "failed", "stack", "memory"]
FIELDS += ["return data"]


class Mismatch(Exception):
    """The two executions differ."""


class Recorder:
    """A tracer that records the same values as the oracle."""

    wants_steps = True
    wants_frames = False

    def __init__(self) -> None:
        self.entries: list[list[Any]] = []

    def start(self, transaction: TracedTransaction) -> None:
        pass

    def step(self, step: Step) -> None:
        frame = step.frame
        stack = ",".join([hex(value) for value in frame.stack])
        self.entries.append(
            [
                step.pc,
                step.op,
                step.gas,
                step.cost,
                step.depth,
                step.refund,
                step.error is not None,
                zlib.crc32(stack.encode()),
                zlib.crc32(frame.memory),
                zlib.crc32(frame.return_data),
            ]
        )

    def fault(self, step: Step) -> None:
        self._latest_at(step.depth)[FAILED] = True

    def _latest_at(self, depth: int) -> list[Any]:
        return next(e for e in reversed(self.entries) if e[DEPTH] == depth)

    def enter(self, frame: Any) -> None:
        pass

    def log(self, *log: Any) -> None:
        """Add nothing."""

    def exit(self, frame: Any) -> None:
        pass

    def end(self, frame: Any, gas_used: int) -> None:
        pass

    def result(self) -> bytes:
        return b""


def compare(case: Case, folder: Path) -> Counter[str]:
    """Compare a chain's instructions with the oracle's. Return their numbers by fork."""
    traced, told = [], []
    for origin, verified in case.executed():
        told.append(told_block(origin, verified.changes))
        if origin.fork.name in NOT_SPECIFIED:
            continue
        replay, recorded = Replay(origin), []
        for transaction in origin.block.transactions:
            recorder = Recorder()
            replay.trace(recorder, timeout=3600)
            recorded.append((transaction, recorder.entries))
        traced.append((origin.fork.name, origin.block.header.number, recorded))
    expected = _ask(case.told(told), folder)
    steps: Counter[str] = Counter()
    for fork, number, recorded in traced:
        for transaction, entries in recorded:
            place = f"{case.name}, block {number} ({fork}), 0x{transaction.hash.hex()}"
            theirs = expected.get(transaction.hash.hex(), [])
            bonus = len(transaction.authorization_list) > 0
            _compare_transaction(place, entries, theirs, has_authorizations=bonus)
            steps[fork] += len(entries)
            steps[f"{fork} transactions"] += 1
    return steps


def _ask(told: dict[str, Any], folder: Path) -> dict[str, list[list[Any]]]:
    case, out = folder / "case.json", folder / "out.jsonl"
    case.write_text(json.dumps(told))
    command = [str(ORACLE), str(Path(__file__).with_name("oracle.py")), case, out]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Mismatch(f"the oracle refuses the chain: {done.stderr.strip()}")
    with out.open() as lines:
        return dict(json.loads(line) for line in lines)


def _compare_transaction(
    place: str,
    ours: list[list[Any]],
    theirs: list[list[Any]],
    *,
    has_authorizations: bool,
) -> None:
    # EELS adds the refunds of authorizations after the execution, geth before it.
    granted = ours[0][REFUND] - theirs[0][REFUND] if ours and theirs else 0
    if granted and not has_authorizations:
        raise Mismatch(f"{place}: refund begins with {granted}")
    for index, (one, other) in enumerate(zip_longest(ours, theirs)):
        wrong = _differences(one, other, granted) if one and other else ["length"]
        if wrong:
            name = OPCODE_NAMES[(one or other)[OP]]
            raise Mismatch(
                f"{place}, entry {index} ({name}), {', '.join(wrong)}:"
                f"\n  ours   {one}\n  theirs {other}"
            )


def _differences(
    ours: list[Any], theirs: list[Any], granted: int
) -> Iterator[str] | list[str]:
    compared = {PC, OP, GAS, DEPTH, FAILED, STACK, MEMORY, RETURNED}
    # The two report different costs for an instruction that failed.
    if not ours[FAILED]:
        compared |= {COST, REFUND}
    if theirs[RETURNED] is None:
        compared.discard(RETURNED)
    shifted = list(ours)
    shifted[REFUND] -= granted
    return [FIELDS[n] for n in sorted(compared) if shifted[n] != theirs[n]]


def compare_real_blocks() -> int:
    """Execute the real blocks by our engine and by py-evm. Return their number."""
    paths = real_blocks.paths()
    for path in paths:
        ours, theirs = (
            engine(real.origin, real.trie)
            for engine in (block_audit.execute, py_evm.execute)
            for real in [real_blocks.load(path)]
        )
        for one, other in [
            (ours[0].receipts, theirs[0].receipts),
            (ours[1], theirs[1]),
        ]:
            if one != other:
                raise Mismatch(f"{path.name}:\n  ours   {one}\n  py-evm {other}")
    return len(paths)


def main(names: list[str]) -> int:
    """Compare the named chains, or all; return 1 if something differs."""
    if not ORACLE.exists() and names != [REAL_BLOCKS]:
        print("there is no oracle: make differential", file=sys.stderr)
        return 2
    failures, total = 0, Counter[str]()
    for name in names or [*CASES, REAL_BLOCKS]:
        try:
            if name == REAL_BLOCKS:
                count = compare_real_blocks()
                print(f"{name:40} {count:9} blocks are the same", flush=True)
                continue
            with tempfile.TemporaryDirectory() as folder:
                steps = compare(CASES[name](), Path(folder))
        except pytest.skip.Exception as reason:
            print(f"{name:40} skipped: {reason}")
            continue
        except Mismatch as mismatch:
            print(f"{name:40} DIFFERS\n{mismatch}")
            failures += 1
            continue
        total += steps
        count = sum(n for key, n in steps.items() if not key.endswith("transactions"))
        print(f"{name:40} {count:9} instructions are the same", flush=True)
    for key, count in total.items():
        if not key.endswith("transactions"):
            print(f"  {key:20} {total[key + ' transactions']:6} txs {count:9} steps")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
