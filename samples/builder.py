"""A builder of valid blocks from transactions, for the sample chain and for tests.

    chain = ChainBuilder(genesis)
    token = chain.deploy(alice, contract("token").init_code(word(1000)))
    chain.block()
    chain.send(alice, token, call_data("transfer(address,uint256)", bob.address, 7))
    chain.block(extra_data=b"a transfer")
    chain.blocks  # two of them

The same calls produce the same bytes. Proof-of-work seals are left empty.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from eth_typing import Address, Hash32

from evm import rlp
from evm.blob_gas import next_excess_blob_gas
from evm.blocks import Block, Withdrawal, encode_block
from evm.chain_config import ChainConfig
from evm.execution import BlockExecution, Outcome
from evm.genesis import genesis_block
from evm.header_rules import ELASTICITY, next_base_fee
from evm.headers import EMPTY_UNCLES_HASH, ZERO_HASH, ZERO_NONCE, Header
from evm.receipts import BLOOM_BYTES
from evm.requests import requests_hash
from evm.signatures import keccak
from evm.signing import TransactionFields
from evm.transactions import (
    ACCESS_LIST,
    BLOB,
    CREATE_ADDRESS,
    DYNAMIC_FEE,
    LEGACY,
    SET_CODE,
    Authorization,
    Transaction,
)
from evm.trie import EMPTY_ROOT, ordered_root
from evm.world import World
from nodeapi.chain.genesis import genesis_state
from nodeapi.chain.memory_state import MemoryState
from samples.schedules import SECONDS_PER_BLOCK
from samples.signers import Signer, create_address

if TYPE_CHECKING:
    from evm.rules.fork import Fork

ANCESTORS_KEPT = 256
"""Number of block hashes that BLOCKHASH can return."""

MINER = Address(b"\x00" * 16 + b"mine")

GAS_PRICE_WEI = 20 * 10**9
PRIORITY_FEE_WEI = 10**9
DEFAULT_GAS = 300_000
DEPLOYMENT_GAS = 1_000_000


class TransactionOptions(TypedDict, total=False):
    """Options of a transaction besides its receiver and data."""

    type: int
    chain_id: int
    nonce: int
    gas_price: int
    max_priority_fee_per_gas: int
    max_fee_per_gas: int
    gas: int
    value: int
    access_list: Sequence[tuple[Address, Sequence[int]]]
    max_fee_per_blob_gas: int
    blob_versioned_hashes: Sequence[Hash32]
    authorization_list: Sequence[Authorization]


class ChainBuilder:
    """A chain in memory that grows by one valid block at a time."""

    def __init__(
        self, genesis: dict[str, Any], seconds_per_block: int = SECONDS_PER_BLOCK
    ) -> None:
        """Begin with the genesis block.

        genesis: geth's `genesis.json`.
        seconds_per_block: difference of timestamps, unless `block` is given a
            timestamp.
        """
        self.config = ChainConfig.from_genesis(genesis)
        self.state = MemoryState()
        self.seconds_per_block = seconds_per_block
        root = self.state.adopt(*genesis_state(genesis))
        self.genesis = genesis_block(genesis, self.config, root)
        header = self.head = self.genesis.header
        self.total_difficulty = header.difficulty
        self.blocks: list[Block] = []
        """Blocks after the genesis."""
        self.outcomes: list[Outcome] = []
        """Results of executing `blocks`: receipts, gas, requests."""
        self._ancestor_hashes = deque([header.hash], maxlen=ANCESTORS_KEPT)
        self._pending: list[Transaction] = []
        self._spent_nonces: Counter[Address] = Counter()

    # Transactions of the next block

    def send(
        self,
        sender: Signer,
        to: Address,
        data: bytes = b"",
        **options: Unpack[TransactionOptions],
    ) -> Transaction:
        """Add a transaction to the next block, and return it.

        Missing options get a valid default: the sender's nonce, ample gas and fees,
        type 2 if the block's fork has it (otherwise 0), and the chain id from Spurious
        Dragon on. `chain_id=0` makes a legacy transaction without chain id.
        """
        fields: TransactionFields = {"to": to, "data": data, **options}
        kind = fields.setdefault("type", self._default_type(fields))
        fields.setdefault("nonce", self.next_nonce(sender.address))
        fields.setdefault("gas", DEFAULT_GAS)
        if kind in (LEGACY, ACCESS_LIST):
            fields.setdefault("gas_price", GAS_PRICE_WEI)
        else:
            fields.setdefault("max_fee_per_gas", GAS_PRICE_WEI)
            fields.setdefault("max_priority_fee_per_gas", PRIORITY_FEE_WEI)
        if kind != LEGACY or self.next_fork().has_replay_protection:
            fields.setdefault("chain_id", self.config.chain_id)
        if kind == LEGACY and not fields.get("chain_id"):
            fields.pop("chain_id", None)
        transaction = sender.sign(fields)
        self._pending.append(transaction)
        self._spent_nonces[sender.address] += 1
        for authorization in transaction.authorization_list:
            authority = authorization.authority()
            if authorization.nonce == self.next_nonce(authority):
                self._spent_nonces[authority] += 1
        return transaction

    def add(self, transaction: Transaction) -> None:
        """Add a signed transaction to the next block."""
        self._pending.append(transaction)

    def deploy(
        self, sender: Signer, init_code: bytes, **options: Unpack[TransactionOptions]
    ) -> Address:
        """Add a creation transaction to the next block, and return the new address."""
        options.setdefault("gas", DEPLOYMENT_GAS)
        transaction = self.send(sender, CREATE_ADDRESS, init_code, **options)
        return create_address(sender.address, transaction.nonce)

    def authorize(
        self, authority: Signer, address: Address, *, ahead: int = 0
    ) -> Authorization:
        """Return a signed delegation (EIP-7702) for the next transaction.

        ahead: number of the authority's nonces that this transaction uses before the
            delegation; 1 if the authority is its sender.
        """
        nonce = self.next_nonce(authority.address) + ahead
        return authority.authorize(self.config.chain_id, address, nonce)

    def next_nonce(self, address: Address) -> int:
        """Return the nonce of the account's next transaction after the pending ones."""
        account = self.state.account(address)
        stored = 0 if account is None else account.nonce
        return stored + self._spent_nonces[address]

    def next_fork(self, timestamp: int | None = None) -> Fork:
        """Return the fork of the next block."""
        if timestamp is None:
            timestamp = self.head.timestamp + self.seconds_per_block
        return self.config.fork_at(
            self.head.number + 1,
            timestamp,
            self.config.is_merged(self.total_difficulty),
        )

    def _default_type(self, fields: TransactionFields) -> int:
        if "authorization_list" in fields:
            return SET_CODE
        if "blob_versioned_hashes" in fields:
            fields.setdefault("max_fee_per_blob_gas", GAS_PRICE_WEI)
            return BLOB
        if "gas_price" in fields:
            return ACCESS_LIST if "access_list" in fields else LEGACY
        return DYNAMIC_FEE if self.next_fork().has_base_fee else LEGACY

    # Blocks

    def block(
        self,
        *,
        timestamp: int | None = None,
        coinbase: Address = MINER,
        extra_data: bytes = b"",
        gas_limit: int | None = None,
        mix_hash: Hash32 | None = None,
        uncles: Sequence[Header] = (),
        withdrawals: Sequence[Withdrawal] = (),
        parent_beacon_root: Hash32 | None = None,
    ) -> Block:
        """Make the next block of the pending transactions, and return it.

        Withdrawals, mix hash (PREVRANDAO) and parent beacon root are ignored before
        their fork. The default gas limit is the parent's.

        Raises: InvalidTransaction. The pending transactions are then discarded.
        """
        transactions, self._pending = self._pending, []
        self._spent_nonces.clear()
        if timestamp is None:
            timestamp = self.head.timestamp + self.seconds_per_block
        fork = self.next_fork(timestamp)
        draft = replace(
            self._draft(fork, timestamp),
            coinbase=coinbase,
            extra_data=extra_data,
            uncles_hash=uncles_hash(uncles),
        )
        if gas_limit is not None:
            draft = replace(draft, gas_limit=gas_limit)
        if fork.is_merged and mix_hash is not None:
            draft = replace(draft, mix_hash=mix_hash)
        if fork.has_parent_beacon_root and parent_beacon_root is not None:
            draft = replace(draft, parent_beacon_root=parent_beacon_root)
        paid = tuple(withdrawals) if fork.has_withdrawals else None
        block = Block(draft, tuple(transactions), tuple(uncles), paid)
        return self._append(self._execute(block, fork))

    def fork(self) -> ChainBuilder:
        """Return an independent builder that continues from the same head."""
        twin = object.__new__(ChainBuilder)
        twin.__dict__.update(self.__dict__)
        twin.state = self.state.copy()
        twin.blocks = list(self.blocks)
        twin.outcomes = list(self.outcomes)
        twin._ancestor_hashes = self._ancestor_hashes.copy()
        twin._pending = list(self._pending)
        twin._spent_nonces = self._spent_nonces.copy()
        return twin

    def rlp(self) -> bytes:
        """Return the concatenated RLP of the blocks after the genesis.

        geth's `export` writes files in this format.
        """
        return b"".join(map(encode_block, self.blocks))

    def _draft(self, fork: Fork, timestamp: int) -> Header:
        """Return the next header, without the fields that result from execution."""
        parent = self.head
        has_base_fee = fork.has_base_fee
        # The first block with a base fee doubles the limit, so that its target is the
        # limit of before: https://eips.ethereum.org/EIPS/eip-1559
        elasticity = (
            ELASTICITY if has_base_fee and parent.base_fee_per_gas is None else 1
        )
        return Header(
            parent_hash=parent.hash,
            uncles_hash=EMPTY_UNCLES_HASH,
            coinbase=MINER,
            state_root=ZERO_HASH,
            transactions_root=ZERO_HASH,
            receipts_root=ZERO_HASH,
            logs_bloom=bytes(BLOOM_BYTES),
            difficulty=self._difficulty(fork, timestamp),
            number=parent.number + 1,
            gas_limit=parent.gas_limit * elasticity,
            gas_used=0,
            timestamp=timestamp,
            extra_data=b"",
            mix_hash=_derived(parent, b"randao") if fork.is_merged else ZERO_HASH,
            nonce=ZERO_NONCE,
            base_fee_per_gas=next_base_fee(parent) if has_base_fee else None,
            withdrawals_root=Hash32(EMPTY_ROOT) if fork.has_withdrawals else None,
            blob_gas_used=0 if fork.has_blobs else None,
            excess_blob_gas=self._excess_blob_gas(fork) if fork.has_blobs else None,
            parent_beacon_root=(
                _derived(parent, b"beacon") if fork.has_parent_beacon_root else None
            ),
            requests_hash=ZERO_HASH if fork.has_requests else None,
            block_access_list_hash=ZERO_HASH if fork.has_block_access_list else None,
            slot_number=(
                (parent.slot_number or 0) + 1 if fork.has_block_access_list else None
            ),
        )

    def _difficulty(self, fork: Fork, timestamp: int) -> int:
        if fork.difficulty is None:
            return 0
        parent = self.head
        return fork.difficulty(
            parent.difficulty,
            parent.timestamp,
            timestamp,
            parent.number + 1,
            parent.uncles_hash != EMPTY_UNCLES_HASH,
        )

    def _excess_blob_gas(self, fork: Fork) -> int:
        parent = self.head
        return next_excess_blob_gas(
            parent.excess_blob_gas or 0,
            parent.blob_gas_used or 0,
            parent.base_fee_per_gas or 0,
            fork,
        )

    def _execute(self, block: Block, fork: Fork) -> Block:
        """Execute a block, update the state, and return the block with its roots."""
        world = World(self.state)

        def state_root() -> Hash32:
            return self.state.root_after(self._changes(world, fork))

        execution = BlockExecution(
            block.header,
            fork,
            self.config,
            world,
            tuple(self._ancestor_hashes),
            state_root,
        )
        execution.begin()
        for transaction in block.transactions:
            execution.apply_transaction(transaction)
        outcome = execution.finish(block.uncles, block.withdrawals)
        self.outcomes.append(outcome)
        header = replace(
            block.header,
            state_root=self.state.apply(self._changes(world, fork)),
            transactions_root=_root([t.raw for t in block.transactions]),
            receipts_root=_root([receipt.encode() for receipt in outcome.receipts]),
            logs_bloom=outcome.bloom.to_bytes(BLOOM_BYTES, "big"),
            gas_used=outcome.gas_used,
        )
        if block.withdrawals is not None:
            root = _root([withdrawal.encode() for withdrawal in block.withdrawals])
            header = replace(header, withdrawals_root=root)
        if fork.has_blobs:
            header = replace(header, blob_gas_used=execution.blob_gas_used)
        if outcome.requests is not None:
            header = replace(header, requests_hash=requests_hash(outcome.requests))
        if outcome.access_list is not None:
            list_hash = outcome.access_list.hash
            header = replace(header, block_access_list_hash=list_hash)
        return replace(block, header=header)

    @staticmethod
    def _changes(world: World, fork: Fork) -> Any:
        return world.changes(clears_empty_accounts=fork.clears_empty_accounts)

    def _append(self, block: Block) -> Block:
        self.head = block.header
        self.total_difficulty += block.header.difficulty
        self.blocks.append(block)
        self._ancestor_hashes.appendleft(block.header.hash)
        return block


def uncles_hash(uncles: Sequence[Header]) -> Hash32:
    """Return the hash of a block's uncles (`sha3Uncles` in the header)."""
    return Hash32(keccak(rlp.encode([uncle.items() for uncle in uncles])))


def _root(values: list[bytes]) -> Hash32:
    return Hash32(ordered_root(values))


def _derived(parent: Header, purpose: bytes) -> Hash32:
    """Return a pseudorandom hash that depends only on the arguments."""
    return Hash32(keccak(purpose + parent.hash))
