"""The sample chain's builder with its accounts and contracts, shared by all scenes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from abi.encoding import call_data
from evm.world import EMPTY_CODE_HASH
from samples.builder import ChainBuilder, TransactionOptions
from samples.signers import Signer

if TYPE_CHECKING:
    from eth_typing import Address

    from evm.blocks import Block
    from evm.transactions import Transaction

HOLDERS = 40
"""Number of accounts that send tokens to each other."""

ETHER = 10**18

ALICE = Signer("alice")
BOB = Signer("bob")
CAROL = Signer("carol")
DAVE = Signer("dave")
HOLDER_SIGNERS = tuple(Signer(f"holder {i}") for i in range(HOLDERS))


@dataclass(frozen=True, slots=True)
class Note:
    """Description of a block of the sample chain."""

    number: int
    fork: str
    text: str
    statuses: tuple[int | None, ...]
    """Status of each transaction: 1 success, 0 failure, None before Byzantium."""


class Story:
    """The sample chain with a note on each block.

    The note is also the block's extra data.
    """

    def __init__(self, genesis: dict[str, Any]) -> None:
        self.chain = ChainBuilder(genesis)
        self.notes: list[Note] = []
        self.contracts: dict[str, Address] = {}

    def __getitem__(self, contract: str) -> Address:
        """Return the address of a contract that `deploy` has named."""
        return self.contracts[contract]

    def has_code(self, address: Address) -> bool:
        """Return whether the address has code now."""
        account = self.chain.state.account(address)
        return account is not None and account.code_hash != EMPTY_CODE_HASH

    def send(
        self,
        sender: Signer,
        to: Address,
        data: bytes = b"",
        **options: Unpack[TransactionOptions],
    ) -> Transaction:
        """Add a transaction to the next block."""
        return self.chain.send(sender, to, data, **options)

    def call(
        self,
        sender: Signer,
        contract: str,
        signature: str,
        *arguments: int | bytes,
        **options: Unpack[TransactionOptions],
    ) -> Transaction:
        """Add a call of a deployed contract's function to the next block."""
        data = call_data(signature, *arguments)
        return self.chain.send(sender, self[contract], data, **options)

    def deploy(
        self,
        name: str,
        init_code: bytes,
        sender: Signer = ALICE,
        **options: Unpack[TransactionOptions],
    ) -> Address:
        """Add a creation transaction to the next block.

        `story[name]` is then its address.
        """
        address = self.chain.deploy(sender, init_code, **options)
        self.contracts[name] = address
        return address

    def transfers(self, count: int) -> None:
        """Add token transfers between the holders to the next block."""
        for i in range(count):
            sender = HOLDER_SIGNERS[i % HOLDERS]
            receiver = HOLDER_SIGNERS[(7 * i + 3) % HOLDERS].address
            self.call(
                sender,
                "token",
                "transfer(address,uint256)",
                receiver,
                1 + i,
                gas=100_000,
            )

    def block(self, note: str, **header: Any) -> Block:
        """Make the next block. note: at most 32 bytes, used as extra data."""
        fork = self.chain.next_fork()
        block = self.chain.block(extra_data=note.encode(), **header)
        statuses = tuple(r.status for r in self.chain.outcomes[-1].receipts)
        self.notes.append(Note(block.header.number, fork.name, note, statuses))
        return block
