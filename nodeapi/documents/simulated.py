"""Block objects of simulated blocks, as JSON.

Source: execution-apis src/schemas/execute.yaml; go-ethereum internal/ethapi/simulate.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from evm.simulation.revert import REVERT_CODE, revert_message
from nodeapi.documents.blocks import (
    block_document,
    transaction_document,
    without_total_difficulty,
)

if TYPE_CHECKING:
    from evm.headers import Header
    from evm.simulation.block_run import CallOutcome, SimulatedBlock
    from evm.simulation.transfer_logs import IndexedLog

VM_ERROR_CODE = -32015
"""The code of a call that failed inside the simulation, unless it was reverted."""


def simulated_block_document(simulated: SimulatedBlock, *, full: bool) -> bytes:
    """Return the block object with the results of its calls.

    full: whether it contains transaction objects instead of hashes.
    """
    block = simulated.block
    document, offset = block_document(block, total_difficulty=0)
    if full:
        transactions = b",".join(
            [
                transaction_document(transaction, block.header, index)
                for index, transaction in enumerate(block.transactions)
            ]
        )
        document = document[:offset] + b"[" + transactions + b"]}"
    calls = b",".join(
        [
            _call(outcome, block.header, transaction.hash, index)
            for index, (outcome, transaction) in enumerate(
                zip(simulated.outcomes, block.transactions, strict=True)
            )
        ]
    )
    return b'{"calls":[' + calls + b"]," + without_total_difficulty(document)[1:]


def _call(
    outcome: CallOutcome, header: Header, transaction_hash: bytes, index: int
) -> bytes:
    """Return the result of a call. index: its transaction's in the block."""
    place = (
        f'"blockNumber":"{header.number:#x}","transactionHash":"0x{transaction_hash.hex()}"'
        f',"transactionIndex":"{index:#x}","blockHash":"0x{header.hash.hex()}"'
        f',"blockTimestamp":"{header.timestamp:#x}"'
    )
    logs = ",".join([_log(log, place) for log in outcome.logs])
    result, is_success = outcome.result, outcome.error is None
    return_data = result.return_data.hex() if is_success else ""
    error = "" if is_success else f',"error":{_error(outcome)}'
    return (
        f'{{"returnData":"0x{return_data}","logs":[{logs}]'
        f',"gasUsed":"{result.gas_used:#x}","maxUsedGas":"{result.max_used_gas:#x}"'
        f',"status":"{int(is_success):#x}"{error}}}'
    ).encode()


def _log(log: IndexedLog, place: str) -> str:
    """Return a log object. place: the members that name block and transaction."""
    topics = ",".join([f'"0x{topic.hex()}"' for topic in log.topics])
    return (
        f'{{"address":"0x{log.address.hex()}","topics":[{topics}]'
        f',"data":"0x{log.data.hex()}",{place},"logIndex":"{log.log_index:#x}"'
        f',"removed":false}}'
    )


def _error(outcome: CallOutcome) -> str:
    """Return the error object of a call that failed."""
    if not outcome.result.is_reverted:
        return orjson.dumps({"message": outcome.error, "code": VM_ERROR_CODE}).decode()
    output = outcome.result.return_data
    error = {
        "message": revert_message(output),
        "code": REVERT_CODE,
        "data": f"0x{output.hex()}",
    }
    return orjson.dumps(error).decode()
