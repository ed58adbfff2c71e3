"""Instructions that push a property of the frame, the transaction or the block.

Each is a function of the frame that returns a word. It needs no gas beyond the
constant price and cannot fail. The table maps py-evm's functions to those of this
module, as in `evm.instructions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eth.vm.logic import block, context, memory

READINGS: dict[Any, Callable[[Any], int]] = {
    context.address: lambda frame: int.from_bytes(frame.msg.storage_address, "big"),
    context.origin: lambda frame: int.from_bytes(
        frame.transaction_context.origin, "big"
    ),
    context.caller: lambda frame: int.from_bytes(frame.msg.sender, "big"),
    context.callvalue: lambda frame: frame.msg.value,
    context.calldatasize: lambda frame: len(frame.msg.data),
    context.codesize: lambda frame: len(frame.code.raw),
    context.gasprice: lambda frame: frame.transaction_context.gas_price,
    context.returndatasize: lambda frame: len(frame.return_data),
    context.chain_id: lambda frame: frame.state.execution_context.chain_id,
    context.selfbalance: lambda frame: frame.state.get_balance(
        frame.msg.storage_address
    ),
    block.coinbase: lambda frame: int.from_bytes(
        frame.state.execution_context.coinbase, "big"
    ),
    block.timestamp: lambda frame: frame.state.execution_context.timestamp,
    block.number: lambda frame: frame.state.execution_context.block_number,
    block.difficulty: lambda frame: frame.state.execution_context.difficulty,
    block.mixhash: lambda frame: int.from_bytes(
        frame.state.execution_context.mix_hash, "big"
    ),
    block.gaslimit: lambda frame: frame.state.execution_context.gas_limit,
    block.basefee: lambda frame: frame.state.execution_context.base_fee_per_gas,
    block.blob_base_fee: lambda frame: frame.state.blob_base_fee,
    memory.msize: lambda frame: len(frame.memory),
}
