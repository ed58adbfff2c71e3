"""Receipt objects as JSON, created when a block is imported.

A receipt repeats members of its transaction: the hashes, the position in the block, the
addresses, the price. Each log repeats some of them again. A stored receipt omits them
and is compressed. It is completed from the transaction object when it is returned.

Source: execution-apis src/schemas/receipt.yaml; go-ethereum internal/ethapi/api.go
`MarshalReceipt`, core/types/gen_log_json.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import orjson
from eth_typing import Address, Hash32

from evm import rlp
from evm.blob_gas import blob_base_fee
from evm.hexadecimal import from_hex
from evm.receipts import BLOOM_BYTES, Log, Receipt
from evm.signatures import keccak
from evm.transactions import BLOB
from nodeapi.documents.receipt_codec import (
    HOLE,
    measure,
    pack,
    unpack,
    unpack_beginning,
    unpack_pieces,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evm.blocks import Block
    from evm.headers import Header
    from evm.rules.fork import Fork
    from evm.transactions import Transaction

HEAD_BYTES = 640
"""Number of bytes of a transaction object that contain all members for its receipt.

The members up to gasPrice have fixed maximum lengths, about 500 bytes in total."""

_HEAD = re.compile(
    rb'\{(?P<block>"blockHash":"0x\w+","blockNumber":"0x\w+")'
    rb'(?P<time>,"blockTimestamp":"0x\w+")'
    rb'(?P<index>,"transactionIndex":"0x\w+")'
    rb',"hash":(?P<hash>"0x\w+"),'
    rb'(?P<ends>"type":"0x\w+","from":"0x\w+","to":(?:null|"0x\w+"))'
    rb',"nonce":"0x\w+","gas":"0x\w+","gasPrice":(?P<price>"0x\w+")'
)
"""The beginning of `nodeapi.documents.blocks.transaction_document`."""


_LOGS = b',"logs":['

_ADDRESS_START = len('{"address":"')
_ADDRESS_END = _ADDRESS_START + 42
_TOPICS_START = _ADDRESS_END + len('","topics":[')


def stored_receipts(
    block: Block, receipts: Iterable[Receipt], fork: Fork
) -> list[bytes]:
    """Return the packed receipts of a block's transactions, in order.

    receipts: the results of the transactions' execution, in the same order.
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
    """Return the complete receipt object as JSON.

    stored: a packed receipt from `stored_receipts`.
    transaction: the transaction object as JSON, or its first HEAD_BYTES bytes.

    Raises: ValueError if the packed receipt is malformed.
    """
    begin, place = _completion(transaction)
    with _naming(place):
        return begin + unpack(stored).replace(HOLE, place)


_GAS_USED = re.compile(
    rb',"contractAddress":[^,]+,"cumulativeGasUsed":"0x\w+","gasUsed":"0x(\w+)"'
)
"""The beginning of a receipt's own members."""


def receipt_gas_used(stored: bytes) -> int:
    """Return the gas that a receipt's transaction used. stored: the packed receipt.

    Raises: ValueError if the packed receipt is malformed.
    """
    found = _GAS_USED.match(unpack_beginning(stored))
    if found is None:
        raise ValueError("a packed receipt does not begin with the gas used")
    return int(found[1], 16)


def raw_receipt(document: bytes) -> bytes:
    """Return a receipt as EIP-2718 encodes it. document: the result of `receipt_document`."""
    return parse_receipt(document).encode()


def parse_receipt(document: bytes) -> Receipt:
    """Return the receipt of a result of `receipt_document`."""
    members = orjson.loads(document)
    status, root = members.get("status"), members.get("root")
    return Receipt(
        type=int(members["type"], 16),
        status=None if status is None else int(status, 16),
        state_root=None if root is None else Hash32(from_hex(root)),
        cumulative_gas_used=int(members["cumulativeGasUsed"], 16),
        gas_used=int(members["gasUsed"], 16),
        bloom=int(members["logsBloom"], 16),
        logs=[
            Log(
                Address(from_hex(log["address"])),
                tuple(map(from_hex, log["topics"])),
                from_hex(log["data"]),
            )
            for log in members["logs"]
        ],
    )


def receipt_pieces(stored: bytes, transaction: bytes) -> Iterator[bytes]:
    """Yield the complete receipt object in pieces of at most 64 KiB.

    The parameters and errors are those of `receipt_document`.
    """
    begin, place = _completion(transaction)
    yield begin
    with _naming(place):
        for piece in unpack_pieces(stored):
            yield piece.replace(HOLE, place)


def receipt_size(stored: bytes, transaction: bytes) -> int:
    """Return the size in bytes of the complete receipt object, without creating it.

    The parameters and errors are those of `receipt_document`.
    """
    begin, place = _completion(transaction)
    with _naming(place):
        size, holes = measure(stored)
    return len(begin) + size + holes * (len(place) - len(HOLE))


def log_documents(stored: bytes, transaction: bytes) -> bytes:
    """Return the complete log objects of a receipt as JSON, separated by commas.

    The parameters and errors are those of `receipt_document`.
    """
    _, place = _completion(transaction)
    with _naming(place):
        return stored_logs(stored).replace(HOLE, place)


def stored_logs(stored: bytes) -> bytes:
    """Return the log objects of a packed receipt, separated by commas.

    They contain a placeholder for their position in the chain; see `log_documents`.

    Raises: ValueError if the packed receipt is malformed.
    """
    own = unpack(stored)
    return own[own.index(_LOGS) + len(_LOGS) : -2]


def split_logs(logs: bytes) -> list[bytes]:
    """Return log objects as separate texts. logs: separated by commas."""
    if not logs:
        return []
    return [b"{%s}" % members for members in logs[1:-1].split(b"},{")]


def log_members(log: bytes) -> tuple[str, list[str]]:
    """Return the address and the topics of a log object, as `0x…`.

    log: JSON as in a stored receipt, whose first two members they are.
    """
    topics = log[_TOPICS_START : log.index(b"]", _TOPICS_START)].decode()
    return (
        log[_ADDRESS_START:_ADDRESS_END].decode(),
        [topics[at : at + 66] for at in range(1, len(topics), 69)],
    )


def _completion(transaction: bytes) -> tuple[bytes, bytes]:
    """Return the text before a receipt's own members, and the placeholders' text."""
    found = _HEAD.match(transaction)
    if found is None:
        raise ValueError("this is no transaction object of a block")
    block, time, index, name, ends, price = found.groups()
    place = b'%s%s,"transactionHash":%s' % (block, index, name)
    return b'{%s,%s,"effectiveGasPrice":%s' % (place, ends, price), place + time


@contextmanager
def _naming(place: bytes) -> Iterator[None]:
    """Add the name of a damaged receipt to an error, for the log."""
    try:
        yield
    except ValueError as error:
        error.add_note(f"the stored receipt of {place.decode()}")
        raise


def _own_members(
    transaction: Transaction, receipt: Receipt, log_index: int, blob_gas_price: int
) -> bytes:
    """Return the members that only the receipt has, beginning with a comma.

    log_index: index of its first log in the block.
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
    """Return the address of a creation's contract, whether it succeeds or not."""
    creator = [transaction.sender, rlp.encode_int(transaction.nonce)]
    return keccak(rlp.encode(creator))[12:]


def _blob_gas_price(header: Header, fork: Fork) -> int:
    """Return the price in wei per blob gas in a block, 0 before Cancun."""
    if fork.blob_parameters is None or header.excess_blob_gas is None:
        return 0
    return blob_base_fee(
        header.excess_blob_gas, fork.blob_parameters.base_fee_update_fraction
    )
