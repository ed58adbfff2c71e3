"""The message that a call frame executes: py-evm's Message without argument checks.

The callers pass valid words and addresses. Checking each again takes longer than most
calls.
"""

from __future__ import annotations

from typing import Any

from eth.constants import CREATE_CONTRACT_ADDRESS


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
        "refund",
        "sender",
        "should_transfer_value",
        "storage_address",
        "to",
        "value",
    )

    def __init__(
        self,
        gas: int,
        to: bytes,
        sender: bytes,
        value: int,
        data: Any,
        code: bytes,
        depth: int = 0,
        create_address: bytes | None = None,
        code_address: bytes | None = None,
        should_transfer_value: bool = True,
        is_static: bool = False,
        delegate: bytes | None = None,
        refund: int = 0,
    ) -> None:
        """Set the fields, which are named as in py-evm.

        data: bytes, or a view of the caller's memory, which does not change during a
            call.
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
        self.is_create = to == CREATE_CONTRACT_ADDRESS
        self.storage_address = create_address or to
        self.code_address = code_address or to
        self.should_transfer_value = should_transfer_value
        self.is_static = is_static
        self.delegate = delegate
        self.refund = refund

    @property
    def data_as_bytes(self) -> bytes:
        """The data, copied if it is a view."""
        return bytes(self.data)
