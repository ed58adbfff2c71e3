"""Execution of the calls of one simulated block.

Source: go-ethereum internal/ethapi/simulate.go, `processBlock`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eth_typing import Address, Hash32

from evm.blocks import Block, Withdrawal
from evm.changed_state import ChangedState
from evm.changes import Changes
from evm.checks import GAS_LIMIT_REACHED, CallRejected, check_nonce_limit
from evm.errors import InvalidBlock
from evm.execution import BlockExecution
from evm.receipts import BLOOM_BYTES
from evm.requests import requests_hash
from evm.signing import TransactionFields, encode_unsigned
from evm.simulation.arguments import ZERO_ADDRESS, InvalidCall, call_message
from evm.simulation.block import CallBlock
from evm.simulation.call import CallRules, execute_call
from evm.simulation.errors import SERVER_ERROR, SimulationError
from evm.simulation.overrides import InvalidOverride, override_state
from evm.simulation.transfer_logs import TransferLogs
from evm.simulation.world import WrappingWorld
from evm.state_roots import StateRoots, Tries
from evm.transactions import ACCESS_LIST, BLOB, LEGACY, Transaction
from evm.trie import ordered_root
from evm.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evm.chain_config import ChainConfig
    from evm.execution import Outcome
    from evm.headers import Header
    from evm.precompiles.contract import Precompile
    from evm.rules.fork import Fork
    from evm.simulation.arguments import CallArguments, CallMessage
    from evm.simulation.budget import GasBudget
    from evm.simulation.call import CallResult
    from evm.simulation.planning import BlockCalls
    from evm.simulation.transfer_logs import IndexedLog
    from evm.world import StateReader

ADDED_TO_CAPPED = " (gas limit was capped by the RPC server's global gas cap)"
"""End of the text of a failure whose gas limit was reduced."""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The result of one simulated call."""

    result: CallResult
    logs: Sequence[IndexedLog]
    """The call's logs, with transfers of ether if they are traced."""
    error: str | None
    """geth's text if the execution failed."""


@dataclass(frozen=True, slots=True)
class SimulatedBlock:
    """A block with the outcomes of its calls, in order."""

    block: Block
    outcomes: Sequence[CallOutcome]
    changes: Changes
    """The block's changes of the state."""


class SimulatedExecution(BlockExecution):
    """Execution of a block that may lack the system contracts of its fork."""

    def dequeue_requests(self, address: Address) -> bytes:
        """Return the requests of a queue contract, b"" if the contract does not exist.

        Raises: InvalidBlock if the contract fails.
        """
        return (
            super().dequeue_requests(address) if self.state.get_code(address) else b""
        )


