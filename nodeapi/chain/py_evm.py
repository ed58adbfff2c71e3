"""Execution of stored blocks by py-evm, the second opinion of `audit_blocks`.

py-evm's classes are used as they are, from Frontier to Prague: instructions, precompiled
contracts, transactions, receipts, withdrawals, requests and rewards are its own. Only
the place where it keeps accounts is replaced by `AccountDatabase`, because its own one
needs all trie nodes by their hashes. It has no part in the checks of headers.

py-evm was archived in September 2025: https://github.com/ethereum/py-evm
"""

from __future__ import annotations

import warnings
from itertools import islice
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import rlp
from eth.db.journal import get_next_checkpoint
from eth.db.witness import MetaWitness
from eth.exceptions import PyEVMError
from eth.vm import forks
from eth.vm.chain_context import ChainContext
from eth.vm.forks.prague.constants import DEPOSIT_CONTRACT_ADDRESS
from eth_typing import Address, Hash32
from eth_utils.exceptions import ValidationError

from evm.blocks import encode_block
from evm.chain_config import LADDER
from evm.errors import InvalidBlock
from evm.execution import Outcome
from evm.headers import ZERO_HASH
from evm.receipts import Log, Receipt
from evm.state_roots import StateRoots
from evm.world import World
from nodeapi.chain.position import ANCESTORS_KEPT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evm.state_trie import StateTrie
    from evm.world import StateReader
    from nodeapi.chain.replay import Origin

VMS: dict[str, Any] = {
    vm.fork.replace("-", "_"): vm
    for name, vm in vars(forks).items()
    if name.endswith("VM") and name != "LATEST_VM"
}
"""py-evm's class of each fork, by our name of the fork."""


class UnknownRules(Exception):
    """Raised for a block whose rules py-evm does not have."""


class AccountDatabase(World):
    """The accounts of a block in execution, as py-evm's `AccountDatabaseAPI` has them.

    Values, their journal and the tries are ours.
    """

    def __init__(self, state: StateReader, trie: StateTrie) -> None:
        """state, trie: those of the block's parent. Roots move the trie."""
        super().__init__(state)
        # py-evm decides which empty accounts it deletes.
        self.make_state_root = StateRoots(
            self, state, trie, clears_empty_accounts=False
        )
        self.state_root: Hash32 = ZERO_HASH
        self._checkpoints: dict[int, int] = {}

    def record(self) -> int:
        """Return a checkpoint, which no other journal of py-evm has."""
        checkpoint: int = get_next_checkpoint()
        self._checkpoints[checkpoint] = super().record()
        return checkpoint

    def discard(self, checkpoint: int) -> None:
        """Undo every change since the checkpoint."""
        super().discard(self._checkpoints[checkpoint])

    def commit(self, checkpoint: int) -> None:
        """Keep the changes since the checkpoint."""

    def persist(self) -> MetaWitness:
        """Compute the state root. Return the trie nodes that were read: none."""
        self.state_root = self.make_state_root()
        return MetaWitness(set(), {})

    def account_has_code_or_nonce(self, address: Address) -> bool:
        """Return whether a creation at the address fails."""
        return self.is_occupied(address, by_storage=False)

    def get_storage(
        self, address: Address, slot: int, from_journal: bool = True
    ) -> int:
        """Return a slot's value, or the one when the transaction began."""
        if from_journal:
            return super().get_storage(address, slot)
        return self.original_storage(address, slot)


def state_class(vm: Any) -> Any:
    """Return the class of a fork's state, which is made with an `AccountDatabase`."""
    # py-evm makes the accounts from a database of trie nodes and the state root.
    as_it_is = staticmethod(lambda accounts, state_root: accounts)
    return type("State", (vm.get_state_class(),), {"account_db_class": as_it_is})


def execute(origin: Origin, trie: StateTrie) -> tuple[Outcome, Hash32]:
    """Execute a block. Return the outcome and the state root.

    trie: at the parent's state. It is moved to the block's state.

    The outcome has no requests if the network has a deposit contract of its own, because
    py-evm only reads mainnet's.

    Raises: UnknownRules; InvalidBlock if py-evm refuses the block.
    """
    header, config = origin.block.header, origin.config
    vm_class = _vm_class(origin)
    receipts: tuple[Any, ...] = ()
    database = SimpleNamespace(
        db=AccountDatabase(origin.state, trie),
        get_receipts=lambda header, builder: receipts,
    )
    try:
        # Each SELFDESTRUCT warns, because a later fork may change it.
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            block = rlp.decode(encode_block(origin.block), vm_class.get_block_class())
            vm = vm_class(block.header, database, ChainContext(config.chain_id), None)
            if config.is_dao_fork(header.number):
                vm.configure_header()
            vm.block_preprocessing(block)
            _, receipts, _ = vm.apply_all_transactions(
                block.transactions, block.header.copy(gas_used=0, bloom=0)
            )
            if origin.fork.has_withdrawals:
                vm.apply_all_withdrawals(block.withdrawals)
            vm.block_postprocessing(block)
            root = vm.finalize_block(block).block.header.state_root
    except (ValidationError, PyEVMError, rlp.exceptions.RLPException) as error:
        raise InvalidBlock(header, "py-evm", str(error)) from error
    requests = None
    if origin.fork.has_requests and config.deposit_contract == DEPOSIT_CONTRACT_ADDRESS:
        requests = [request for request in block.block_requests if len(request) > 1]
    return _outcome(block.transactions, receipts, requests), root


def _vm_class(origin: Origin) -> Any:
    """Return the class that executes a block, with the block's surroundings."""
    number, fork = origin.block.header.number, origin.fork
    if fork.name not in VMS:
        raise UnknownRules(
            f"block {number} has the rules of {fork.name}, and py-evm ends at prague"
        )
    if fork != LADDER[fork.name]:
        raise UnknownRules(
            f"block {number} has rules that the network's config changes, and py-evm "
            f"only has mainnet's {fork.name}"
        )
    vm = VMS[fork.name]
    hashes = list(islice(origin.ancestor_hashes, ANCESTORS_KEPT))
    return type(
        "VM",
        (vm,),
        {
            "get_state_class": staticmethod(lambda: state_class(vm)),
            "previous_hashes": hashes,
            "support_dao_fork": origin.config.is_dao_fork(number),
            "get_dao_fork_block_number": staticmethod(lambda: number),
        },
    )


def _outcome(
    transactions: Iterable[Any], receipts: Iterable[Any], requests: list[bytes] | None
) -> Outcome:
    found: list[Receipt] = []
    gas_used = bloom = 0
    for transaction, receipt in zip(transactions, receipts, strict=True):
        has_root = len(receipt.state_root) == 32
        found.append(
            Receipt(
                type=transaction.type_id or 0,
                status=None if has_root else int(receipt.state_root == b"\x01"),
                state_root=Hash32(receipt.state_root) if has_root else None,
                cumulative_gas_used=receipt.gas_used,
                gas_used=receipt.gas_used - gas_used,
                bloom=receipt.bloom,
                logs=[
                    Log(
                        Address(log.address),
                        tuple(topic.to_bytes(32, "big") for topic in log.topics),
                        log.data,
                    )
                    for log in receipt.logs
                ],
            )
        )
        gas_used = receipt.gas_used
        bloom |= receipt.bloom
    return Outcome(found, gas_used, bloom, requests)
