"""What call frames see around them: their transaction, their block, and the state."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evm.blob_gas import blob_base_fee
from evm.effects import Effects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from eth_typing import Address, Hash32

    from evm.precompiles.contract import Precompile
    from evm.rules.fork import Fork
    from evm.world import World

Entry = tuple[int, int, Any]
"""An opcode as the interpreter's loop reads it: its kind (`evm.instructions.kinds`), its
constant price, and what the loop needs for the kind: the number of bytes (PUSH), the
position (DUPLICATE, SWAP), a function of the stack (COMPUTE), a function of the frame
that returns the word to push (READ), or an `Operation`."""


@dataclass(slots=True)
class TransactionContext:
    """What all frames of a transaction share."""

    origin: bytes
    """The transaction's sender."""
    gas_price: int
    """Wei per gas."""
    blob_versioned_hashes: Sequence[bytes] = ()
    """The hashes that BLOBHASH reads, 32 bytes each."""
    effects: Effects = field(default_factory=Effects)


ANCESTORS_READABLE = 256
"""Number of hashes that BLOCKHASH can return."""


@dataclass(kw_only=True)
class BlockContext:
    """The values of a block that instructions read."""

    coinbase: Address
    timestamp: int
    """Unix seconds."""
    number: int
    difficulty: int
    mix_hash: Hash32
    """PREVRANDAO after the merge."""
    gas_limit: int
    chain_id: int
    base_fee: int = 0
    """Wei per gas; 0 before London."""
    excess_blob_gas: int | None = None
    slot_number: int = 0
    """Of the beacon chain; 0 before Amsterdam."""
    ancestor_hashes: Iterable[Hash32] = ()
    """From the parent's on, newest first; iterated when BLOCKHASH needs them."""
    _known_hashes: list[Hash32] = field(default_factory=list)

    @cached_property
    def _more_hashes(self) -> Iterator[Hash32]:
        return iter(self.ancestor_hashes)

    def ancestor_hash(self, number: int) -> bytes:
        """Return the hash of one of the last 256 blocks, b"" for any other number."""
        distance = self.number - number - 1
        if not 0 <= distance < ANCESTORS_READABLE:
            return b""
        known = self._known_hashes
        while len(known) <= distance:
            following = next(self._more_hashes, None)
            if following is None:
                return b""
            known.append(following)
        return known[distance]


class FrameState:
    """A world, with the block and the rules by which frames change it."""

    def __init__(
        self,
        world: World,
        block: BlockContext,
        fork: Fork,
        entries: tuple[Entry, ...],
    ) -> None:
        """entries: the 256 opcodes."""
        self.world = world
        self.block = block
        self.fork = fork
        self.entries = entries
        self.precompiles: Mapping[bytes, Precompile] = fork.precompiles
        """By address. Simulations may replace them."""
        world.always_warm = fork.precompiles
        # The methods of the world that instructions and tracers call most often.
        self.get_balance = world.get_balance
        self.get_nonce = world.get_nonce
        self.get_code = world.get_code
        self.get_storage = world.get_storage
        self.is_address_warm = world.is_address_warm
        self.is_storage_warm = world.is_storage_warm

    @cached_property
    def blob_base_fee(self) -> int:
        """Wei per blob gas in this block. Cached, because BLOBBASEFEE costs only 2 gas.

        Simulations may replace it.

        Raises: ValueError in a fork without blobs.
        """
        parameters, excess = self.fork.blob_parameters, self.block.excess_blob_gas
        if parameters is None or excess is None:
            raise ValueError(f"{self.fork.name} has no blobs")
        return blob_base_fee(excess, parameters.base_fee_update_fraction)
