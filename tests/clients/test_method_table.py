"""docs/clients.md has the table that a run of the clients produces."""

from __future__ import annotations

import re

import pytest
from web3 import Web3

from nodeapi.methods import registry
from tests.clients import method_table
from tests.clients.method_rows import Rows
from tests.clients.programs import Cast, Ethers, Viem
from tests.clients.token_chain import TokenChain


def test_table_is_the_result_of_a_run(
    tokens_url: str,
    tokens: TokenChain,
    cast: Cast,
    viem: Viem,
    ethers: Ethers,
    request: pytest.FixtureRequest,
) -> None:
    provider = Web3.HTTPProvider(tokens_url)
    clients = cast, Web3(provider), viem, ethers
    found = method_table.table(tokens_url, Rows(tokens_url, tokens, clients).all())
    if request.config.getoption("--write-clients-table"):
        method_table.write(found)
    assert method_table.written() == found


def test_table_has_the_25_methods_that_are_served() -> None:
    """This test needs no client."""
    methods = re.findall(r"^\| `(\w+)` \|", method_table.written(), re.MULTILINE)
    assert len(methods) == len(set(methods)) == 25
    assert set(methods) <= {method.name for method in registry}
