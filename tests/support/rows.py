"""Small chains of invented blocks in the tables, for tests of reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from django.db import transaction
from eth_typing import Address

from evm.changes import AccountValue, Changes, encode_changes
from evm.headers import (
    EMPTY_TRIE_ROOT,
    EMPTY_UNCLES_HASH,
    ZERO_HASH,
    ZERO_NONCE,
    Header,
)
from evm.tracers.record import TOO_LARGE
from evm.world import EMPTY_CODE_HASH
from networks.models import Network, NetworkState
from networks.services import create_network
from nodeapi.documents.blocks import pack_full_block
from nodeapi.models import (
    AccountVersion,
    Block,
    SideDiff,
    StorageVersion,
    Transaction,
    TransactionRecord,
)
from outbox.append import append
from outbox.streams import blocks

_HEADER = Header(
    parent_hash=ZERO_HASH,
    uncles_hash=EMPTY_UNCLES_HASH,
    coinbase=Address(bytes(20)),
    state_root=ZERO_HASH,
    transactions_root=EMPTY_TRIE_ROOT,
    receipts_root=EMPTY_TRIE_ROOT,
    logs_bloom=bytes(256),
    difficulty=0,
    number=0,
    gas_limit=0,
    gas_used=0,
    timestamp=0,
    extra_data=b"",
    mix_hash=ZERO_HASH,
    nonce=ZERO_NONCE,
)


def hash_of(name: str) -> bytes:
    """Return a hash of 32 bytes for a name."""
    return name.encode().ljust(32, b".")


def plain_header(number: int) -> bytes:
    """Return the RLP of a header whose timestamp equals its number."""
    return replace(_HEADER, number=number, timestamp=number).encode()


def make_network(slug: str = "alpha", **fields: object) -> Network:
    """Create a visible network without blocks."""
    network = create_network(
        slug=slug,
        name=slug.title(),
        chain_id=int.from_bytes(slug.encode()[:4]),
        genesis={"config": {"chainId": 1}},
        genesis_hash=hash_of(f"{slug}-0"),
    )
    fields = {"state": NetworkState.VISIBLE, "is_preparing": False, **fields}
    Network.objects.filter(pk=network.pk).update(**fields)
    network.state = str(fields["state"])
    network.is_preparing = bool(fields["is_preparing"])
    return network


@transaction.atomic
def add_block(
    network: Network,
    name: str,
    number: int,
    parent: str = "",
    *,
    is_canonical: bool = True,
    transactions: Iterable[str] = (),
) -> Block:
    """Add a block whose hash is `hash_of(name)`; its JSON names it as well.

    Its transactions have no trace records; see `tests.support.records`.
    """
    names = list(transactions)
    hashes = ",".join(f'"{one}"' for one in names)
    head = f'{{"totalDifficulty":"0x{number:x}","name":"{name}","transactions":'
    block = Block.objects.create(
        network=network,
        hash=hash_of(name),
        number=number,
        parent_hash=hash_of(parent),
        is_canonical=is_canonical,
        total_difficulty=number,
        state_root=bytes(32),
        gas_used=0,
        transaction_count=len(names),
        header=plain_header(number),
        body=b"",
        document=f"{head}[{hashes}]}}".encode(),
        transactions_offset=len(head),
        full_document=pack_full_block(
            head.encode(),
            len(head),
            [f'{{"name":"{one}"}}'.encode() for one in names],
        ),
    )
    # Inserted in reverse order, which must not affect the result.
    for index, name in reversed(list(enumerate(names))):
        Transaction.objects.create(
            block=block,
            index=index,
            hash=hash_of(name),
            document=f'{{"name":"{name}"}}'.encode(),
        )
        TransactionRecord.objects.create(
            block=block,
            index=index,
            receipt=b"\x01",
            calls=TOO_LARGE,
            prestate=TOO_LARGE,
            details=TOO_LARGE,
            calls_size=0,
            prestate_size=0,
        )
    return block


def document(
    name: str, number: int, transactions: str = "", difficulty: bool = True
) -> bytes:
    """Return the block object that `add_block` stores."""
    first = f'"totalDifficulty":"0x{number:x}",' if difficulty else ""
    return f'{{{first}"name":"{name}","transactions":[{transactions}]}}'.encode()


def set_storage(
    network: Network, address: bytes, slot: int, values: Mapping[int, int]
) -> None:
    """Insert the versions of a slot: its value after each block that changed it."""
    for number, value in values.items():
        StorageVersion.objects.create(
            network_id=network.pk,
            address=address,
            slot=slot.to_bytes(32),
            block_number=number,
            value=value.to_bytes(32).lstrip(b"\0"),
        )


def set_account(
    network: Network, address: bytes, values: Mapping[int, AccountValue | None]
) -> None:
    """Insert the versions of an account: its value after each block that changed it."""
    for number, value in values.items():
        nonce, balance, code_hash, storage_root = value or (None,) * 4
        AccountVersion.objects.create(
            network_id=network.pk,
            address=address,
            block_number=number,
            nonce=nonce,
            balance=balance,
            code_hash=None if code_hash == EMPTY_CODE_HASH else code_hash,
            storage_root=storage_root,
        )


def set_diff(
    block: Block,
    storage: Mapping[bytes, Mapping[int, int]],
    accounts: Mapping[bytes, AccountValue | None] | None = None,
) -> None:
    """Store the diff of a side block: changed slots and accounts."""
    changes = Changes(
        accounts={Address(a): value for a, value in (accounts or {}).items()},
        storage={Address(a): dict(values) for a, values in storage.items()},
    )
    SideDiff.objects.create(block=block, diff=encode_changes(changes))


def set_head(network: Network, name: str, number: int, **fields: object) -> None:
    """Change the head, and publish it as an import does."""
    with transaction.atomic():
        Network.objects.filter(pk=network.pk).update(
            head_number=number, head_hash=hash_of(name), **fields
        )
        append(blocks(network.pk))
