"""The message that a call frame executes."""

from __future__ import annotations

from eth_typing import Address

from evm.transactions import CREATE_ADDRESS


class Message:
    """A call, or a creation if `create_address` is set."""

    __slots__ = (
        "code",
        "code_address",
        "data",
        "delegate",
        "depth",
        "gas",
        "is_create",
        "is_static",
        "sender",
        "storage_address",
        "to",
        "transfers_value",
        "value",
    )

    def __init__(
        self,
        gas: int,
        to: Address,
        sender: Address,
        value: int,
        data: bytes | memoryview,
        code: bytes,
        depth: int = 0,
        create_address: Address | None = None,
        code_address: Address | None = None,
        transfers_value: bool = True,
        is_static: bool = False,
        delegate: Address | None = None,
    ) -> None:
        """Set the fields.

        data: bytes, or a view of the caller's memory, which does not change during a
            call.
        depth: 0 for the transaction's outermost frame.
        code_address: the called account, if its code runs for another account. Whether
            a precompiled contract runs depends on this address only.
        delegate: the account to which the called account delegates (EIP-7702). The
            message's code is the delegate's.
        """
        self.gas = gas
        self.to = to
        self.sender = sender
        self.value = value
        self.data = data
        self.code = code
        self.depth = depth
        self.is_create = to == CREATE_ADDRESS
        self.storage_address = create_address or to
        self.code_address = code_address or to
        self.transfers_value = transfers_value
        self.is_static = is_static
        self.delegate = delegate
