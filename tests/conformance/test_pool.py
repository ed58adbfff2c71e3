"""The local pool and built blocks against recordings of execution-apis."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import chains, execution_apis
from tests.support.live import Api, live_service

BUILD = execution_apis.TESTING_METHOD
SEND = "eth_sendRawTransaction"
SETTING = {"NODEAPI_TESTING_METHODS": "on"}


@pytest.fixture
def api(transactional_db: None) -> Iterator[Api]:
    chains.import_blocks("hive", execution_apis.genesis(), execution_apis.raw_blocks())
    with live_service(env=SETTING) as live, live.api() as api:
        yield api


def recorded(method: str) -> list[tuple[list[Any], Any]]:
    """Return parameters and results of all recorded calls of a method.

    A file may contain calls of several methods.
    """
    found = []
    for path in sorted(execution_apis.folder().glob("*/*.io")):
        request: dict[str, Any] = {}
        for line in path.read_text().splitlines():
            if line.startswith(">> "):
                request = json.loads(line[3:])
            elif line.startswith("<< ") and request["method"] == method:
                answer = json.loads(line[3:])
                if "result" in answer:
                    found.append((request.get("params", []), answer["result"]))
    return found


def from_pool() -> tuple[list[Any], dict[str, Any]]:
    """Return parameters and result of a block that was built from a pool."""
    for params, result in recorded(BUILD):
        if params[2] is None:
            return params, result
    pytest.skip("no recording of a block from a pool")


def by_hash(content: Any) -> dict[str, Any]:
    """Return the transactions of a pool by hash."""
    return {
        transaction["hash"]: transaction
        for senders in content.values()
        for own in senders.values()
        for transaction in own.values()
    }


def test_block_from_the_pool_is_the_recorded_one(api: Api) -> None:
    """Blocks are built without the other recorded transactions, whose tips are too low."""
    params, expected = from_pool()
    sent = {raw for (raw,), _ in recorded(SEND) if not raw.startswith("0x03")}
    sent |= set(expected["executionPayload"]["transactions"])
    for raw in sent:
        api.result(SEND, raw)
    assert api.result(BUILD, *params) == expected
    # It is not imported, and its transactions stay in the pool.
    assert api.result("eth_blockNumber") == "0x36"
    assert len(by_hash(api.result("txpool_content"))) == len(sent)


def test_content_is_the_recorded_one(api: Api) -> None:
    _, built = from_pool()
    for raw in built["executionPayload"]["transactions"]:
        api.result(SEND, raw)
    for params, _ in recorded(SEND):
        answer = api.ask(SEND, *params)
        assert "result" in answer or answer["error"]["message"] == "already known"
    ((_, expected),) = recorded("txpool_content")
    assert api.result("txpool_content") == expected


def test_given_transactions_make_the_same_block(api: Api) -> None:
    params, expected = from_pool()
    payload = expected["executionPayload"]
    given = payload["transactions"]
    assert api.result(BUILD, *params[:2], given, params[3]) == expected
    empty = api.result(BUILD, *params[:2], [])["executionPayload"]
    for name in ("parentHash", "gasLimit", "baseFeePerGas", "blockNumber"):
        assert empty[name] == payload[name]
    assert (empty["gasUsed"], empty["transactions"]) == ("0x0", [])
    assert empty["stateRoot"] != payload["stateRoot"]


def test_method_does_not_exist_without_the_setting(transactional_db: None) -> None:
    chains.import_blocks("hive", execution_apis.genesis(), execution_apis.raw_blocks())
    with live_service() as live, live.api() as api:
        code, message = api.error(BUILD, *from_pool()[0])
        assert code == -32601
        assert BUILD in message
        methods = api.result("rpc.discover")["methods"]
        assert BUILD not in {method["name"] for method in methods}
