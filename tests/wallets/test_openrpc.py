"""The wallet's OpenRPC document matches the wallet's messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft7Validator, ValidationError

from tests.support.wallet import Rig, served_chains
from wallets.methods.outer import session_methods
from wallets.openrpc import error_classes
from wallets.registries import chain_methods, own_methods
from wallets.sockets.frames import notification_frame, write_session_changed

Document = dict[str, Any]


@pytest.fixture
def document(db: None) -> Document:
    served_chains()
    answer = Client(headers={"host": "wallet.example"}).get("/wallet/openrpc.json")
    assert answer["Access-Control-Allow-Origin"] == "*"
    found: Document = answer.json()
    return found


def described(document: Document, name: str) -> Document:
    found: Document = next(one for one in document["methods"] if one["name"] == name)
    return found


def check_params(document: Document, name: str, given: Document) -> None:
    params = {one["name"]: one for one in described(document, name)["params"]}
    assert set(given) <= set(params)
    assert {n for n, one in params.items() if one["required"]} <= set(given)
    for key, value in given.items():
        Draft7Validator(params[key]["schema"]).validate(value)


def test_all_methods_events_errors_and_scopes_are_described(document: Document):
    assert document["servers"] == [
        {"name": "wallet", "url": "ws://wallet.example/ws/dapp"}
    ]
    events = {"wallet_sessionChanged", "wallet_notify"}
    assert {one["name"] for one in document["methods"]} == events | {
        method.name for method in session_methods
    }
    for one in document["methods"]:
        assert ("result" in one) == (one["name"] not in events)
        assert one["summary"].endswith(".")
    assert [one["name"] for one in document["x-invoked"]] == [
        *(method.name for method in chain_methods),
        *(method.name for method in own_methods),
    ]
    assert next(iter(document["x-scopes"])) == "eip155:1"
    codes = {error["code"] for error in document["components"]["errors"].values()}
    assert codes == {kind.code for kind in error_classes()}
    named = {
        one["$ref"]
        for method in document["methods"]
        for one in method.get("errors", ())
    }
    assert named == {f"#/components/errors/{kind.__name__}" for kind in error_classes()}


def test_answers_and_events_are_as_described(rig: Rig):
    answer = Client().get("/wallet/openrpc.json").json()
    created = rig.create("eip155:1", "eip155:137", "wallet", "wallet:eip155")
    for name in ("wallet_createSession", "wallet_getSession"):
        schema = described(answer, name)["result"]["schema"]
        Draft7Validator(schema).validate(created)
        with pytest.raises(ValidationError):
            Draft7Validator(schema).validate(
                {"sessionScopes": created["sessionScopes"]}
            )
    for scopes in (created["sessionScopes"], {}):
        event = json.loads(write_session_changed(json.dumps(scopes).encode()))
        check_params(answer, event["method"], event["params"])
    before, behind = notification_frame("eip155:1", "0x" + "00" * 16)
    event = json.loads(before + b'{"number":"0x1"}' + behind)
    check_params(answer, event["method"], event["params"])


@pytest.mark.parametrize(
    "name", ["!!eip155:1 x", "eip155:1\nx", "eip155", "EIP155:1", "ei:1", ""]
)
def test_patterns_hold_for_all_of_a_text(document: Document, name: str):
    scope = {"accounts": [], "methods": [], "notifications": []}
    with pytest.raises(ValidationError):
        check_params(
            document, "wallet_sessionChanged", {"sessionScopes": {name: scope}}
        )
    call = {"scope": name, "request": {"method": "eth_chainId"}}
    with pytest.raises(ValidationError):
        check_params(document, "wallet_invokeMethod", call)
    # Requests may contain meaningless scopes, which are omitted.
    asked = {"optionalScopes": {name: {"methods": [], "notifications": []}}}
    check_params(document, "wallet_createSession", asked)
