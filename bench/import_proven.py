"""The importer keeping former trie nodes for proofs, as a racer for `bench.proofs`.

    python -m bench.import_proven FOLDER BATCH

Apart from the trie nodes, it equals `bench.import_ours`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

from bench import import_ours

if __name__ == "__main__":
    from networks.models import Network
    from networks.services import configure_network

    open_network = import_ours.open_network

    def open_with_proofs(*arguments: object, **options: object) -> int:
        """Open a network that keeps trie nodes of all blocks."""
        network_id: int = open_network(*arguments, **options)
        network = Network.objects.get(pk=network_id)
        configure_network(network=network, keep_proofs="all")
        return network_id

    with patch.object(import_ours, "open_network", open_with_proofs):
        import_ours.main(Path(sys.argv[1]), int(sys.argv[2]))
