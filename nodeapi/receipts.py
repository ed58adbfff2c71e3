"""Receipt objects as JSON, made once, when a block comes in.

What a receipt repeats of its transaction (the hashes, the place in the block, who to
whom, the price) the transaction object holds already, and each log repeats it again.
A stored receipt leaves it out, is packed besides, and is completed with the
transaction's own words when it is answered.
Source: execution-apis src/schemas/receipt.yaml; go-ethereum internal/ethapi/api.go
`MarshalReceipt`, core/types/gen_log_json.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nodeapi.evm import rlp
from nodeapi.evm.blob_gas import blob_base_fee
from nodeapi.evm.receipts import BLOOM_BYTES
from nodeapi.evm.signatures import keccak
from nodeapi.evm.transactions import BLOB
from nodeapi.receipt_codec import HOLE, measure, pack, unpack, unpack_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nodeapi.evm.blocks import Block
    from nodeapi.evm.forks import Fork
    from nodeapi.evm.headers import Header
    from nodeapi.evm.receipts import Log, Receipt
    from nodeapi.evm.transactions import Transaction

HEAD_BYTES = 640
"""How much of a transaction object is enough to complete its receipt.

Nothing before its gasPrice is longer than its type allows, some 500 bytes in all.
"""

_HEAD = re.compile(
    rb'\{(?P<block>"blockHash":"0x\w+","blockNumber":"0x\w+")'
    rb'(?P<time>,"blockTimestamp":"0x\w+")'
    rb'(?P<index>,"transactionIndex":"0x\w+")'
    rb',"hash":(?P<hash>"0x\w+"),'
    rb'(?P<ends>"type":"0x\w+","from":"0x\w+","to":(?:null|"0x\w+"))'
    rb',"nonce":"0x\w+","gas":"0x\w+","gasPrice":(?P<price>"0x\w+")'
)
"""The beginning of `nodeapi.documents.transaction_document`."""


def stored_receipts(
    block: Block, receipts: Iterable[Receipt], fork: Fork
) -> list[bytes]:
    """Return the receipts of a block's transactions, in order, as they are stored.

    They are packed already: `nodeapi.tracers.record` has nothing to do with them.
    receipts: what the transactions' execution left, in the same order.
    """
    price = _blob_gas_price(block.header, fork)
    stored = []
    log_index = 0
    for transaction, receipt in zip(block.transactions, receipts, strict=True):
        own = _own_members(transaction, receipt, log_index, price)
        stored.append(pack(own))
        log_index += len(receipt.logs)
    return stored


def receipt_document(stored: bytes, transaction: bytes) -> bytes:
    """Return the receipt object, in its final form.

    stored: from `stored_receipts`. transaction: the object of its transaction in the
    block, or the first HEAD_BYTES of it.
    Raises: ValueError, like all that follow, for anything else.
    """
    begin, place = _completion(transaction)
    with _naming(place):
        return begin + unpack(stored).replace(HOLE, place)


def receipt_pieces(stored: bytes, transaction: bytes) -> Iterator[bytes]:
    """Yield the same in pieces of at most 64 KiB, in bounded memory."""
    begin, place = _completion(transaction)
    yield begin
    with _naming(place):
        for piece in unpack_pieces(stored):
            yield piece.replace(HOLE, place)


def receipt_size(stored: bytes, transaction: bytes) -> int:
    """Return how many bytes that is, without making it."""
    begin, place = _completion(transaction)
    with _naming(place):
        size, holes = measure(stored)
    return len(begin) + size + holes * (len(place) - len(HOLE))


def _completion(transaction: bytes) -> tuple[bytes, bytes]:
    """Return what stands before a receipt's own members, and in its logs' holes."""
    found = _HEAD.match(transaction)
    if found is None:
        raise ValueError("this is no transaction object of a block")
    block, time, index, name, ends, price = found.groups()
    place = b'%s%s,"transactionHash":%s' % (block, index, name)
    return b'{%s,%s,"effectiveGasPrice":%s' % (place, ends, price), place + time


@contextmanager
def _naming(place: bytes) -> Iterator[None]:
    """Tell whose receipt is damaged, for the log."""
    try:
        yield
    except ValueError as error:
        error.add_note(f"the stored receipt of {place.decode()}")
        raise


def _own_members(
    transaction: Transaction, receipt: Receipt, log_index: int, blob_gas_price: int
) -> bytes:
    """Return what only the receipt knows, from the comma before its first member on.

    log_index: the number of its first log in the block.
    """
    contract = "null"
    if not transaction.to:
        contract = f'"0x{_created_address(transaction).hex()}"'
    if receipt.state_root is None:
        outcome = f'"status":"{receipt.status:#x}"'
    else:
        outcome = f'"root":"0x{receipt.state_root.hex()}"'
    blob_gas = ""
    if transaction.type == BLOB:
        blob_gas = (
            f',"blobGasUsed":"{transaction.blob_gas:#x}"'
            f',"blobGasPrice":"{blob_gas_price:#x}"'
        )
    logs = ",".join(
        [_log(log, index) for index, log in enumerate(receipt.logs, log_index)]
    )
    bloom = receipt.bloom.to_bytes(BLOOM_BYTES, "big").hex()
    return (
        f',"contractAddress":{contract}'
        f',"cumulativeGasUsed":"{receipt.cumulative_gas_used:#x}"'
        f',"gasUsed":"{receipt.gas_used:#x}",{outcome}{blob_gas}'
        f',"logsBloom":"0x{bloom}","logs":[{logs}]}}'
    ).encode()


def _log(log: Log, index: int) -> str:
    topics = ",".join([f'"0x{topic.hex()}"' for topic in log.topics])
    return (
        f'{{"address":"0x{log.address.hex()}","topics":[{topics}]'
        f',"data":"0x{log.data.hex()}",{HOLE.decode()},"logIndex":"{index:#x}","removed":false}}'
    )


def _created_address(transaction: Transaction) -> bytes:
    """Return where a creation puts its contract, whether it succeeds or not."""
    creator = [transaction.sender, rlp.encode_int(transaction.nonce)]
    return keccak(rlp.encode(creator))[12:]


def _blob_gas_price(header: Header, fork: Fork) -> int:
    """Return the wei that a unit of blob gas costs in a block; 0 before Cancun."""
    if fork.blob_parameters is None or header.excess_blob_gas is None:
        return 0
    return blob_base_fee(
        header.excess_blob_gas, fork.blob_parameters.base_fee_update_fraction
    )
