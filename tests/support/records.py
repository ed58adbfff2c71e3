"""Blocks of invented transactions with trace records, for tests of reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import sha3
from django.db import transaction

from evm.tracers.record import TOO_LARGE, fill_calls, fill_codes, pack, unpack
from networks.models import Network
from nodeapi.documents import receipt_codec
from nodeapi.documents.blocks import pack_full_block
from nodeapi.models import Block, Code, Transaction, TransactionRecord
from tests.support.rows import hash_of, plain_header

BLOCK_PART = f'"blockHash":"0x{"11" * 32}","blockNumber":"0x7"'


def keccak(data: bytes) -> bytes:
    """Return the hash of some code."""
    return bytes(sha3.keccak_256(data).digest())


@dataclass
class Recorded:
    """An invented transaction with its trace record.

    output: return data of the outermost call, as hex digits.
    codes: the code of touched contracts.
    logs: the data of its logs, as hex digits.
    too_large: whether its calls exceeded the size limit.
    """

    name: str
    data: bytes = b""
    output: bytes = b""
    codes: Sequence[bytes] = ()
    too_large: bool = False
    details: bytes = b"details"
    logs: bytes = b""

    @property
    def hash(self) -> bytes:
        """The transaction's hash."""
        return hash_of(self.name)

    def document(self, index: int) -> bytes:
        """Return the transaction object."""
        return (
            f'{{{BLOCK_PART},"blockTimestamp":"0x9","transactionIndex":"{index:#x}"'
            f',"hash":"0x{self.hash.hex()}","type":"0x2","from":"0x{"aa" * 20}"'
            f',"to":"0x{"bb" * 20}","nonce":"0x0","gas":"0x5208","gasPrice":"0x1"'
            f',"value":"0x0","input":"0x{self.data.hex()}","v":"0x0"}}'
        ).encode()

    @cached_property
    def packed_calls(self) -> bytes:
        """Return the packed `calls`."""
        if self.too_large:
            return TOO_LARGE
        output = b',"output":"0x' + self.output + b'"' if self.output else b""
        return pack(b'{\x01"gasUsed":"0x5208",\x02' + output + b',\x04,"type":"CALL"}')

    @cached_property
    def packed_prestate(self) -> bytes:
        """Return the packed `prestate`."""
        accounts = [
            b'"0x%s":{"balance":"0x1","code":"0x\x05","codeHash":"0x%s"}'
            % (keccak(code)[:20].hex().encode(), keccak(code).hex().encode())
            for code in self.codes
        ]
        return pack(b"{" + b",".join(accounts) + b"}")

    def calls(self, index: int) -> bytes:
        """Return callTracer's result."""
        return fill_calls(self.packed_calls, self.document(index))

    def prestate(self) -> bytes:
        """Return prestateTracer's result."""
        codes = {keccak(code): code for code in self.codes}
        return fill_codes(unpack(self.packed_prestate), codes)

    def stored_receipt(self) -> bytes:
        """Return the receipt in the form of `nodeapi.documents.receipts`."""
        log = f'{{"address":"{self.name}","data":"0x{self.logs.decode()}",@}}'
        return receipt_codec.pack(f',"status":"0x1","logs":[{log},{log}]}}'.encode())


@transaction.atomic
def add_recorded_block(
    network: Network,
    name: str,
    number: int,
    transactions: Sequence[Recorded],
    *,
    parent: str = "",
    is_canonical: bool = True,
    header: bytes = b"",
    body: bytes = b"",
) -> Block:
    """Add a block with transactions and their records."""
    block = Block.objects.create(
        network=network,
        hash=hash_of(name),
        number=number,
        parent_hash=hash_of(parent),
        is_canonical=is_canonical,
        total_difficulty=number,
        state_root=bytes(32),
        gas_used=0,
        transaction_count=len(transactions),
        header=header or plain_header(number),
        body=body,
        document=b'{"transactions":[]}',
        transactions_offset=16,
        full_document=pack_full_block(
            b'{"transactions":',
            16,
            [one.document(index) for index, one in enumerate(transactions)],
        ),
    )
    # Inserted in reverse order, which must not affect the result.
    placed = list(reversed(list(enumerate(transactions))))
    Transaction.objects.bulk_create(
        Transaction(block=block, index=n, hash=one.hash, document=one.document(n))
        for n, one in placed
    )
    TransactionRecord.objects.bulk_create(
        TransactionRecord(
            block=block,
            index=index,
            receipt=one.stored_receipt(),
            calls=one.packed_calls,
            prestate=one.packed_prestate,
            details=pack(one.details),
            calls_size=0 if one.too_large else len(one.calls(index)),
            prestate_size=len(one.prestate()),
        )
        for index, one in placed
    )
    codes = {code for one in transactions for code in one.codes}
    Code.objects.bulk_create(
        (Code(hash=keccak(code), code=code) for code in codes), ignore_conflicts=True
    )
    return block


def entries(results: Sequence[tuple[Recorded, bytes]]) -> bytes:
    """Return the expected result for a block."""
    return (
        "["
        + ",".join(
            f'{{"txHash":"0x{one.hash.hex()}","result":{result.decode()}}}'
            for one, result in results
        )
        + "]"
    ).encode()
