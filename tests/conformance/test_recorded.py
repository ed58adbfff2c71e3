"""Recorded responses of ethereum/execution-apis, compared with the live endpoint's.

`pytest tests/conformance --execution-apis DIR` takes the recordings from another folder.
Answers are compared as hive's rpc-compat does: the texts of errors may differ. If only the
specification counts (`speconly`), a result is checked against the method's schema. The
recordings are older than geth 1.17.10; where it answers differently, so do we.
Source: https://github.com/ethereum/hive/blob/master/simulators/ethereum/rpc-compat/main.go
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft7Validator

from networks.models import Network
from networks.services import configure_network
from nodeapi.chain.forkchoice import parse_forkchoice
from nodeapi.methods import registry
from nodeapi.schemas.building import COMPONENTS
from tests.support import chains, execution_apis
from tests.support.live import Api, live_service

SERVED = {method.name for method in registry}


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
    setting = {"NODEAPI_TESTING_METHODS": "on"}
    with (
        live_service(env=setting) as live,
        live.api(key=live.new_key(may_trace=True)) as api,
    ):
        yield api


class Exchange(NamedTuple):
    """A recorded request with its answer.

    is_spec_only: whether a different result is valid if it matches the schema.
    """

    sent: str
    answered: str
    is_spec_only: bool


def exchanges(text: str) -> Iterator[Exchange]:
    """Yield each request of a recording with its answer."""
    sent, is_spec_only = "", False
    for line in text.splitlines():
        if line.startswith("// speconly"):
            is_spec_only = True
        elif line.startswith(">> "):
            sent = line[3:]
        elif line.startswith("<< "):
            yield Exchange(sent, line[3:], is_spec_only)


def without_texts(value: Any) -> Any:
    """Return JSON without the messages of error objects."""
    if isinstance(value, list):
        return [without_texts(each) for each in value]
    if not isinstance(value, dict):
        return value
    members = {name: without_texts(each) for name, each in value.items()}
    if isinstance(members.get("error"), dict):
        members["error"].pop("message", None)
    return members


def check_result(method: str, result: Any) -> None:
    """Check a result against the schema of the OpenRPC document."""
    found = registry.find(method)
    if found is None:
        assert method == execution_apis.TESTING_METHOD
        assert isinstance(result, dict)
        return
    schema = {**found.result["schema"], "components": {"schemas": COMPONENTS}}
    Draft7Validator(schema).validate(result)


def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Reject an object with duplicate names."""
    document = dict(members)
    assert len(document) == len(members), members
    return document


def nonce_has_max_value(answer: Any) -> None:
    """Reject a sender whose nonce can't rise, also without validation (EIP-2681)."""
    del answer["result"]
    answer["error"] = {"code": -32603}


def reverted_logs_free_their_index(answer: Any) -> None:
    """Give the index of a reverted call's logs to the next log."""
    for block in answer["result"][9:11]:
        (log,) = block["calls"][6]["logs"]
        assert log["logIndex"] == "0x6"
        log["logIndex"] = "0x0"


DIFFERENCES: Mapping[str, Callable[[Any], None]] = {
    "ethSimulate-overflow-nonce": nonce_has_max_value,
    "ethSimulate-use-as-many-features-as-possible": reverted_logs_free_their_index,
}
"""What geth 1.17.10 answers differently, by recording: functions that change the answer.

Source: go-ethereum v1.17.10, internal/ethapi/simulate.go, `processBlock`;
internal/ethapi/logtracer.go, `onExit`
"""


def test_answer_is_the_recorded_one(api: Api, recorded_case: Path) -> None:
    cases = list(exchanges(recorded_case.read_text()))
    assert cases
    for sent, answered, is_spec_only in cases:
        response = api.post(sent.encode())
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json"
        found = json.loads(response.content, object_pairs_hook=pairs)
        expected = json.loads(answered)
        if recorded_case.stem in DIFFERENCES:
            DIFFERENCES[recorded_case.stem](expected)
        if is_spec_only and "result" in expected:
            check_result(json.loads(sent)["method"], found["result"])
        else:
            assert without_texts(found) == without_texts(expected)


def test_recordings_of_each_documented_method_were_found() -> None:
    found = {path.parent.name for path in execution_apis.folder().glob("*/*.io")}
    assert found >= {
        "eth_getStorageAt",
        "eth_getBlockByHash",
        "eth_getTransactionByBlockHashAndIndex",
        "debug_traceBlockByHash",
        "debug_traceBlockByNumber",
    }


def test_methods_that_are_not_served_say_so(api: Api) -> None:
    unserved = {path.parent.name for path in execution_apis.folder().glob("*/*.io")}
    for method in sorted(unserved - SERVED - {execution_apis.TESTING_METHOD}):
        code, message = api.error(method)
        assert code == -32601
        assert message == f"the method {method} does not exist/is not available"
