"""Arguments of calls, and the message that is executed for them.

Source: go-ethereum v1.17.10, internal/ethapi/transaction_args.go
"""

from __future__ import annotations

from dataclasses import dataclass

from eth_typing import Address, Hash32

from evm.transactions import (
    BLOB,
    CREATE_ADDRESS,
    DYNAMIC_FEE,
    GAS_PER_BLOB,
    SET_CODE,
    AccessList,
    Authorization,
)

ZERO_ADDRESS = Address(bytes(20))
NO_HASH = Hash32(bytes(32))
NO_GAS_CAP = 2**63 - 1
"""Gas limit of a call without one, if there is no cap."""
FEES_BEFORE_LONDON = (
    "maxFeePerGas and maxPriorityFeePerGas are not valid before London is active"
)


class InvalidCall(Exception):
    """Raised when arguments contradict each other or the network. `str` is geth's text."""


@dataclass(slots=True, kw_only=True)
class CallArguments:
    """The arguments of a call; None if absent. Amounts are in wei."""

    sender: Address | None = None
    to: Address | None = None
    """None: the call creates a contract."""
    gas: int | None = None
    gas_price: int | None = None
    max_fee_per_gas: int | None = None
    max_priority_fee_per_gas: int | None = None
    value: int | None = None
    nonce: int | None = None
    data: bytes | None = None
    """The argument `input`, or otherwise `data`."""
    access_list: AccessList | None = None
    chain_id: int | None = None
    max_fee_per_blob_gas: int | None = None
    blob_versioned_hashes: tuple[Hash32, ...] | None = None
    authorization_list: tuple[Authorization, ...] | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class CallMessage:
    """A call with all defaults set.

    It has the attributes of a `Transaction` that the executor and the watchers read.
    """

    sender: Address
    to: Address
    """Receiver, `CREATE_ADDRESS` for a creation."""
    value: int
    nonce: int
    gas: int
    """The gas limit."""
    gas_price: int
    """Wei per gas that the sender pays; 0 if the caller has given no fees."""
    max_fee_per_gas: int
    max_priority_fee_per_gas: int
    data: bytes
    accesses: AccessList | None = None
    """None without an access list, which is invalid before Berlin, even an empty one."""
    max_fee_per_blob_gas: int | None = None
    blob_hashes: tuple[Hash32, ...] | None = None
    """None without blobs. An empty tuple is an error of the caller."""
    authorizations: tuple[Authorization, ...] | None = None
    """None without authorizations. An empty tuple is an error of the caller."""
    intrinsic_gas: int = 0
    """Gas charged before execution, which the executor sets."""
    hash: Hash32 = NO_HASH

    @property
    def is_free(self) -> bool:
        """Whether the sender pays nothing for gas, and the base fee counts as 0."""
        return not self.max_fee_per_gas and not self.max_priority_fee_per_gas

    @property
    def access_list(self) -> AccessList:
        """The accesses, without a difference between none and absent."""
        return self.accesses or ()

    @property
    def type(self) -> int:
        """The transaction type that the call corresponds to."""
        if self.authorizations is not None:
            return SET_CODE
        return DYNAMIC_FEE if self.blob_hashes is None else BLOB

    @property
    def blob_versioned_hashes(self) -> tuple[Hash32, ...]:
        """The hashes that BLOBHASH reads."""
        return self.blob_hashes or ()

    @property
    def authorization_list(self) -> tuple[Authorization, ...]:
        """The authorizations, without a difference between none and absent."""
        return self.authorizations or ()

    @property
    def blob_gas(self) -> int:
        """The blob gas, which is priced separately from gas."""
        return GAS_PER_BLOB * len(self.blob_hashes or ())


def call_message(
    arguments: CallArguments,
    *,
    chain_id: int,
    base_fee: int | None,
    gas_cap: int,
    default_gas: int | None = None,
) -> CallMessage:
    """Return the message of a call.

    base_fee: the block's, overrides included; None before London.
    gas_cap: the highest gas limit, to which a higher one is reduced; 0: no cap.
    default_gas: the gas limit if the caller has given none; by default the cap.

    Raises: InvalidCall.
    """
    fee, tip, price = (
        arguments.max_fee_per_gas,
        arguments.max_priority_fee_per_gas,
        arguments.gas_price,
    )
    if price is not None and (fee is not None or tip is not None):
        raise InvalidCall(
            "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified"
        )
    if arguments.to is None:
        if arguments.blob_versioned_hashes is not None:
            raise InvalidCall("blob transaction of type create")
        if arguments.authorization_list is not None:
            raise InvalidCall("EIP-7702 transaction cannot be used to create contract")
    given_id = arguments.chain_id
    if given_id is not None and given_id != chain_id:
        raise InvalidCall(
            f"chainId does not match node's (have={given_id}, want={chain_id})"
        )
    if base_fee is None and (fee is not None or tip is not None):
        raise InvalidCall(FEES_BEFORE_LONDON)
    if base_fee is None or price is not None:
        fee = tip = price = price or 0
    else:
        fee, tip = fee or 0, tip or 0
        price = min(tip + base_fee, fee) if fee or tip else 0
    hashes, blob_fee = arguments.blob_versioned_hashes, arguments.max_fee_per_blob_gas
    if blob_fee is None and hashes is not None:
        blob_fee = 0
    return CallMessage(
        sender=ZERO_ADDRESS if arguments.sender is None else arguments.sender,
        to=CREATE_ADDRESS if arguments.to is None else arguments.to,
        value=arguments.value or 0,
        nonce=arguments.nonce or 0,
        gas=_gas(arguments.gas, gas_cap, default_gas),
        gas_price=price,
        max_fee_per_gas=fee,
        max_priority_fee_per_gas=tip,
        data=arguments.data or b"",
        accesses=arguments.access_list,
        max_fee_per_blob_gas=blob_fee,
        blob_hashes=hashes,
        authorizations=arguments.authorization_list,
    )


def _gas(given: int | None, cap: int, default: int | None) -> int:
    """Return the gas limit of a call."""
    if given is None:
        given = (cap or NO_GAS_CAP) if default is None else default
    return min(given, cap) if cap else given
