"""The command `compare_forks` on the sample chain: figures and page."""

from __future__ import annotations

import re
from io import StringIO
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from eth_typing import Address, Hash32

from evm.blocks import decode_block
from evm.chain_config import ChainConfig, UnsupportedFork
from evm.transactions import BLOB
from networks.models import Network
from nodeapi.chain.database import connection_parameters
from nodeapi.fork_report.blocks import survey_blocks
from nodeapi.fork_report.page import report_page
from nodeapi.fork_report.survey import Change, Effect, Survey
from samples.builder import ChainBuilder
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains, copies, sample

BLOCKS = [decode_block(raw) for raw in sample.raw_blocks()]
BEFORE = [block for block in BLOCKS if block.header.slot_number is None]
"""The blocks before Amsterdam, whose gas used is the sum of the receipts."""
TRANSACTIONS = [each for block in BEFORE for each in block.transactions]
ALICE = Signer("alice")
GAS = sum(block.header.gas_used for block in BEFORE)


@pytest.fixture(scope="module", autouse=True)
def chain(module_db: None) -> None:
    copies.sample_chain()


def compare(output: Path, fork: str = "amsterdam", **options: Any) -> str:
    """Call the command, and return what it writes to its standard output."""
    given = {"network": "sample", "blocks": f"1-{len(BLOCKS)}", "workers": 1}
    given |= {"fork": fork, "output": output}
    written = StringIO()
    arguments = [f"--{name}={value}" for name, value in (given | options).items()]
    call_command("compare_forks", *arguments, stdout=written)
    return written.getvalue()


def test_all_blocks_before_the_next_fork_by_its_rules(tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    count = len(BEFORE)
    lines = compare(output, workers=2, blocks=f"1-{count}").splitlines()
    assert len(lines) == ceil(count / 16) + 1  # the last one names the file
    assert f"{count} of {count} blocks, {len(TRANSACTIONS)} transactions" in lines
    page = output.read_text()
    assert f"{count} blocks with {len(TRANSACTIONS)} transactions" in page
    refused = [
        each
        for each in TRANSACTIONS
        if each.type == BLOB and len(each.blob_versioned_hashes) > 6
    ]
    (blobs,) = refused  # Osaka's limit
    (row,) = re.findall(r"<tr>.*blob transaction has too many blobs.*</tr>", page)
    assert f"0x{blobs.hash.hex()}" in row
    # The refused transaction has no gas after.
    (before,) = re.findall(r"gas: from ([\d,]+) to", page)
    assert GAS - blobs.gas <= int(before.replace(",", "")) < GAS
    assert "http" not in page  # It is complete without any other file.


def test_by_their_own_rules_nothing_changes(tmp_path: Path) -> None:
    head = BLOCKS[-1].header.number
    compare(tmp_path / "report.html", "amsterdam", blocks=f"{head - 3}-{head}")
    page = (tmp_path / "report.html").read_text()
    assert page.count("<p>Nothing.</p>") == 2
    assert "<b>+0.0 %</b>" in page
    assert 'class="needs-gas"' not in page


def test_texts_are_escaped_and_long_lists_end() -> None:
    survey = Survey(blocks=1, forks={"<i>osaka"})
    for number in range(300):
        contract = Address(number.to_bytes(20))
        name = Hash32(number.to_bytes(32))
        survey.add(Effect(name, contract, b"", Change.FAILS, 21_000, 30_000, "<b>bad"))
    page = report_page(survey, "<script>", range(1, 2), "amsterdam")
    assert "<script>" not in page
    assert "<b>bad" not in page
    assert "<i>osaka" not in page
    assert "&lt;b&gt;bad" in page
    assert "100 more rows are not listed" in page
    assert "200 more are not listed" in page


def test_no_transactions_make_a_page_too() -> None:
    assert "There are no transactions" in report_page(
        Survey(blocks=1), "net", range(1, 2), "osaka"
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"blocks": "1-1000"}, f"the newest block is {len(BLOCKS)}"),
        ({"network": "atlantis"}, "there is no network 'atlantis'"),
        ({"output": "/nonexistent/report.html"}, "there is no folder"),
        ({"fork": "atlantis"}, 'unknown fork "atlantis"'),
        ({"blocks": "5-1"}, "must be two block numbers"),
    ],
)
def test_wrong_arguments_are_errors(
    tmp_path: Path, options: dict[str, Any], text: str
) -> None:
    given: dict[str, Any] = {"output": tmp_path / "report.html", **options}
    with pytest.raises(CommandError, match=text):
        compare(**given)


def test_an_error_in_a_worker_process_keeps_its_text(tmp_path: Path) -> None:
    networks = Network.objects.filter(slug="sample")
    genesis = networks.get().genesis
    config = {**genesis["config"], "clique": {"period": 1}}
    networks.update(genesis=genesis | {"config": config})
    try:
        with pytest.raises(CommandError) as caught:
            compare(tmp_path / "report.html", blocks="1")
    finally:
        networks.update(genesis=genesis)
    with pytest.raises(UnsupportedFork) as told:
        ChainConfig.from_genesis({"config": config})
    assert str(caught.value) == str(told.value)


LOOP_WITH_MUCH_GAS = bytes.fromhex("5a620f424010600f576001600055005b600f56")
"""Loops with more than 1,000,000 gas, and otherwise sets a slot."""


def test_a_try_that_takes_too_long_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodeapi.fork_report.blocks.TRY_SECONDS", 0.2)
    genesis = fork_genesis("osaka", ALICE)
    chain = ChainBuilder(genesis)
    looping = chain.deploy(
        ALICE, bytes.fromhex("6013600c60003960136000f3") + LOOP_WITH_MUCH_GAS
    )
    chain.block()
    chain.send(ALICE, looping, gas=60_000)
    chain.send(ALICE, b"\x09" * 20, value=1)
    chain.block()
    chains.import_blocks("loops", genesis, chain.blocks)
    network = Network.objects.get(slug="loops")
    survey = survey_blocks(
        *(connection_parameters(), network.pk, genesis, "amsterdam", range(2, 3))
    )
    assert survey.changes == {Change.FAILS: 1, Change.NONE: 1}
    ((*_, error),) = survey.failures
    assert error == "not finished after 10 s"
