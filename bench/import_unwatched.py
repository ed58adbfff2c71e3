"""The importer without trace records, as a racer for `bench.watching`.

    python -m bench.import_unwatched FOLDER BATCH

Apart from the trace records, it equals `bench.import_ours`. Both store receipts, in rows
of the same table.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.import_ours import main

if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), watches=False)
