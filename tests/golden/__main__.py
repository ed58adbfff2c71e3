"""Record geth's responses: `make golden`, for some of the chains with ARGS='name …'.

geth imports a chain with `geth import`, then serves it on loopback, and each request of
`calls.py` is sent to it. The same chain and version always give the same file.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.golden import calls, recording
from tests.golden.chains import CHAINS, Chain
from tests.golden.geth import VERSION, GethError, find_geth, running_geth


def main() -> None:
    """Record every chain. Exits with a message if geth cannot be used."""
    try:
        binary = find_geth()
        for name in sys.argv[1:] or CHAINS:
            _record(binary, name, CHAINS[name]())
    except GethError as error:
        sys.exit(str(error))


def _record(binary: str, name: str, chain: Chain) -> None:
    """Write the recording of one chain, and print what was done."""
    with (
        tempfile.TemporaryDirectory(prefix="portcullis-geth-") as folder,
        running_geth(binary, chain.genesis, b"".join(chain.raw), Path(folder)) as geth,
    ):
        head = geth.call("eth_getBlockByNumber", ["latest", False])["result"]["hash"]
        if head != chain.head:
            raise GethError(
                f"geth's newest block of {name} is {head}, not {chain.head}"
            )
        recorded = [
            recording.Recorded(call, geth.call(call.method, call.params))
            for call in calls.calls_to(chain)
        ]
    result = recording.Recording(VERSION, head, recorded)
    outcome = "recorded" if recording.write(name, result) else "unchanged"
    print(f"{name}: {len(recorded)} responses of geth {VERSION}, {outcome}")


if __name__ == "__main__":
    main()
