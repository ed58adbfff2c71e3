"""The importer that records nothing of what transactions do: what `watching` compares.

    python -m bench.import_unwatched FOLDER BATCH

As `bench.import_ours`, but for that: receipts are stored on both sides, in rows of the
same table, because they are answered whether or not anybody watched.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.import_ours import main

if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), watches=False)
