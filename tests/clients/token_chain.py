"""A chain whose contracts third-party clients read: a token, a vault, and others.

From block 2 on, block n transfers n tokens and 10 n wei to BOB, and puts n into the
vault's mapping under the key n.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eth_typing import Address

from abi.encoding import call_data, mapping_slot
from evm.blocks import Block
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains, copies

SLUG = "tokens"
CHAIN_ID = 202_611
SUPPLY = 10**12
FIRST = 2
"""Number of the first block with transfers."""
WEI_PER_TOKEN = 10

ALICE, BOB, CAROL = Signer("alice"), Signer("bob"), Signer("carol")

GENESIS = fork_genesis("prague", ALICE, chain_id=CHAIN_ID)

TOKEN_ABI: list[dict[str, Any]] = [
    {
        "type": "function",
        "name": "balanceOf",
        "stateMutability": "view",
        "inputs": [{"name": "owner", "type": "address"}],
        "outputs": [{"name": "", "type": "uint256"}],
    },
    {
        "type": "function",
        "name": "totalSupply",
        "stateMutability": "view",
        "inputs": [],
        "outputs": [{"name": "", "type": "uint256"}],
    },
    {
        "type": "function",
        "name": "transfer",
        "stateMutability": "nonpayable",
        "inputs": [
            {"name": "to", "type": "address"},
            {"name": "value", "type": "uint256"},
        ],
        "outputs": [{"name": "", "type": "bool"}],
    },
    {
        "type": "event",
        "name": "Transfer",
        "anonymous": False,
        "inputs": [
            {"name": "from", "type": "address", "indexed": True},
            {"name": "to", "type": "address", "indexed": True},
            {"name": "value", "type": "uint256", "indexed": False},
        ],
    },
]
TRANSFER_EVENT = TOKEN_ABI[-1]


class TokenChain:
    """The chain, imported as the network SLUG.

    others: addresses of the contracts that the caller has requested.
    """

    def __init__(self, blocks: int, init_codes: Sequence[bytes] = ()) -> None:
        """Build and import a chain.

        blocks: number of blocks with transfers. init_codes: of further contracts.
        """
        self.builder = ChainBuilder(GENESIS)
        code = contract("token").init_code(SUPPLY.to_bytes(32))
        self.token = self.builder.deploy(ALICE, code)
        self.vault = self.builder.deploy(ALICE, contract("vault").init_code())
        self.others = [
            self.builder.deploy(ALICE, code, gas=5_000_000) for code in init_codes
        ]
        self.builder.block()
        for _ in range(blocks):
            self._build()
        copies.chain(SLUG, GENESIS, self.builder.blocks)

    @property
    def head(self) -> int:
        """Number of the newest block."""
        return self.builder.head.number

    @property
    def blocks(self) -> list[Block]:
        """All blocks after the genesis."""
        return self.builder.blocks

    def grow(self) -> Block:
        """Build one more block, import it, and return it."""
        block = self._build()
        chains.import_blocks(SLUG, GENESIS, [block])
        return block

    def balance(self, number: int) -> int:
        """Return BOB's tokens after a block."""
        return sum(range(FIRST, number + 1))

    def gas_used(self, number: int) -> int:
        """Return the gas that the token's transfer in a block used."""
        return self.builder.outcomes[number - 1].receipts[0].gas_used

    def _build(self) -> Block:
        number = self.head + 1
        transfer = call_data("transfer(address,uint256)", BOB.address, number)
        self.builder.send(ALICE, self.token, transfer)
        self.builder.send(ALICE, BOB.address, value=WEI_PER_TOKEN * number)
        put = call_data("put(uint256,uint256)", number, number)
        self.builder.send(ALICE, self.vault, put)
        return self.builder.block()


def balance_slot(owner: Address) -> int:
    """Return the token's storage slot with an account's balance."""
    return mapping_slot(owner, 0)
