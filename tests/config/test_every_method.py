"""Rules for every method of the registry, including methods that are added later."""

from __future__ import annotations

import copy
import html
import re
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft7Validator

from evm.blocks import decode_block
from evm.transactions import decode_transaction
from jsonrpc.registry import Method
from keys.dashboard.allowlists import method_choices
from keys.models import User
from keys.permits import TRACE
from keys.services import create_key
from networks.models import Network
from nodeapi.methods import registry
from nodeapi.schemas import openrpc
from nodeapi.schemas.sample_arguments import ARGUMENTS, EMPTY_BLOCK, SIGNED
from tests.support.wallet import served_chains
from wallets.offers import wallet_offer
from wallets.permissions import CHAIN_METHODS

DOCUMENT = openrpc.document(registry)
DESCRIBED = {one["name"]: one for one in DOCUMENT["methods"]}

OF_NO_CHAIN = {
    "debug_getBadBlocks",
    "eth_accounts",
    "eth_pendingTransactions",
    "net_listening",
    "net_peerCount",
    "rpc.discover",
    "rpc_modules",
    "web3_sha3",
}
"""Read methods that dapps can't call: they describe the node, or compute something. The
accounts of the node are not those of the user."""

every_method = pytest.mark.parametrize(
    "method", list(registry), ids=lambda one: one.name
)


def is_valid(value: Any, schema: Any) -> bool:
    whole = {**schema, "components": DOCUMENT["components"]}
    return bool(Draft7Validator(whole).is_valid(value))


@every_method
def test_method_has_schemas_a_summary_and_a_price(method: Method) -> None:
    described = DESCRIBED[method.name]
    assert described["summary"].endswith(".")
    assert described["x-credits"] == method.credits >= 1
    assert described["result"]["name"]
    for one in (described["result"], *described["params"]):
        assert one["schema"], one["name"]
        Draft7Validator.check_schema(one["schema"])


@every_method
def test_example_of_the_document_has_the_form_of_the_parameters(method: Method) -> None:
    (example,) = DESCRIBED[method.name]["examples"]
    given = {one["name"]: one["value"] for one in example["params"]}
    params = method.signature.params
    assert given.keys() <= {param.name for param in params}
    assert all(param.name in given for param in params if param.required)
    for param in params:
        if param.name in given:
            assert is_valid(given[param.name], param.schema), param.name
    # Raises InvalidParams if an argument is invalid.
    method.signature.decode(copy.deepcopy([given.get(param.name) for param in params]))


def test_encoded_examples_can_be_decoded() -> None:
    assert decode_block(bytes.fromhex(EMPTY_BLOCK[2:])).transactions == ()
    sent = decode_transaction(bytes.fromhex(SIGNED[2:]))
    assert f"0x{sent.sender.hex()}" == "0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f"
    named = {param.name for method in registry for param in method.signature.params}
    testing = {"parentHash", "payloadAttributes"}
    assert ARGUMENTS.keys() - testing <= named


@pytest.fixture
def pages(db: None) -> dict[str, str]:
    """Return the pages that list every method."""
    key = create_key(owner=User.objects.create_user("customer@example.org"))
    client = Client()
    client.force_login(key.owner)
    addresses = {
        "networks": "/docs/networks",
        "limits": "/docs/limits",
        "allowlists": f"/dashboard/keys/{key.pk}/allowlists",
    }
    return {
        name: html.unescape(client.get(address).content.decode())
        for name, address in addresses.items()
    }


def test_pages_have_a_place_for_each_method(pages: dict[str, str]) -> None:
    console = r'href="/docs/console\?method=([\w.]+)"'
    names = sorted(method.name for method in registry)
    assert sorted(re.findall(console, pages["networks"])) == names
    priced = re.findall(r"<code>([\w.]+)</code></td><td[^>]*>\d", pages["limits"])
    assert sorted(priced) == names
    chosen = re.findall(r'name="method" value="([\w.]+)"', pages["allowlists"])
    assert sorted(chosen) == names
    assert [one.name for one in method_choices([]).choices] == names


@pytest.mark.django_db
def test_wallet_serves_each_read_and_nothing_else_of_the_node() -> None:
    served_chains()
    granted = {
        name
        for known in wallet_offer(can_sign=True).values()
        for name in known.all_methods
    }
    free = {method.name for method in registry if method.capability != TRACE}
    assert free - set(CHAIN_METHODS) == OF_NO_CHAIN
    of_upstreams = {"eth_sendRawTransactionSync"}
    assert not Network.objects.filter(upstreams__isnull=False).exists()
    assert free - granted == OF_NO_CHAIN | of_upstreams
