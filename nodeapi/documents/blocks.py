"""Block and transaction objects as JSON, created when a block is imported.

All values are hex or null, so nothing needs escaping and the text is concatenated
directly. Numbers are quantities, bytes are data. Members that a fork or a transaction
type introduced are present from that fork or type on.

Source: execution-apis src/schemas/{block,transaction,withdrawal}.yaml; go-ethereum
internal/ethapi/api.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lz4.block

from evm.blocks import Block
from evm.transactions import BLOB, DYNAMIC_FEE, LEGACY, SET_CODE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evm.blocks import Withdrawal
    from evm.headers import Header
    from evm.transactions import Authorization, Transaction


def block_document(
    block: Block, total_difficulty: int, *, pending: bool = False
) -> tuple[bytes, int]:
    """Return the block object, and the offset of its array of transactions.

    The first member is totalDifficulty. The last one is the array of transaction
    hashes, so that the text from the offset to the closing brace can be replaced by
    objects.

    pending: whether the block is not mined yet. hash, logsBloom, nonce and number are
        then null.
    """
    members = _header_members(block.header, block.size, pending=pending)
    uncles = ",".join([f'"0x{uncle.hash.hex()}"' for uncle in block.uncles])
    head = (
        f'{{"totalDifficulty":"{total_difficulty:#x}",{members}'
        f'{_withdrawals_member(block.withdrawals)},"uncles":[{uncles}],"transactions":'
    )
    hashes = ",".join([f'"0x{t.hash.hex()}"' for t in block.transactions])
    return f"{head}[{hashes}]}}".encode(), len(head)


def without_total_difficulty(document: bytes) -> bytes:
    """Return a block object without its first member, which is totalDifficulty."""
    return b"{" + document[document.index(b",") + 1 :]


def header_document(header: Header) -> bytes:
    """Return a header's object: the members of a block object that the header has.

    Source: go-ethereum internal/ethapi/api.go, RPCMarshalHeader
    """
    return f"{{{_header_members(header, None)}}}".encode()


def uncle_document(uncle: Header) -> bytes:
    """Return an uncle's object: a block object without transactions.

    Its size is that of a block with this header and an empty body.

    Source: go-ethereum internal/ethapi/api.go, GetUncleByBlockHashAndIndex
    """
    size = Block(uncle).size
    return f'{{{_header_members(uncle, size)},"uncles":[]}}'.encode()


_DAMAGED = (lz4.block.LZ4BlockError, ValueError, MemoryError)


def pack_full_block(
    document: bytes, transactions_offset: int, transactions: Iterable[bytes]
) -> bytes:
    """Return the block object with transaction objects, as an LZ4 block.

    document, transactions_offset: the result of `block_document`.
    transactions: their documents.

    The result has little more than a third of the size. Decompressing it costs less
    than reading the uncompressed text from the database. Incompressible parts are
    stored as they are. zstd halves the size, but takes at least twice the time to
    decompress.
    """
    parts = document[:transactions_offset], b"[", b",".join(transactions), b"]}"
    packed: bytes = lz4.block.compress(b"".join(parts))
    return packed


def unpack_full_block(packed: bytes) -> bytes:
    """Return the JSON from a result of `pack_full_block`.

    Raises: ValueError for malformed input.
    """
    document: bytes
    try:
        document = lz4.block.decompress(packed)
    except _DAMAGED as error:
        # MemoryError: the block begins with a huge length.
        raise ValueError(f"a block's document is damaged: {error}") from error
    if not document:
        raise ValueError("a block's document is damaged: nothing is in it")
    return document


def count_transactions(document: bytes) -> int:
    """Return the number of transactions of a block object with transaction hashes."""
    return document.count(b'"', document.rindex(b'"transactions":[') + 16) // 2


def count_uncles(document: bytes) -> int:
    """Return the number of uncles of a block object with transaction hashes."""
    begin = document.rindex(b'"uncles":[') + 10
    return document.count(b'"', begin, document.index(b"]", begin)) // 2


def _header_members(header: Header, size: int | None, *, pending: bool = False) -> str:
    """Return the members of a block object that come from its header.

    size: of the block in bytes, None to omit it.
    """
    shown_size = "" if size is None else f',"size":"{size:#x}"'
    block_hash = logs_bloom = nonce = number = "null"
    if not pending:
        block_hash = f'"0x{header.hash.hex()}"'
        logs_bloom = f'"0x{header.logs_bloom.hex()}"'
        nonce = f'"0x{header.nonce.hex()}"'
        number = f'"{header.number:#x}"'
    return (
        f'"difficulty":"{header.difficulty:#x}"'
        f',"extraData":"0x{header.extra_data.hex()}","gasLimit":"{header.gas_limit:#x}"'
        f',"gasUsed":"{header.gas_used:#x}","hash":{block_hash},"logsBloom":{logs_bloom}'
        f',"miner":"0x{header.coinbase.hex()}","mixHash":"0x{header.mix_hash.hex()}"'
        f',"nonce":{nonce},"number":{number},"parentHash":"0x{header.parent_hash.hex()}"'
        f',"receiptsRoot":"0x{header.receipts_root.hex()}"'
        f',"sha3Uncles":"0x{header.uncles_hash.hex()}"{shown_size}'
        f',"stateRoot":"0x{header.state_root.hex()}","timestamp":"{header.timestamp:#x}"'
        f',"transactionsRoot":"0x{header.transactions_root.hex()}"'
        f"{_fork_members(header)}"
    )


def _fork_members(header: Header) -> str:
    """Return the members that forks introduced, each with a leading comma."""
    members = ""
    for name, value in (
        ("baseFeePerGas", header.base_fee_per_gas),
        ("withdrawalsRoot", header.withdrawals_root),
        ("blobGasUsed", header.blob_gas_used),
        ("excessBlobGas", header.excess_blob_gas),
        ("parentBeaconBlockRoot", header.parent_beacon_root),
        ("requestsHash", header.requests_hash),
        ("blockAccessListHash", header.block_access_list_hash),
        ("slotNumber", header.slot_number),
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

    header: the block's. index: the transaction's index in the block, from 0.
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
    """Return the transaction object of a pending transaction.

    Its gasPrice is the highest price that it would pay.
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
