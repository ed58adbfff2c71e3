"""Execution of one block: its transactions, and the values for its header.

Order (execution-specs, `apply_body`): system calls of the block's start, transactions,
withdrawals, requests, and before the merge the miners' rewards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from eth_typing import Address, Hash32
from eth_utils.address import to_checksum_address

from evm import requests as el_requests
from evm.addresses import SYSTEM_ADDRESS
from evm.block_access_list import BlockAccessList, EncodedAccessList
from evm.context import BlockContext, TransactionContext
from evm.delegations import resolved_code
from evm.errors import InvalidBlock
from evm.executor import apply_transaction
from evm.message import Message
from evm.receipts import Log, Receipt, logs_bloom
from evm.state import State

if TYPE_CHECKING:
    from evm.blocks import Block, Withdrawal
    from evm.chain_config import ChainConfig
    from evm.frame import Frame
    from evm.gas import GasUsed
    from evm.headers import Header
    from evm.rules.fork import Fork
    from evm.tracers.record import TransactionRecord
    from evm.transactions import Transaction
    from evm.world import World

SYSTEM_CALL_GAS = 30_000_000
SYSTEM_CALL_SLOTS = 16
"""New slots for which a system call has state gas (EIP-8037)."""

BEACON_ROOTS_ADDRESS = Address(
    bytes.fromhex("000f3df6d732807ef1319fb7b8bb8522d0beac02")
)
"""System contract with beacon block roots: https://eips.ethereum.org/EIPS/eip-4788."""

BEACON_ROOTS_RING = 8191
"""Length of its two ring buffers, of timestamps and of roots. A block writes both at its
timestamp."""

HISTORY_STORAGE_ADDRESS = Address(
    bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")
)
"""System contract with ancestors' hashes: https://eips.ethereum.org/EIPS/eip-2935."""

HISTORY_RING = 8191
"""Length of its ring buffer. A block writes its parent's hash at the parent's number."""

GWEI = 10**9

StateRoot = Callable[[], Hash32]
"""Returns the present state root, for receipts before Byzantium."""


class BlockWatcher(Protocol):
    """Observes the transactions of one block; see `evm.tracers.recorder`."""

    @property
    def records(self) -> list[TransactionRecord] | None:
        """The trace records of the transactions so far, or None if none are created.

        Has to be read immediately after a transaction.
        """

    def new_state(self, world: World, block: BlockContext, fork: Fork) -> State:
        """Return a state that reports to the watcher."""


@dataclass(slots=True)
class Outcome:
    """The results of a block's execution, to be compared with its header."""

    receipts: list[Receipt]
    gas_used: int
    bloom: int
    requests: list[bytes] | None
    """`type ‖ data` of each non-empty request list; None before Prague."""
    records: list[TransactionRecord] | None = None
    """The trace record of each transaction, or None without a watcher."""
    access_list: EncodedAccessList | None = None
    """The block's access list, or None if it was not recorded."""
    gas: list[tuple[int, int]] = field(default_factory=list)
    """Execution gas and state gas of each transaction (EIP-8037)."""


