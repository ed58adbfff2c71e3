"""Execution of a transaction: validation, payment of gas, message call, settlement.

It replaces py-evm's transaction executors of all forks. Those accept some invalid
transactions: from a sender with code; with init code or data that the gas limit does
not cover; with blobs, if the balance covers the blobs but not also the value. They also
format each transaction for a debug log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eth._utils.address import generate_contract_address
from eth.exceptions import ContractCreationCollision, VMError
from eth_utils.exceptions import ValidationError

from evm.delegations import apply_authorizations, delegate_of, resolved_code
from evm.gas import SELFDESTRUCT_REFUND_GAS
from evm.intrinsic import floor_gas, intrinsic_gas
from evm.message import Message
from evm.signatures import CURVE_ORDER
from evm.transactions import BLOB, CREATE_ADDRESS, LEGACY, SET_CODE

if TYPE_CHECKING:
    from evm.fork import Fork
    from evm.transactions import Transaction

MAX_NONCE = 2**64 - 1
BLOB_HASH_VERSION = 0x01


class TransactionExecutor:
    """Executes transactions on a `WorldState` by the rules of its fork.

    Calling it returns the transaction's outermost frame. Its `transaction_gas_used` is
    the gas used by the whole transaction.
    """

    def __init__(self, vm_state: Any) -> None:
        self.vm_state = vm_state
        self.fork: Fork = vm_state.fork

    def __call__(self, transaction: Transaction) -> Any:
        """Validate and execute a transaction.

        Raises: eth_utils.ValidationError if it is not allowed in the block.
        """
        self.validate_transaction(transaction)
        message = self.build_evm_message(transaction)
        computation = self.build_computation(message, transaction)
        return self.finalize_computation(transaction, computation)

    # Validity

    def validate_transaction(self, transaction: Transaction) -> None:
        """Check all rules that do not depend on the rest of the block.

        Raises: eth_utils.ValidationError.
        """
        self._validate_form(transaction)
        self._validate_gas(transaction)
        self._validate_fees(transaction)
        if transaction.type == BLOB:
            self._validate_blobs(transaction)
        self._validate_sender(transaction)

    def _validate_form(self, transaction: Transaction) -> None:
        fork, kind = self.fork, transaction.type
        if kind not in fork.transaction_types:
            raise ValidationError(
                f"transaction type {kind} is not known in {fork.name}"
            )
        chain_id = self.vm_state.execution_context.chain_id
        if transaction.chain_id is not None:
            if kind == LEGACY and not fork.has_replay_protection:
                raise ValidationError(f"{fork.name} has no chain id in transactions")
            if transaction.chain_id != chain_id:
                raise ValidationError(
                    f"chain id is {transaction.chain_id}, not {chain_id}"
                )
        if fork.has_low_signature_rule and transaction.s > CURVE_ORDER // 2:
            raise ValidationError("signature has a high s")
        if kind == SET_CODE and not transaction.authorization_list:
            raise ValidationError("no authorizations in a set-code transaction")
        if (
            transaction.to == CREATE_ADDRESS
            and fork.max_init_code_size is not None
            and len(transaction.data) > fork.max_init_code_size
        ):
            raise ValidationError(f"init code is {len(transaction.data)} bytes long")

    def _validate_gas(self, transaction: Transaction) -> None:
        fork, gas = self.fork, transaction.gas
        if fork.max_transaction_gas is not None and gas > fork.max_transaction_gas:
            raise ValidationError(
                f"gas limit {gas} is above the cap {fork.max_transaction_gas}"
            )
        transaction.intrinsic_gas = intrinsic_gas(transaction, fork)
        if gas < transaction.intrinsic_gas:
            raise ValidationError(
                f"gas limit {gas} is below the intrinsic gas "
                f"{transaction.intrinsic_gas}"
            )
        floor = floor_gas(transaction, fork)
        if gas < floor:
            raise ValidationError(f"gas limit {gas} is below the data's floor {floor}")

    def _validate_fees(self, transaction: Transaction) -> None:
        fee, tip = transaction.max_fee_per_gas, transaction.max_priority_fee_per_gas
        if tip > fee:
            raise ValidationError(f"priority fee {tip} is above the fee {fee}")
        if self.fork.has_base_fee and fee < self.base_fee:
            raise ValidationError(f"fee {fee} is below the base fee {self.base_fee}")

    def _validate_blobs(self, transaction: Transaction) -> None:
        hashes, maximum = (
            transaction.blob_versioned_hashes,
            self.fork.max_blobs_per_transaction,
        )
        if not hashes:
            raise ValidationError("no blobs in a blob transaction")
        if maximum is not None and len(hashes) > maximum:
            raise ValidationError(f"{len(hashes)} blobs, at most {maximum} are allowed")
        if any(blob_hash[0] != BLOB_HASH_VERSION for blob_hash in hashes):
            raise ValidationError("a blob's hash has an unknown version")
        price = self.vm_state.blob_base_fee
        if transaction.max_fee_per_blob_gas < price:
            raise ValidationError(
                f"blob fee {transaction.max_fee_per_blob_gas} is below the blob base "
                f"fee {price}"
            )

    def _validate_sender(self, transaction: Transaction) -> None:
        state, sender = self.vm_state, transaction.sender
        nonce = state.get_nonce(sender)
        if transaction.nonce != nonce:
            raise ValidationError(f"nonce is {transaction.nonce}, not {nonce}")
        if nonce >= MAX_NONCE:
            raise ValidationError("the sender's nonces are used up")
        code = state.get_code(sender)
        if code and not (self.fork.has_delegations and delegate_of(code)):
            raise ValidationError("the sender is a contract")
        cost = (
            transaction.gas * transaction.max_fee_per_gas
            + transaction.blob_gas * transaction.max_fee_per_blob_gas
            + transaction.value
        )
        balance = state.get_balance(sender)
        if balance < cost:
            raise ValidationError(
                f"the sender has {balance} wei, and needs up to {cost}"
            )

    # Price

    @property
    def base_fee(self) -> int:
        """The base fee in wei per gas, which is burned. 0 before London."""
        if not self.fork.has_base_fee:
            return 0
        base_fee: int = self.vm_state.execution_context.base_fee_per_gas
        return base_fee

    def gas_price(self, transaction: Transaction) -> int:
        """Return the wei per gas that the sender pays: base fee and tip."""
        if not self.fork.has_base_fee:
            return transaction.max_fee_per_gas
        return min(
            transaction.max_fee_per_gas,
            self.base_fee + transaction.max_priority_fee_per_gas,
        )

    # Execution

    def charge(self, transaction: Transaction) -> None:
        """Charge the sender for the gas limit and the blobs, and use up the nonce."""
        state, sender = self.vm_state, transaction.sender
        cost = transaction.gas * self.gas_price(transaction)
        if transaction.type == BLOB:
            cost += transaction.blob_gas * state.blob_base_fee
        state.set_balance(sender, state.get_balance(sender) - cost)
        state.increment_nonce(sender)

    def build_evm_message(self, transaction: Transaction) -> Any:
        """Charge the sender for the gas limit, and return the outermost message."""
        state, sender = self.vm_state, transaction.sender
        self.charge(transaction)
        refund = apply_authorizations(state, transaction.authorization_list)
        gas = transaction.gas - transaction.intrinsic_gas
        if transaction.to == CREATE_ADDRESS:
            return Message(
                gas=gas,
                to=transaction.to,
                sender=sender,
                value=transaction.value,
                data=b"",
                code=transaction.data,
                create_address=generate_contract_address(sender, transaction.nonce),
            )
        code, delegate = resolved_code(state, transaction.to)
        if delegate is not None:
            state.mark_address_warm(delegate)
        return Message(
            gas=gas,
            to=transaction.to,
            sender=sender,
            value=transaction.value,
            data=transaction.data,
            code=code,
            refund=refund,
            delegate=delegate,
        )

    def _warm_up(self, message: Any, transaction: Transaction) -> None:
        """Mark the initially warm addresses and slots (EIP-2929, EIP-2930)."""
        state = self.vm_state
        state.mark_address_warm(transaction.sender)
        state.mark_address_warm(message.storage_address)
        if self.fork.warms_coinbase:
            state.mark_address_warm(state.coinbase)
        for address, slots in transaction.access_list:
            state.mark_address_warm(address)
            for slot in slots:
                state.mark_storage_warm(address, slot)

    def build_computation(self, message: Any, transaction: Transaction) -> Any:
        """Run the outermost message."""
        state = self.vm_state
        if self.fork.has_access_lists:
            self._warm_up(message, transaction)
        context = state.transaction_context_class(
            gas_price=self.gas_price(transaction),
            origin=transaction.sender,
            blob_versioned_hashes=transaction.blob_versioned_hashes,
        )
        frames = state.computation_class
        if not message.is_create:
            return frames.apply_message(state, message, context)
        error = self.creation_error(message, transaction)
        if error is None:
            return frames.apply_create_message(state, message, context)
        computation = frames(state, message, context)
        computation.error = error
        return computation

    def creation_error(self, message: Any, transaction: Transaction) -> VMError | None:
        """Return the error of a creation that fails before its execution, or None."""
        address = message.storage_address
        if not self.vm_state.has_code_or_nonce(address):
            return None
        return ContractCreationCollision(f"0x{address.hex()} is a contract already")

    # The end

    def finalize_computation(self, transaction: Transaction, computation: Any) -> Any:
        """Settle the gas, and delete destroyed and empty touched accounts."""
        state = self.vm_state
        destroyed = computation.get_accounts_for_deletion()
        gas_used = self.settled_gas(transaction, computation, len(destroyed))
        computation.transaction_gas_used = gas_used
        price, sender = self.gas_price(transaction), transaction.sender
        returned = (transaction.gas - gas_used) * price
        if returned:
            state.set_balance(sender, state.get_balance(sender) + returned)
        touched = set(computation.transaction_context.effects.touched)
        if self.reward(state.coinbase, transaction, gas_used):
            touched.add(state.coinbase)
        for address in destroyed:
            state.delete_account(address)
        if self.fork.clears_empty_accounts:
            # Source: https://eips.ethereum.org/EIPS/eip-161
            for address in touched:
                if state.account_exists(address) and state.account_is_empty(address):
                    state.delete_account(address)
        return computation

    def reward(self, coinbase: bytes, transaction: Transaction, gas_used: int) -> bool:
        """Pay the tip to the coinbase. Return whether that touches the account."""
        state = self.vm_state
        tip = gas_used * (self.gas_price(transaction) - self.base_fee)
        # Even a tip of 0 touches the coinbase, and creates it before EIP-161.
        state.set_balance(coinbase, state.get_balance(coinbase) + tip)
        return True

    def settled_gas(
        self, transaction: Transaction, computation: Any, destroyed_count: int
    ) -> int:
        """Return the gas that the sender pays for, after refunds and floor."""
        used: int = transaction.gas - computation.get_gas_remaining()
        refund = computation.get_gas_refund()
        if self.fork.has_selfdestruct_refund:
            refund += SELFDESTRUCT_REFUND_GAS * destroyed_count
        used -= min(refund, used // self.fork.refund_quotient)
        return max(used, floor_gas(transaction, self.fork))
