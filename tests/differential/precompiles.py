"""Compare precompiled contracts with py-evm's: `python -m tests.differential.precompiles`.

    make differential-precompiles                            # 10,000 inputs of each
    make differential-precompiles ARGS='--inputs 500 bls_g2_msm'
    make differential-precompiles ARGS=--geth

Outputs, failures and gas are compared, in as many processes as there are processors.
py-evm's contracts are pure Python: a pairing takes a second, all of it some hours.
`--seconds` ends the comparison of a contract after so much time of one process, and the
number of inputs that were compared is printed.

`--geth` compares outputs and failures with those of the `geth` on the PATH, which takes
minutes. It does not compare gas, because eth_call does not report it.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.golden.geth import Geth, find_geth, running_geth
from tests.support.precompile_inputs import INPUTS
from tests.support.precompile_oracle import difference, difference_from_geth

GENESIS = {
    "config": {
        "chainId": 1,
        **dict.fromkeys(
            (
                "homesteadBlock",
                "eip150Block",
                "eip155Block",
                "eip158Block",
                "byzantiumBlock",
                "constantinopleBlock",
                "petersburgBlock",
                "istanbulBlock",
                "berlinBlock",
                "londonBlock",
                "shanghaiTime",
                "cancunTime",
                "pragueTime",
                "terminalTotalDifficulty",
            ),
            0,
        ),
        "blobSchedule": {
            "cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3338477},
            "prague": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5007716},
        },
    },
    "difficulty": "0x0",
    "gasLimit": "0x1c9c380",
    "alloc": {},
}
"""The genesis of geth's chain: all forks to Prague are active."""


def compare(
    name: str, inputs: int, seconds: float, geth_url: str | None, part: int
) -> tuple[int, list[str]]:
    """Return the number of inputs compared in one process, and the differences.

    geth_url: of a geth to compare with; None for py-evm. part: the seed, together with
    the name.
    """
    geth = None if geth_url is None else Geth(geth_url)
    choose, ends = random.Random(f"{name} {part}"), time.monotonic() + seconds
    differences: list[str] = []
    for done in range(inputs):
        if time.monotonic() > ends:
            return done, differences
        data = INPUTS[name](choose)
        if geth is None:
            found = difference(name, data)
        else:
            found = difference_from_geth(geth, name, data)
        if found is not None:
            differences.append(found)
    return inputs, differences


def main() -> int:
    """Compare the named contracts, or all; return 1 if something differs."""
    parser = argparse.ArgumentParser(description="Compare precompiled contracts.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(INPUTS))
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--geth", action="store_true", help="compare with geth")
    options = parser.parse_args()
    processes, failures = os.cpu_count() or 1, 0
    each = -(-options.inputs // processes)
    with ExitStack() as stack:
        url = None
        if options.geth:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            url = stack.enter_context(
                running_geth(find_geth(), GENESIS, b"", folder)
            ).url
        pool = stack.enter_context(ProcessPoolExecutor(processes))
        for name in options.names or INPUTS:
            began = time.monotonic()
            parts = list(
                pool.map(
                    compare,
                    repeat(name),
                    repeat(each),
                    repeat(options.seconds),
                    repeat(url),
                    range(processes),
                )
            )
            count = sum(done for done, _ in parts)
            differences = [one for _, found in parts for one in found]
            failures += len(differences)
            took = time.monotonic() - began
            print(
                f"{name:16} {count:6} inputs, {len(differences)} differ, {took:.0f} s",
                *differences[:5],
                sep="\n  ",
                flush=True,
            )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
