"""The importer without the log index, as a racer for `bench.logs`.

    python -m bench.import_unindexed FOLDER BATCH

Apart from the rows of the log index, it equals `bench.import_ours`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

from bench.import_ours import main
from nodeapi.chain.rows import Rows

if __name__ == "__main__":
    with patch.object(Rows, "insert_logs"):
        main(Path(sys.argv[1]), int(sys.argv[2]))