class BlockRun:
    """A simulated block in execution."""

    def __init__(
        self,
        header: Header,
        fork: Fork,
        config: ChainConfig,
        request: BlockCalls,
        ancestor_hashes: Iterable[Hash32],
        *,
        traces_transfers: bool,
        validates: bool,
    ) -> None:
        """Prepare the execution of a block.

        header: see `header_before_execution`.
        ancestor_hashes: from the parent's on, newest first. They are iterated more than
            once.
        """
        self._header = header
        self._fork = fork
        self._config = config
        self._request = request
        self._ancestor_hashes = ancestor_hashes
        self._rules = CallRules(
            checks_nonce=validates,
            requires_fee=validates,
            hides_base_fee=False,
            limits_execution_gas=validates,
        )
        # A fork that logs transfers itself needs no other logs of them.
        traces_transfers = traces_transfers and not fork.logs_transfers
        self._logs = TransferLogs(traces_transfers=traces_transfers)
        self._precompiles: dict[bytes, Precompile] | None = None
        self._transactions: list[UnsignedTransaction] = []
        self._outcomes: list[CallOutcome] = []
        self._world: WrappingWorld
        self._execution: SimulatedExecution

    def execute(
        self, state: StateReader, trie: Tries, budget: GasBudget
    ) -> SimulatedBlock:
        """Execute the block on its parent's state.

        trie: at the parent's state. It moves to the block's.
        Raises: SimulationError.
        """
        overridden = self._override_state(state)
        trie.apply(overridden)
        if overridden.accounts:
            state = ChangedState(state, overridden)
        self._world = WrappingWorld(state)
        # Only overrides leave empty accounts. geth keeps them until they are touched.
        roots = StateRoots(self._world, state, trie, clears_empty_accounts=False)
        self._execution = SimulatedExecution(
            self._header,
            self._fork,
            self._config,
            self._world,
            self._ancestor_hashes,
            roots,
        )
        self._execution.begin()
        block = self._call_block()
        for call in self._request.calls:
            self._execute_call(block, call, budget)
        completed = self._complete(self._finish(), roots())
        overridden.apply(roots.changes)
        return SimulatedBlock(completed, self._outcomes, overridden)

    def _override_state(self, state: StateReader) -> Changes:
        """Return the state's changes by overrides, which the block does not read.

        Raises: SimulationError.
        """
        overrides = self._request.state_overrides
        if not overrides:
            return Changes()
        world = World(state)
        try:
            self._precompiles = override_state(world, overrides, self._fork)
        except InvalidOverride as error:
            raise SimulationError(SERVER_ERROR, str(error)) from error
        return world.changes(clears_empty_accounts=False)

    def _call_block(self) -> CallBlock:
        """Return the simulated block with the properties that its calls can read."""
        block = CallBlock.of_header(
            self._header, self._config, self._fork, self._ancestor_hashes
        )
        blob_base_fee = self._request.overrides.blob_base_fee
        if blob_base_fee is None:
            return block
        return replace(block, blob_base_fee=blob_base_fee)

    # Calls

    def _execute_call(
        self, block: CallBlock, arguments: CallArguments, budget: GasBudget
    ) -> None:
        """Execute a call as the next transaction of the block. Raises: SimulationError."""
        wanted = self._wanted_gas(arguments)
        message = self._message(arguments, min(wanted, budget.gas_left))
        has_base_fee = self._header.base_fee_per_gas is not None
        if not self._rules.checks_nonce:
            self._check_nonce_limit(message.sender)
        transaction = unsigned_transaction(
            message,
            self._config.chain_id,
            has_price=arguments.gas_price is not None or not has_base_fee,
        )
        self._execution.begin_transaction()
        try:
            result = execute_call(
                self._world,
                block,
                message,
                rules=self._rules,
                precompiles=self._precompiles,
                watcher=self._logs,
            )
        except CallRejected as error:
            text = f"err: {error.text} (supplied gas {message.gas})"
            raise SimulationError(error.code, text) from error
        budget.gas_used += result.gas_used
        self._add(transaction, result, is_capped=message.gas < wanted)

    def _check_nonce_limit(self, sender: Address) -> None:
        """Check that a sender's nonce can rise. Raises: SimulationError."""
        try:
            check_nonce_limit(sender, self._world.get_nonce(sender))
        except CallRejected as error:
            raise SimulationError(error.code, error.text) from error

    def _wanted_gas(self, arguments: CallArguments) -> int:
        """Return a call's gas limit, by default the remaining gas of the block.

        Raises: SimulationError if less is left.
        """
        left = self._execution.gas_left
        if not self._rules.limits_execution_gas:
            left = min(left, self._header.gas_limit - self._execution.execution_gas)
        wanted = left if arguments.gas is None else arguments.gas
        if left < wanted:
            raise SimulationError(
                GAS_LIMIT_REACHED,
                f"block gas limit reached: remaining: {left}, required: {wanted}",
            )
        return wanted

    def _message(self, arguments: CallArguments, gas: int) -> CallMessage:
        """Return the message of a call with this gas limit. Raises: SimulationError."""
        nonce = arguments.nonce
        if nonce is None:
            nonce = self._world.get_nonce(arguments.sender or ZERO_ADDRESS)
        try:
            return call_message(
                replace(arguments, gas=gas, nonce=nonce),
                chain_id=self._config.chain_id,
                base_fee=self._header.base_fee_per_gas,
                gas_cap=0,
            )
        except InvalidCall as error:
            raise SimulationError(SERVER_ERROR, str(error)) from error

    def _add(
        self, transaction: UnsignedTransaction, result: CallResult, *, is_capped: bool
    ) -> None:
        """Add an executed transaction to the block."""
        self._execution.add_receipt(
            transaction.type,
            result.logs,
            result,
            is_success=result.error is None,
        )
        error = result.error
        if is_capped and error is not None and not result.is_reverted:
            error += ADDED_TO_CAPPED
        self._transactions.append(transaction)
        self._outcomes.append(CallOutcome(result, self._logs.logs, error))

    # The end

    @property
    def _withdrawals(self) -> Sequence[Withdrawal] | None:
        """The block's withdrawals, None before Shanghai, where overrides have no effect."""
        if not self._fork.has_withdrawals:
            return None
        return self._request.overrides.withdrawals or ()

    def _finish(self) -> Outcome:
        """Execute withdrawals, requests and rewards. Raises: SimulationError."""
        try:
            return self._execution.finish((), self._withdrawals)
        except InvalidBlock as error:
            raise SimulationError(SERVER_ERROR, error.reason) from error

    def _complete(self, outcome: Outcome, state_root: Hash32) -> Block:
        """Return the block with the results of its execution in its header."""
        withdrawals = self._withdrawals
        header = replace(
            self._header,
            state_root=state_root,
            transactions_root=_root([each.raw for each in self._transactions]),
            receipts_root=_root([each.encode() for each in outcome.receipts]),
            logs_bloom=outcome.bloom.to_bytes(BLOOM_BYTES, "big"),
            gas_used=outcome.gas_used,
        )
        if withdrawals is not None:
            root = _root([each.encode() for each in withdrawals])
            header = replace(header, withdrawals_root=root)
        if self._fork.has_blobs:
            blob_gas = sum(
                each.blob_gas for each in self._transactions if each.type == BLOB
            )
            header = replace(header, blob_gas_used=blob_gas)
        if outcome.requests is not None:
            header = replace(header, requests_hash=requests_hash(outcome.requests))
        if outcome.access_list is not None:
            list_hash = outcome.access_list.hash
            header = replace(header, block_access_list_hash=list_hash)
        return Block(header, self._transactions, (), withdrawals)


