"""Record geth's responses: `make golden`, for some of the chains with ARGS='name …'.

geth imports a chain with `geth import`, then serves it on loopback, and each request of
`calls.py` is sent to it. The same chain and version always give the same file.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.golden import recording
from tests.golden.chains import CHAINS, Chain
from tests.golden.geth import VERSION, Geth, GethError, find_geth, running_geth
from tests.golden.parts import PARTS, parts_of


def main() -> None:
    """Record every chain. Exits with a message if geth cannot be used."""
    try:
        binary = find_geth()
        for name in sys.argv[1:] or CHAINS:
            _record(binary, name, CHAINS[name]())
    except GethError as error:
        sys.exit(str(error))


def _response(geth: Geth, call: recording.Call) -> dict[str, Any]:
    """Return geth's response, with more time for a tracer that needs it.

    Tracers have 5 seconds, which may be too little on a busy machine.
    """
    response = geth.call(call.method, call.params)
    if "execution timeout" not in json.dumps(response):
        return response
    *rest, options = call.params
    return geth.call(call.method, [*rest, {**options, "timeout": "60s"}])


def _record(binary: str, name: str, chain: Chain) -> None:
    """Write the recordings of one chain, and print a summary."""
    with (
        tempfile.TemporaryDirectory(prefix="portcullis-geth-") as folder,
        running_geth(binary, chain.genesis, b"".join(chain.raw), Path(folder)) as geth,
    ):
        head = geth.call("eth_getBlockByNumber", ["latest", False])["result"]["hash"]
        if head != chain.head:
            raise GethError(
                f"geth's newest block of {name} is {head}, not {chain.head}"
            )
        for part in parts_of(name):
            recorded = [
                recording.Recorded(call, _response(geth, call))
                for call in PARTS[part](chain)
            ]
            result = recording.Recording(VERSION, head, recorded)
            is_new = recording.write(name, part, result)
            outcome = "recorded" if is_new else "unchanged"
            print(
                f"{name}, {part}: {len(recorded)} responses of geth {VERSION}, {outcome}"
            )


if __name__ == "__main__":
    main()
