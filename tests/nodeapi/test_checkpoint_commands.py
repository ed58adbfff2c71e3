"""Commands that execute blocks, on a network that has started at a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.support import chains, copies, sample
from tests.support.proved import start_at_checkpoint

pytestmark = pytest.mark.django_db(transaction=True)


def test_blocks_up_to_the_checkpoint_are_not_executed(tmp_path: Path) -> None:
    copies.sample_chain("full")
    start_at_checkpoint("sparse", "full", sample.genesis(), 70, oldest=65)
    network = "--network", "sparse"
    page = str(tmp_path / "page.html")
    for command in (
        ("audit_blocks", *network, "--blocks", "70", "--engine", "own"),
        ("compare_forks", *network, "--blocks", "66-70", "--fork", "osaka"),
        ("backfill_access_lists", *network, "--blocks", "65-70"),
    ):
        output = ["--output", page] if command[0] == "compare_forks" else []
        with pytest.raises(CommandError, match="first block that was executed is 71"):
            call_command(*command, *output)
    call_command("backfill_access_lists", *network)
    with pytest.raises(CommandError, match="only its follower"):
        call_command("import_chain", *network, str(sample.CHAIN_FILE))
    call_command("import_chain", *network, "--genesis", str(sample.GENESIS_FILE))
    assert chains.head("sparse")[0] == 70
