"""`python -m evm.public GETH`: write the files of this package with a geth executable."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys

from evm.public import PUBLIC_NETWORKS


def main(geth: str) -> None:
    """Write a file for each network, from the output of `geth dumpgenesis`."""
    for network in PUBLIC_NETWORKS.values():
        command = [geth, f"--{network.name}", "dumpgenesis"]
        dumped = subprocess.run(command, capture_output=True, check=True).stdout
        text = json.dumps(json.loads(dumped), sort_keys=True, separators=(",", ":"))
        packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
        network.path.write_bytes(packed)


if __name__ == "__main__":
    main(sys.argv[1])
