"""anvil forks the chain of the service, and reads earlier state from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web3 import Web3
from web3.providers import HTTPProvider

from evm.hexadecimal import to_hex
from tests.clients.programs import ANVIL
from tests.clients.token_chain import ALICE, BOB, FIRST, TOKEN_ABI, TokenChain
from tests.live.nodes import Node

A, B = (Web3.to_checksum_address(signer.address) for signer in (ALICE, BOB))


class ForkedAnvil(Node):
    """anvil that forks a chain at its newest block.

    source: JSON-RPC URL of the chain.
    """

    def __init__(self, folder: Path, source: str) -> None:
        super().__init__(folder)
        self._source = source

    def command(self) -> list[str]:
        return [
            *(str(ANVIL), "--fork-url", self._source, "--no-storage-caching"),
            *("--port", str(self.port), "--hardfork", "prague", "--accounts", "1"),
        ]


@pytest.fixture(scope="module")
def anvil(
    tokens_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ForkedAnvil]:
    if not ANVIL.exists():
        pytest.skip("npm has anvil for Linux on x86-64 alone")
    node = ForkedAnvil(tmp_path_factory.mktemp("anvil"), tokens_url)
    try:
        node.start()
        yield node
    finally:
        node.close()


def token_at(url: str, tokens: TokenChain) -> Any:
    """Return web3.py's contract for the token at a node."""
    address = Web3.to_checksum_address(tokens.token)
    return Web3(HTTPProvider(url)).eth.contract(address=address, abi=TOKEN_ABI)


def test_fork_has_the_state_of_the_chain(
    anvil: ForkedAnvil, tokens: TokenChain
) -> None:
    w3: Any = Web3(HTTPProvider(anvil.url))
    token = token_at(anvil.url, tokens)
    head = tokens.head
    block = w3.eth.get_block(head)
    assert block["hash"] == tokens.blocks[head - 1].header.hash
    for number in range(FIRST, head + 1):
        held = token.functions.balanceOf(B).call(block_identifier=number)
        assert held == tokens.balance(number)
    events = token.events.Transfer.get_logs(
        from_block=0, to_block=head, argument_filters={"to": B}
    )
    assert [event.args.value for event in events] == list(range(FIRST, head + 1))


def test_transactions_of_the_fork_stay_in_it(
    anvil: ForkedAnvil, tokens: TokenChain, tokens_url: str
) -> None:
    forked, served = token_at(anvil.url, tokens), token_at(tokens_url, tokens)
    before = forked.functions.balanceOf(B).call()
    anvil.call("anvil_impersonateAccount", A)
    sent = forked.functions.transfer(B, 5).transact({"from": A})
    receipt = forked.w3.eth.wait_for_transaction_receipt(sent)
    assert receipt["status"] == 1
    assert receipt["blockNumber"] > tokens.head
    assert forked.functions.balanceOf(B).call() == before + 5
    assert served.functions.balanceOf(B).call() == tokens.balance(tokens.head)


def test_traces_of_the_chain_are_passed_on(
    anvil: ForkedAnvil, tokens: TokenChain
) -> None:
    block = tokens.blocks[-2]  # anvil answers requests for the newest block itself
    transaction = block.transactions[0]
    found = anvil.call(
        "debug_traceTransaction", to_hex(transaction.hash), {"tracer": "callTracer"}
    )
    assert found["to"] == to_hex(tokens.token)
    entries = anvil.call("trace_block", hex(block.header.number))
    assert [entry["transactionHash"] for entry in entries] == [
        to_hex(each.hash) for each in block.transactions
    ]
