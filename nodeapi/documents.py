"""Block and transaction objects as JSON, made once, when a block comes in.

Every value is hex or null, so nothing needs escaping and the text is put together
directly: numbers as quantities, bytes as data. Members that a fork or a type brought
stand there from that fork or type on.
Source: execution-apis src/schemas/{block,transaction,withdrawal}.yaml; go-ethereum
internal/ethapi/api.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lz4.block
import zstandard

from nodeapi.evm.transactions import BLOB, DYNAMIC_FEE, LEGACY, SET_CODE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nodeapi.evm.blocks import Block, Withdrawal
    from nodeapi.evm.headers import Header
    from nodeapi.evm.transactions import Authorization, Transaction


def block_document(
    block: Block, total_difficulty: int, *, pending: bool = False
) -> tuple[bytes, int]:
    """Return the block object, and where in it the array of transactions begins.

    totalDifficulty is its first member. The transactions, as hashes, are its last, so
    that objects can be put into their place: from the offset to the closing brace.
    pending: the block has not been found yet; hash, logsBloom, nonce and number are
    null.
    """
    header = block.header
    uncles = ",".join([f'"0x{uncle.hash.hex()}"' for uncle in block.uncles])
    block_hash = logs_bloom = nonce = number = "null"
    if not pending:
        block_hash = f'"0x{header.hash.hex()}"'
        logs_bloom = f'"0x{header.logs_bloom.hex()}"'
        nonce = f'"0x{header.nonce.hex()}"'
        number = f'"{header.number:#x}"'
    head = (
        f'{{"totalDifficulty":"{total_difficulty:#x}","difficulty":"{header.difficulty:#x}"'
        f',"extraData":"0x{header.extra_data.hex()}","gasLimit":"{header.gas_limit:#x}"'
        f',"gasUsed":"{header.gas_used:#x}","hash":{block_hash},"logsBloom":{logs_bloom}'
        f',"miner":"0x{header.coinbase.hex()}","mixHash":"0x{header.mix_hash.hex()}"'
        f',"nonce":{nonce},"number":{number},"parentHash":"0x{header.parent_hash.hex()}"'
        f',"receiptsRoot":"0x{header.receipts_root.hex()}"'
        f',"sha3Uncles":"0x{header.uncles_hash.hex()}","size":"{block.size:#x}"'
        f',"stateRoot":"0x{header.state_root.hex()}","timestamp":"{header.timestamp:#x}"'
        f',"transactionsRoot":"0x{header.transactions_root.hex()}"'
        f"{_fork_members(header)}"
        f'{_withdrawals_member(block.withdrawals)},"uncles":[{uncles}],"transactions":'
    )
    hashes = ",".join([f'"0x{t.hash.hex()}"' for t in block.transactions])
    return f"{head}[{hashes}]}}".encode(), len(head)


_DAMAGED = (lz4.block.LZ4BlockError, zstandard.ZstdError, ValueError, MemoryError)


def pack_full_block(
    document: bytes, transactions_offset: int, transactions: Iterable[bytes]
) -> bytes:
    """Return the block object with transaction objects, as an LZ4 block.

    document, transactions_offset: what `block_document` returned.
    transactions: their documents.

    It is little more than a third as long; taking it apart costs less than having the
    database fetch and send the whole. What repeats nothing stands in it as it is. zstd
    takes twice as long to undo even where it leaves that alone, and longer where it codes
    it, to half its length.
    """
    parts = document[:transactions_offset], b"[", b",".join(transactions), b"]}"
    packed: bytes = lz4.block.compress(b"".join(parts))
    return packed


ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
"""Every zstd frame begins with it. Read as the length with which an LZ4 block begins it
would be 4 GB, more than a column holds. Source: RFC 8878, 3.1.1"""


def unpack_full_block(packed: bytes) -> bytes:
    """Return what `pack_full_block` packed.

    Before LZ4 blocks there were zstd frames, which a migration packs again while they are
    served.
    Raises: ValueError for what it can't have returned.
    """
    document: bytes
    try:
        if packed.startswith(ZSTD_MAGIC):
            document = zstandard.ZstdDecompressor().decompress(packed)
        else:
            document = lz4.block.decompress(packed)
    except _DAMAGED as error:
        # MemoryError: of the length with which it begins.
        raise ValueError(f"a block's document is damaged: {error}") from error
    if not document:
        raise ValueError("a block's document is damaged: nothing is in it")
    return document


def count_transactions(document: bytes) -> int:
    """Return how many transactions a block object has that names them by their hashes."""
    return document.count(b'"', document.rindex(b'"transactions":[') + 16) // 2


def count_uncles(document: bytes) -> int:
    """Return how many uncles a block object has that names transactions by hashes."""
    begin = document.rindex(b'"uncles":[') + 10
    return document.count(b'"', begin, document.index(b"]", begin)) // 2


def _fork_members(header: Header) -> str:
    """Return the members of header fields that came with forks, each with a comma."""
    members = ""
    for name, value in (
        ("baseFeePerGas", header.base_fee_per_gas),
        ("withdrawalsRoot", header.withdrawals_root),
        ("blobGasUsed", header.blob_gas_used),
        ("excessBlobGas", header.excess_blob_gas),
        ("parentBeaconBlockRoot", header.parent_beacon_root),
        ("requestsHash", header.requests_hash),
    ):
        if value is not None:
            text = f"0x{value.hex()}" if isinstance(value, bytes) else f"{value:#x}"
            members += f',"{name}":"{text}"'
    return members


def _withdrawals_member(withdrawals: Iterable[Withdrawal] | None) -> str:
    if withdrawals is None:
        return ""
    items = ",".join(
        [
            f'{{"index":"{withdrawal.index:#x}"'
            f',"validatorIndex":"{withdrawal.validator_index:#x}"'
            f',"address":"0x{withdrawal.address.hex()}"'
            f',"amount":"{withdrawal.amount_gwei:#x}"}}'
            for withdrawal in withdrawals
        ]
    )
    return f',"withdrawals":[{items}]'


def transaction_document(transaction: Transaction, header: Header, index: int) -> bytes:
    """Return the transaction object of a transaction in a block.

    header: the block's. index: its place in the block, from 0.
    """
    price = transaction.max_fee_per_gas
    if header.base_fee_per_gas is not None and transaction.type >= DYNAMIC_FEE:
        tip = transaction.max_priority_fee_per_gas
        price = min(price, tip + header.base_fee_per_gas)
    place = (
        f'{{"blockHash":"0x{header.hash.hex()}","blockNumber":"{header.number:#x}"'
        f',"blockTimestamp":"{header.timestamp:#x}","transactionIndex":"{index:#x}"'
    )
    return _transaction_object(transaction, place, price)


def pending_transaction_document(transaction: Transaction) -> bytes:
    """Return the transaction object of a transaction that is in no block yet.

    Its gasPrice is the most that it would pay.
    """
    place = (
        '{"blockHash":null,"blockNumber":null,"blockTimestamp":null'
        ',"transactionIndex":null'
    )
    return _transaction_object(transaction, place, transaction.max_fee_per_gas)


def _transaction_object(transaction: Transaction, place: str, gas_price: int) -> bytes:
    """Return the object that begins with `place` and pays `gas_price` wei per gas."""
    to = f'"0x{transaction.to.hex()}"' if transaction.to else "null"
    return (
        f'{place},"hash":"0x{transaction.hash.hex()}","type":"{transaction.type:#x}"'
        f',"from":"0x{transaction.sender.hex()}","to":{to}'
        f',"nonce":"{transaction.nonce:#x}","gas":"{transaction.gas:#x}"'
        f',"gasPrice":"{gas_price:#x}"{_type_members(transaction)}'
        f',"value":"{transaction.value:#x}","input":"0x{transaction.data.hex()}"'
        f',"v":"{transaction.v:#x}","r":"{transaction.r:#x}","s":"{transaction.s:#x}"}}'
    ).encode()


def _type_members(transaction: Transaction) -> str:
    """Return the members that not every type has, each with a comma before it."""
    members = ""
    if transaction.chain_id is not None:
        members = f',"chainId":"{transaction.chain_id:#x}"'
    if transaction.type == LEGACY:
        return members
    members += f',"yParity":"{transaction.y_parity:#x}","accessList":[{_access_list(transaction)}]'
    if transaction.type >= DYNAMIC_FEE:
        members += (
            f',"maxFeePerGas":"{transaction.max_fee_per_gas:#x}"'
            f',"maxPriorityFeePerGas":"{transaction.max_priority_fee_per_gas:#x}"'
        )
    if transaction.type == BLOB:
        hashes = ",".join(
            [f'"0x{blob.hex()}"' for blob in transaction.blob_versioned_hashes]
        )
        members += (
            f',"maxFeePerBlobGas":"{transaction.max_fee_per_blob_gas:#x}"'
            f',"blobVersionedHashes":[{hashes}]'
        )
    if transaction.type == SET_CODE:
        items = ",".join(map(_authorization, transaction.authorization_list))
        members += f',"authorizationList":[{items}]'
    return members


def _access_list(transaction: Transaction) -> str:
    entries = []
    for address, slots in transaction.access_list:
        keys = ",".join([f'"0x{slot:064x}"' for slot in slots])
        entries.append(f'{{"address":"0x{address.hex()}","storageKeys":[{keys}]}}')
    return ",".join(entries)


def _authorization(authorization: Authorization) -> str:
    return (
        f'{{"chainId":"{authorization.chain_id:#x}"'
        f',"address":"0x{authorization.address.hex()}"'
        f',"nonce":"{authorization.nonce:#x}","yParity":"{authorization.y_parity:#x}"'
        f',"r":"{authorization.r:#x}","s":"{authorization.s:#x}"}}'
    )