class BlockExecution:
    """Execution of one block on a world, step by step.

    The block builder calls the steps itself, because the header contains their results.
    """

    def __init__(
        self,
        header: Header,
        fork: Fork,
        config: ChainConfig,
        world: World,
        ancestor_hashes: Iterable[Hash32],
        state_root: StateRoot,
        watcher: BlockWatcher | None = None,
        *,
        lists_accesses: bool = False,
    ) -> None:
        """Prepare the execution of the block with this header.

        ancestor_hashes: up to 256 hashes, the parent's first.
        watcher: sees the transactions, and no system calls.
        lists_accesses: whether the access list is made for a fork without one as well.
        """
        self._header = header
        self._fork = fork
        self._config = config
        self._world = world
        self._state_root = state_root
        self._watcher = watcher
        new_state = State if watcher is None else watcher.new_state
        context = block_context(header, config, ancestor_hashes)
        self._state = new_state(world, context, fork)
        self.receipts: list[Receipt] = []
        self.cumulative_gas_used = 0
        """The sum of the receipts."""
        self.execution_gas = 0
        self.state_gas = 0
        self._gas: list[tuple[int, int]] = []
        self.blob_gas_used = 0
        self._access_list = BlockAccessList()
        if fork.has_block_access_list or lists_accesses:
            world.on_changes = self._access_list.add

    @property
    def state(self) -> State:
        """The state on which the block is executed."""
        return self._state

    @property
    def gas_used(self) -> int:
        """The header's gas used: that of the dimension which has more (EIP-8037)."""
        return max(self.execution_gas, self.state_gas)

    @property
    def gas_left(self) -> int:
        """The largest gas limit that the next transaction can have."""
        limit, cap = self._header.gas_limit, self._fork.max_execution_gas
        execution_gas, state_gas = limit - self.execution_gas, limit - self.state_gas
        if cap is not None and execution_gas >= cap:
            return state_gas
        return min(execution_gas, state_gas)

    def begin(self) -> None:
        """Execute the system calls and changes before the first transaction."""
        header = self._header
        if self._config.is_dao_fork(header.number):
            self._move_dao_funds()
        if self._fork.has_parent_beacon_root and header.parent_beacon_root is not None:
            self._system_call(BEACON_ROOTS_ADDRESS, header.parent_beacon_root)
        if self._fork.has_history_contract:
            self._system_call(HISTORY_STORAGE_ADDRESS, header.parent_hash)

    def apply_transaction(self, transaction: Transaction) -> Receipt:
        """Execute the next transaction.

        Raises: InvalidTransaction if it is invalid at this position in the block.
        """
        self.begin_transaction()
        executed = apply_transaction(
            self._state, transaction, len(self.receipts), self.gas_left
        )
        self.blob_gas_used += transaction.blob_gas
        frame = executed.frame
        return self.add_receipt(
            transaction.type,
            [Log(*entry) for entry in frame.transaction.effects.logs],
            executed,
            is_success=frame.is_success,
        )

    def begin_transaction(self) -> None:
        """End the previous transaction, so that it can't be undone any more."""
        self._begin_index(len(self.receipts) + 1)

    def add_receipt(
        self, kind: int, logs: Sequence[Log], executed: GasUsed, *, is_success: bool
    ) -> Receipt:
        """Add the receipt of a transaction that has been executed on the world.

        kind: the transaction's type.
        """
        self.cumulative_gas_used += executed.gas_used
        self.execution_gas += executed.execution_gas
        self.state_gas += executed.state_gas
        self._gas.append((executed.execution_gas, executed.state_gas))
        status, root = None, None
        if self._fork.has_status_receipts:
            status = int(is_success)
        else:
            root = self._state_root()
        receipt = Receipt(
            type=kind,
            status=status,
            state_root=root,
            cumulative_gas_used=self.cumulative_gas_used,
            gas_used=executed.gas_used,
            bloom=logs_bloom(logs),
            logs=logs,
        )
        self.receipts.append(receipt)
        return receipt

    def finish(
        self, uncles: Iterable[Header], withdrawals: Iterable[Withdrawal] | None
    ) -> Outcome:
        """Execute withdrawals, requests and rewards, and return the outcome."""
        records = None if self._watcher is None else self._watcher.records
        self._begin_index(len(self.receipts) + 1)
        for withdrawal in withdrawals or ():
            self._withdraw(withdrawal)
        requests = self._collect_requests() if self._fork.has_requests else None
        if self._fork.block_reward:
            self._pay_rewards(list(uncles))
        bloom = 0
        for receipt in self.receipts:
            bloom |= receipt.bloom
        self._world.lock_changes()
        outcome = Outcome(
            self.receipts, self.gas_used, bloom, requests, records, gas=self._gas
        )
        if self._world.on_changes is not None:
            outcome.access_list = self._access_list.encode(self._world)
        return outcome

    def dequeue_requests(self, address: Address) -> bytes:
        """Return the requests of a queue contract at the end of the block.

        Raises: InvalidBlock if the contract is missing or fails (EIP-7002, EIP-7251).
        """
        frame = self._system_call(address, b"")
        if frame is not None and frame.is_success:
            return frame.output
        text = f"empty system contract: no code at {to_checksum_address(address)}"
        if frame is not None:
            text = f"system call failed to execute: {frame.error}"
        queue = el_requests.QUEUE_NAMES[address]
        reason = f"failed to process {queue} queue: {text}"
        raise InvalidBlock(self._header, "requests", reason)

    # Steps

    def _move_dao_funds(self) -> None:
        world, refund = self._world, self._config.dao_refund_contract
        for drained in map(Address, self._config.dao_drained_accounts):
            balance = world.get_balance(drained)
            world.set_balance(refund, world.get_balance(refund) + balance)
            world.set_balance(drained, 0)

    def _begin_index(self, index: int) -> None:
        """Begin a part of the block. index: in its access list (EIP-7928)."""
        self._world.lock_changes()
        self._access_list.index = index

    def _system_call(self, address: Address, data: bytes) -> Frame | None:
        """Call a system contract. Return None if it has no code."""
        self._world.lock_changes()
        code, delegate = resolved_code(self._state, address)
        if not code:
            return None
        state_prices = self._fork.prices.state
        message = Message(
            gas=SYSTEM_CALL_GAS,
            to=address,
            sender=SYSTEM_ADDRESS,
            value=0,
            data=data,
            code=code,
            delegate=delegate,
        )
        # Watchers do not see it, so it is executed on a state without one.
        state = State(self._world, self._state.block, self._fork)
        frame = state.frame(message, TransactionContext(SYSTEM_ADDRESS, 0))
        if state_prices is not None:
            frame.reservoir = SYSTEM_CALL_SLOTS * state_prices.slot
        frame.run()
        return frame

    def _withdraw(self, withdrawal: Withdrawal) -> None:
        world, address = self._world, withdrawal.address
        if withdrawal.amount_gwei:
            balance = world.get_balance(address)
            world.set_balance(address, balance + withdrawal.amount_gwei * GWEI)
        elif world.account_exists(address) and world.account_is_empty(address):
            world.delete_account(address)

    def _collect_requests(self) -> list[bytes]:
        logs = (log for receipt in self.receipts for log in receipt.logs)
        try:
            deposits = el_requests.deposit_requests(logs, self._config.deposit_contract)
        except el_requests.InvalidDepositEvent as error:
            reason = f"failed to parse deposit logs: {error}"
            raise InvalidBlock(self._header, "requests", reason) from error
        queues = dict(el_requests.QUEUES)
        if self._fork.has_builder_requests:
            queues |= el_requests.BUILDER_QUEUES
        found = {el_requests.DEPOSIT_REQUEST_TYPE: deposits}
        for kind, address in queues.items():
            found[kind] = self.dequeue_requests(address)
        return [kind + data for kind, data in found.items() if data]

    def _pay_rewards(self, uncles: list[Header]) -> None:
        world, reward = self._world, self._fork.block_reward
        for uncle in uncles:
            depth = self._header.number - uncle.number
            share = (8 - depth) * reward // 8
            world.set_balance(uncle.coinbase, world.get_balance(uncle.coinbase) + share)
        coinbase = self._header.coinbase
        share = reward + len(uncles) * (reward // 32)
        world.set_balance(coinbase, world.get_balance(coinbase) + share)


def block_context(
    header: Header, config: ChainConfig, ancestor_hashes: Iterable[Hash32]
) -> BlockContext:
    """Return the values of a block that instructions read."""
    return BlockContext(
        coinbase=header.coinbase,
        timestamp=header.timestamp,
        number=header.number,
        difficulty=header.difficulty,
        mix_hash=header.mix_hash,
        gas_limit=header.gas_limit,
        ancestor_hashes=ancestor_hashes,
        chain_id=config.chain_id,
        base_fee=header.base_fee_per_gas or 0,
        excess_blob_gas=header.excess_blob_gas,
        slot_number=header.slot_number or 0,
    )


def execute_block(
    block: Block,
    fork: Fork,
    config: ChainConfig,
    world: World,
    ancestor_hashes: Iterable[Hash32],
    state_root: StateRoot,
    watcher: BlockWatcher | None = None,
    *,
    lists_accesses: bool = False,
) -> Outcome:
    """Execute a block on the state of its parent, and return the outcome.

    The world contains the changes afterwards. The caller compares the outcome with the
    header.

    lists_accesses: see `BlockExecution`.

    Raises: InvalidTransaction if a transaction is invalid at its position; InvalidBlock
        if its requests or a system call are invalid.
    """
    execution = BlockExecution(
        block.header,
        fork,
        config,
        world,
        ancestor_hashes,
        state_root,
        watcher,
        lists_accesses=lists_accesses,
    )
    execution.begin()
    for transaction in block.transactions:
        execution.apply_transaction(transaction)
    return execution.finish(block.uncles, block.withdrawals)
