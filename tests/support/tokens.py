"""A chain of token transfers, each with a log."""

from __future__ import annotations

from abi.encoding import call_data
from evm.blocks import Block
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import fork_genesis
from samples.signers import Signer

ALICE, BOB = Signer("alice"), Signer("bob")
OTHER = bytes(19) + b"\x01"

GENESIS = fork_genesis("shanghai", ALICE)


class Tokens:
    """A chain whose blocks transfer tokens, each transfer with a log."""

    def __init__(self) -> None:
        self.chain = ChainBuilder(GENESIS)
        token = contract("token").init_code((10**9).to_bytes(32))
        self.token = self.chain.deploy(ALICE, token)
        self.chain.block()

    def grow(self, chain: ChainBuilder, blocks: int, amount: int) -> list[Block]:
        """Add blocks with two transfers of an amount, and return them."""
        for _ in range(blocks):
            for receiver in (BOB.address, OTHER):
                transfer = call_data("transfer(address,uint256)", receiver, amount)
                chain.send(ALICE, self.token, transfer)
            chain.block()
        return chain.blocks[-blocks:]


def error_reason(reason: str) -> bytes:
    """Return the return data of `revert(reason)`. reason: at most 32 bytes of ASCII."""
    text = reason.encode()
    return call_data("Error(string)", 32, len(text)) + text.ljust(32, b"\0")
