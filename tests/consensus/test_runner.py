"""The command: files, processes, output and exit status."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.consensus.__main__ import main, progress
from tests.consensus.files import execute, find_files, read_tests
from tests.consensus.pool import Pool, Running, Task
from tests.consensus.verdict import Status
from tests.consensus.writing import (
    KEEPER,
    account,
    blockchain_fixture,
    new_chain,
    state_fixture,
)

PASSED_FAILED_PASSED = [Status.PASSED, Status.FAILED, Status.PASSED]


def fixture_of(network="Cancun"):
    chain = new_chain(network)
    chain.block()
    return blockchain_fixture(network, chain)


def wrong_fixture():
    return {**fixture_of(), "lastblockhash": f"0x{'11' * 32}"}


def write(folder, name, document):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def verdicts(path):
    return [execute(name, test) for name, test in read_tests(path)]


def test_a_folder_of_passing_fixtures_ends_with_status_0(tmp_path, capsys):
    write(tmp_path, "a/one.json", {"first": fixture_of(), "second": fixture_of()})
    write(tmp_path, "two.json", {"third": fixture_of("Osaka")})
    write(tmp_path, ".meta/index.json", {"no": "fixture"})
    assert main([str(tmp_path), "--jobs", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 passed, 0 failed, 0 not run; 2 files in ")


def test_failures_unknown_networks_and_formats_are_reported(tmp_path, capsys):
    write(
        tmp_path,
        "all.json",
        {
            "good": fixture_of(),
            "bad": wrong_fixture(),
            "future": {**fixture_of(), "network": "Amsterdam"},
            "futures": {**fixture_of(), "network": "Amsterdam"},
            "other": {"_info": {"fixture-format": "transaction_test"}, "result": {}},
        },
    )
    broken = write(tmp_path, "broken.json", "{")
    assert main([str(tmp_path), "--jobs", "1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    failed = f"FAILED {tmp_path}/all.json::bad: last block hash: expected 0x{'11' * 32}"
    assert lines[0].startswith(failed)
    assert lines[1].startswith(f"FAILED {broken}::(file): unreadable: ")
    assert lines[2:4] == [
        "not run, unknown format: transaction_test (1 tests)",
        "not run, unknown network: Amsterdam (2 tests)",
    ]
    assert lines[4].startswith("1 passed, 2 failed, 3 not run; 2 files in ")


def test_a_folder_without_tests_ends_with_status_2(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "no test was run" in capsys.readouterr().err


def test_tests_are_chosen_by_text(tmp_path, capsys):
    path = write(tmp_path, "one.json", {"good": fixture_of(), "bad": wrong_fixture()})
    assert main([str(path), "--only", "one.json::good"]) == 0
    assert "1 passed, 0 failed" in capsys.readouterr().out


def test_largest_files_come_first(tmp_path):
    small, large = write(tmp_path, "a.json", {}), write(tmp_path, "b.json", {"a": 1})
    assert find_files(tmp_path) == [large, small]


def test_every_entry_of_a_state_test_is_a_test(tmp_path):
    path = write(tmp_path, "state.json", {"keeper": state_fixture("Cancun")})
    found = verdicts(path)
    assert [verdict.name for verdict in found][1] == "keeper [Cancun d0 g0 v1]"
    assert {verdict.status for verdict in found} == {Status.FAILED}
    assert found[0].detail.startswith("post-state root: expected 0x0000")


def test_a_crash_of_the_code_under_test_is_a_failure_even_where_rejection_is_due(
    tmp_path, monkeypatch
):
    def crash(*arguments, **options):
        raise OverflowError("too large")

    fixture = fixture_of()
    fixture["blocks"][0] = {**fixture["blocks"][0], "expectException": "X"}
    path = write(tmp_path, "one.json", {"test": fixture})
    monkeypatch.setattr("tests.consensus.chain.verify_block", crash)
    (verdict,) = verdicts(path)
    assert (verdict.status, verdict.detail) == (
        Status.FAILED,
        "crashed: OverflowError: too large",
    )


def test_what_is_no_fixture_is_named_after_what_it_has(tmp_path):
    path = write(
        tmp_path, "one.json", {"a": 5, "b": {"sealed": 1, "_info": {}}, "c": {}}
    )
    details = [(verdict.status, verdict.detail) for verdict in verdicts(path)]
    assert details == [
        (Status.UNKNOWN_FORMAT, "JSON int"),
        (Status.UNKNOWN_FORMAT, "fields sealed"),
        (Status.UNKNOWN_FORMAT, "no fields"),
    ]


def endless_fixture():
    """Return a state test with one entry that jumps back and forth for hours."""
    gas = 2**60
    fixture = state_fixture("Cancun", gasLimit=[hex(gas)] * 2, gasPrice="0x7")
    sender = fixture["transaction"]["sender"]
    fixture["pre"][sender]["balance"] = hex(gas * 10)
    fixture["pre"][f"0x{KEEPER.hex()}"] = account(code=bytes.fromhex("5b600056"))
    fixture["env"]["currentGasLimit"] = hex(gas)
    del fixture["post"]["Cancun"][1:]
    return fixture


def test_a_test_beyond_its_limit_fails_alone(tmp_path):
    document = {"a": fixture_of(), "b": endless_fixture(), "c": fixture_of()}
    path = write(tmp_path, "one.json", document)
    run = Pool([path], jobs=1, only="", limit_seconds=1)
    seen = [event[1] for event in run.events() if event is not None]
    assert [verdict.status for verdict in seen] == PASSED_FAILED_PASSED
    assert seen[1].name == "b [Cancun d0 g0 v0]"
    assert seen[1].detail == "not finished after 1 s"


def test_a_test_in_which_the_process_dies_fails_alone(tmp_path):
    document = {"a": fixture_of(), "b": endless_fixture(), "c": fixture_of()}
    path = write(tmp_path, "one.json", document)
    run = Pool([path], jobs=1, only="", limit_seconds=600)
    seen = []
    for event in run.events():
        if event is not None:
            seen.append(event[1])
        elif run.running and run.running[0].test.startswith("b "):
            run.running[0].process.kill()
    assert [verdict.status for verdict in seen] == PASSED_FAILED_PASSED
    assert seen[1].detail == "the process ended with status -9"


def test_the_line_of_progress_names_what_takes_long():
    worker = Running(None, None, Task(Path("x/BLAKE.json")), 0, "max", 0.0)
    worker.since = time.monotonic() - 61
    counts = Counter({Status.PASSED: 5, Status.FAILED: 1})
    assert progress(counts, []) == "… 5 passed, 1 failed"
    line = progress(counts, [worker])
    assert line == "… 5 passed, 1 failed; running BLAKE.json::max (61 s)"


@pytest.mark.parametrize("option", ["--only", "--jobs", "--limit-seconds"])
def test_options_are_explained(option, capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert option in capsys.readouterr().out
