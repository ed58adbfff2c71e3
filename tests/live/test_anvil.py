"""The service follows anvil and its reorganisations. It has to rebuild anvil's blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from web3 import Web3

from samples.contracts import contract
from tests.live.mirror import Mirror
from tests.live.nodes import Anvil, RpcError
from tests.live.programs import ANVIL
from tests.live.service import Service, serving
from tests.live.traffic import function, words
from tests.support.waiting import wait_until

SENDER: LocalAccount = Account.from_key(b"\7" * 32)


@pytest.fixture(scope="module")
def anvil(
    live_blocks: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Anvil, Service, Mirror]]:
    if not ANVIL.exists():
        pytest.skip("npm has not installed anvil: `make test-live` does, with npm")
    folder = tmp_path_factory.mktemp("anvil")
    with closing(Anvil(folder)) as node:
        node.start()
        # anvil keeps an account that receives a fee of zero, which EIP-161 removes.
        node.call("anvil_setCoinbase", SENDER.address)
        log = folder / "service.log"
        with (
            serving(node.genesis(), [node.url], log) as service,
            closing(Mirror(service.socket_url)) as mirror,
        ):
            yield node, service, mirror


def send(node: Anvil, service: Service, nonce: int, **fields: Any) -> dict[str, Any]:
    """Send a transaction through the service, mine it, and return its receipt."""
    free = {"maxFeePerGas": 0, "maxPriorityFeePerGas": 0, "gas": 2_000_000}
    common = {"chainId": Anvil.CHAIN_ID, "nonce": nonce, "value": 0, **free}
    signed = SENDER.sign_transaction({**common, **fields})
    found = service.call("eth_sendRawTransaction", signed.raw_transaction.to_0x_hex())
    node.mine()
    receipt: dict[str, Any] = wait_until(
        lambda: service.call("eth_getTransactionReceipt", found)
    )
    assert receipt["status"] == "0x1"
    return receipt


def test_two_reorganisations_of_anvil_are_followed(
    anvil: tuple[Anvil, Service, Mirror],
) -> None:
    node, service, mirror = anvil
    with pytest.raises(RpcError, match="Method not found"):
        node.call("debug_getRawBlock", "latest")
    code = contract("token").init_code(words(10**6))
    token = send(node, service, 0, data=code)["contractAddress"]
    token = Web3.to_checksum_address(token)
    for nonce, depth in ((1, 1), (2, 3)):
        reorganise(anvil, token, nonce, depth)
    assert mirror.mistakes == []


def reorganise(
    anvil: tuple[Anvil, Service, Mirror], token: Any, nonce: int, depth: int
) -> None:
    """Let anvil replace `depth` blocks, the first of which has a token transfer."""
    node, service, mirror = anvil
    data = function("transfer(address,uint256)", 7, 1)
    receipt = send(node, service, nonce, to=token, data=data)
    number = int(receipt["blockNumber"], 16)
    while node.head() < number + depth - 1:
        node.mine()
    old = node.call("eth_getBlockByNumber", "latest", False)["hash"]
    wait_until(lambda: is_at_head(node, service, mirror))
    before = service.reorganisations()
    node.call("anvil_reorg", depth, [])
    (made,) = wait_until(lambda: service.reorganisations()[len(before) :])
    new = node.call("eth_getBlockByNumber", "latest", False)["hash"]
    assert made == (number - 1, old, new, depth, depth)
    wait_until(lambda: is_at_head(node, service, mirror))
    assert mirror.removed[-1] == {**receipt["logs"][0], "removed": True}
    transaction = receipt["transactionHash"]
    assert service.call("eth_getTransactionReceipt", transaction) is None
    blocks = [("eth_getBlockByNumber", hex(n), False) for n in range(number + 1)]
    ours, theirs = (
        [answer["result"]["hash"] for answer in each.batch(blocks)]
        for each in (service, node)
    )
    assert ours == theirs
    # The nonce is unused again.
    assert send(node, service, nonce, to=token, data=data)


def is_at_head(node: Anvil, service: Service, mirror: Mirror) -> bool:
    """Return whether the service and its subscriber have anvil's newest block."""
    found = node.call("eth_getBlockByNumber", "latest", False)["hash"]
    head = service.call("eth_getBlockByNumber", "latest", False)["hash"]
    return bool(found == head == mirror.head()[1])
