"""Transactions of simulated blocks, which have a sender and no signature.

Source: go-ethereum internal/ethapi/transaction_args.go, `ToTransaction`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eth_typing import Address

from evm.signing import TransactionFields, encode_unsigned
from evm.simulation.arguments import ZERO_ADDRESS
from evm.transactions import LEGACY, Transaction

if TYPE_CHECKING:
    from evm.simulation.arguments import CallMessage

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
    message: CallMessage, chain_id: int, *, is_legacy: bool
) -> UnsignedTransaction:
    """Return the transaction that stands for a call in its block.

    is_legacy: whether the call has a gas price instead of fees. The transaction then
        lacks an access list, blobs and authorizations, although the call has them.
    """
    kind = LEGACY if is_legacy else message.type
    fields = TransactionFields(
        nonce=message.nonce,
        gas=message.gas,
        to=message.to,
        value=message.value,
        data=message.data,
    )
    if is_legacy:
        fields["gas_price"] = message.max_fee_per_gas
    else:
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
