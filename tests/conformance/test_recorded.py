"""Recorded answers of ethereum/execution-apis, against the live endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from networks.models import Network
from networks.services import configure_network
from nodeapi.chain.forkchoice import parse_forkchoice
from nodeapi.methods import registry
from tests.support import chains, execution_apis
from tests.support.live import Api, live_service

SERVED = {method.name for method in registry}

METHODS = SERVED - {"txpool_content", "txpool_status"}
"""The methods whose answers are compared. What a pool contains depends on the cases that
were sent before."""


@pytest.fixture(scope="module")
def api(module_db: None) -> Iterator[Api]:
    folder = execution_apis.folder()
    forkchoice = parse_forkchoice((folder / "headfcu.json").read_text())
    chains.import_blocks(
        "hive",
        execution_apis.genesis(),
        execution_apis.raw_blocks(),
        forkchoice=forkchoice,
    )
    network = Network.objects.get(slug="hive")
    configure_network(network=network, emit_total_difficulty=False)
    with live_service() as live, live.api(key=live.new_key(may_trace=True)) as api:
        yield api


def recorded() -> list[Any]:
    """Return the recorded calls of the methods that are served, as parameters."""
    try:
        folder = execution_apis.folder()
    except pytest.skip.Exception as absent:
        return [pytest.param("", "", marks=pytest.mark.skip(reason=str(absent)))]
    found = []
    for path in sorted(folder.glob("*/*.io")):
        if path.parent.name in METHODS:
            name = f"{path.parent.name}/{path.stem}"
            for sent, answered in exchanges(path.read_text()):
                found.append(pytest.param(sent, answered, id=name))
    return found


def exchanges(text: str) -> Iterator[tuple[str, str]]:
    """Yield each request of a recording with its answer."""
    sent = ""
    for line in text.splitlines():
        if line.startswith(">> "):
            sent = line[3:]
        elif line.startswith("<< "):
            yield sent, line[3:]


def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that stands twice in an object."""
    document = dict(members)
    assert len(document) == len(members), members
    return document


def without_html_escapes(document: str) -> str:
    """Return JSON from Go, which escapes the characters that HTML treats specially."""
    for character in "<>&":
        document = document.replace(f"\\u{ord(character):04x}", character)
    return document


@pytest.mark.parametrize(("sent", "answered"), recorded())
def test_answer_is_the_recorded_one(api: Api, sent: str, answered: str) -> None:
    response = api.post(sent.encode())
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    expected = json.loads(answered)
    if "error" in expected:
        assert response.text == without_html_escapes(answered)
    else:
        assert json.loads(response.content, object_pairs_hook=pairs) == expected


def test_recordings_of_each_documented_method_were_found() -> None:
    execution_apis.folder()
    found = {json.loads(case.values[0])["method"] for case in recorded()}
    assert found >= {
        "eth_getStorageAt",
        "eth_getBlockByHash",
        "eth_getTransactionByBlockHashAndIndex",
        "debug_traceBlockByHash",
        "debug_traceBlockByNumber",
    }


def test_methods_that_are_not_served_say_so(api: Api) -> None:
    unserved = {path.parent.name for path in execution_apis.folder().glob("*/*.io")}
    for method in sorted(unserved - SERVED):
        code, message = api.error(method)
        assert code == -32601
        assert message == f"the method {method} does not exist/is not available"