def _root(values: Sequence[bytes]) -> Hash32:
    return Hash32(ordered_root(values))


LEGACY_CHAIN_ID = (2**64 - 35) // 2
"""The chain id that geth reads from the zero signature of a legacy transaction."""


@dataclass(slots=True, eq=False)
class UnsignedTransaction(Transaction):
    """A transaction whose signature is zero. The sender is a separate field."""

    caller: Address = ZERO_ADDRESS

    @property
    def sender(self) -> Address:
        """The sender, which is not derived from the signature."""
        return self.caller


def unsigned_transaction(
    message: CallMessage, chain_id: int, *, has_price: bool
) -> UnsignedTransaction:
    """Return the transaction that stands for a call in its block.

    has_price: whether the call has a gas price instead of fees. The transaction then
        lacks blobs and authorizations, although the call has them.
    """
    kind = message.type
    if has_price:
        kind = LEGACY if message.accesses is None else ACCESS_LIST
    is_legacy = kind == LEGACY
    fields = TransactionFields(
        nonce=message.nonce,
        gas=message.gas,
        to=message.to,
        value=message.value,
        data=message.data,
    )
    if has_price:
        fields["gas_price"] = message.max_fee_per_gas
    if not is_legacy:
        fields["type"] = kind
        fields["chain_id"] = chain_id
        fields["max_priority_fee_per_gas"] = message.max_priority_fee_per_gas
        fields["max_fee_per_gas"] = message.max_fee_per_gas
        fields["access_list"] = message.access_list
        fields["max_fee_per_blob_gas"] = message.max_fee_per_blob_gas or 0
        fields["blob_versioned_hashes"] = message.blob_versioned_hashes
        fields["authorization_list"] = message.authorization_list
    return UnsignedTransaction(
        type=kind,
        chain_id=LEGACY_CHAIN_ID if is_legacy else chain_id,
        nonce=message.nonce,
        max_priority_fee_per_gas=message.max_priority_fee_per_gas,
        max_fee_per_gas=message.max_fee_per_gas,
        gas=message.gas,
        to=message.to,
        value=message.value,
        data=message.data,
        v=0,
        y_parity=0,
        r=0,
        s=0,
        raw=encode_unsigned(fields),
        access_list=message.access_list,
        max_fee_per_blob_gas=message.max_fee_per_blob_gas or 0,
        blob_versioned_hashes=message.blob_versioned_hashes,
        authorization_list=message.authorization_list,
        caller=message.sender,
    )
