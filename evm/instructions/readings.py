"""Instructions that push a property of the frame, the transaction or the block.

Each is a function of the frame that returns the word. It needs no gas beyond the
constant price and cannot fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evm.frame import Frame

from_bytes = int.from_bytes

# The frame


def address(frame: Frame) -> int:
    """ADDRESS: the account whose storage the code uses."""
    return from_bytes(frame.message.storage_address, "big")


def caller(frame: Frame) -> int:
    """CALLER: the account that made the call."""
    return from_bytes(frame.message.sender, "big")


def callvalue(frame: Frame) -> int:
    """CALLVALUE: the call's value in wei."""
    return frame.message.value


def calldatasize(frame: Frame) -> int:
    """CALLDATASIZE: the number of bytes of the input."""
    return len(frame.message.data)


def codesize(frame: Frame) -> int:
    """CODESIZE: the number of bytes of the executing code."""
    return len(frame.code)


def returndatasize(frame: Frame) -> int:
    """RETURNDATASIZE: the number of bytes that the last call returned (EIP-211)."""
    return len(frame.return_data)


def msize(frame: Frame) -> int:
    """MSIZE: the number of bytes of memory, a multiple of 32."""
    return len(frame.memory)


def selfbalance(frame: Frame) -> int:
    """SELFBALANCE: the balance of the executing account in wei (EIP-1884)."""
    return frame.state.get_balance(frame.message.storage_address)


# The transaction


def origin(frame: Frame) -> int:
    """ORIGIN: the sender of the transaction."""
    return from_bytes(frame.transaction.origin, "big")


def gasprice(frame: Frame) -> int:
    """GASPRICE: the wei per gas that the sender pays."""
    return frame.transaction.gas_price


# The block


def coinbase(frame: Frame) -> int:
    """COINBASE: the account that receives the tips."""
    return from_bytes(frame.state.block.coinbase, "big")


def timestamp(frame: Frame) -> int:
    """TIMESTAMP: the block's time in Unix seconds."""
    return frame.state.block.timestamp


def number(frame: Frame) -> int:
    """NUMBER: the block's number."""
    return frame.state.block.number


def difficulty(frame: Frame) -> int:
    """DIFFICULTY, after the merge PREVRANDAO (EIP-4399)."""
    block = frame.state.block
    return (
        from_bytes(block.mix_hash, "big") if frame.fork.is_merged else block.difficulty
    )


def gaslimit(frame: Frame) -> int:
    """GASLIMIT: the gas limit of the block."""
    return frame.state.block.gas_limit


def chainid(frame: Frame) -> int:
    """CHAINID: the chain id of the network (EIP-1344)."""
    return frame.state.block.chain_id


def basefee(frame: Frame) -> int:
    """BASEFEE: the wei per gas that are burned (EIP-3198)."""
    return frame.state.block.base_fee


def slotnum(frame: Frame) -> int:
    """SLOTNUM: the beacon chain's slot (EIP-7843)."""
    return frame.state.block.slot_number


def blobbasefee(frame: Frame) -> int:
    """BLOBBASEFEE: the wei per blob gas (EIP-7516)."""
    return frame.state.blob_base_fee
