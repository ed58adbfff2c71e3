"""Answers made out of records, without executing anything.

Each derivation is a tracer with its options. What it reads is a stored transaction:
its object as JSON, and its packed records (`nodeapi.tracers.record`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from nodeapi.evm.world import EMPTY_CODE_HASH
from nodeapi.tracers.call import CallConfig, call_json, read_call
from nodeapi.tracers.details import Details
from nodeapi.tracers.flat_call import FlatCallConfig, Place, flat_call_json
from nodeapi.tracers.four_byte import four_byte_json
from nodeapi.tracers.frames import CallFrame
from nodeapi.tracers.prestate import (
    PrestateConfig,
    code_text,
    prestate_json,
    read_prestate,
)
from nodeapi.tracers.record import fill_calls, unpack
from nodeapi.tracers.touched import TouchedAccount

CALLS, PRESTATE = "calls", "prestate"


class Recorded(Protocol):
    """A stored transaction with its records; those that are not needed are empty."""

    @property
    def block_hash(self) -> bytes:
        """The hash of its block."""

    @property
    def block_number(self) -> int:
        """The number of its block."""

    @property
    def index(self) -> int:
        """Its place in the block."""

    @property
    def hash(self) -> bytes:
        """Its hash."""

    @property
    def document(self) -> bytes:
        """The transaction object."""

    @property
    def calls(self) -> bytes:
        """As in `TransactionRecord`."""

    @property
    def prestate(self) -> bytes:
        """As in `TransactionRecord`."""

    @property
    def details(self) -> bytes:
        """As in `TransactionRecord`."""


class Derivation(Protocol):
    """A tracer with its options, whose answers come from records."""

    @property
    def name(self) -> str:
        """The tracer and its options, the same for the same answers."""

    @property
    def needs(self) -> frozenset[str]:
        """Which records it reads besides the details: `calls`, `prestate`."""

    def derive(self, transaction: Recorded, codes: Mapping[bytes, bytes]) -> bytes:
        """Return the answer as JSON.

        codes: what `code_hashes` names, by hash, where `needs` has `prestate`.
        Raises: RecordTooLarge; ValueError for records that are damaged.
        """


def call_tree(transaction: Recorded) -> tuple[CallFrame, Details]:
    """Return a transaction's calls with their logs, and the details."""
    top = read_call(fill_calls(transaction.calls, transaction.document))
    details = Details(unpack(transaction.details))
    details.add_logs(top)
    return top, details


def touched_accounts(transaction: Recorded) -> list[TouchedAccount]:
    """Return the accounts that a transaction touched, before it and after it."""
    details = Details(unpack(transaction.details))
    details.add_logs(None)
    return details.complete(read_prestate(unpack(transaction.prestate)))


def code_hashes(transaction: Recorded) -> set[bytes]:
    """Return the hashes of all code that the touched accounts had or have now."""
    found: set[bytes] = set()
    for account in touched_accounts(transaction):
        found |= {account.before.code_hash, account.after.code_hash}
    return found - {EMPTY_CODE_HASH}


@dataclass(frozen=True, slots=True)
class CallDerivation:
    """callTracer with options."""

    config: CallConfig = field(default_factory=CallConfig)
    needs = frozenset({CALLS})

    @property
    def name(self) -> str:
        """The tracer and its options."""
        return f"callTracer {self.config}"

    def derive(self, transaction: Recorded, codes: Mapping[bytes, bytes]) -> bytes:
        """Return the answer as JSON."""
        top, _ = call_tree(transaction)
        return call_json(top, self.config).encode()


@dataclass(frozen=True, slots=True)
class FlatCallDerivation:
    """flatCallTracer."""

    config: FlatCallConfig = field(default_factory=FlatCallConfig)
    needs = frozenset({CALLS})

    @property
    def name(self) -> str:
        """The tracer and its options."""
        return f"flatCallTracer {self.config}"

    def derive(self, transaction: Recorded, codes: Mapping[bytes, bytes]) -> bytes:
        """Return the answer as JSON."""
        top, details = call_tree(transaction)
        place = Place(
            transaction.block_hash,
            transaction.block_number,
            transaction.hash,
            transaction.index,
        )
        return flat_call_json(top, self.config, details.precompiles, place).encode()


@dataclass(frozen=True, slots=True)
class FourByteDerivation:
    """4byteTracer."""

    name = "4byteTracer"
    needs = frozenset({CALLS})

    def derive(self, transaction: Recorded, codes: Mapping[bytes, bytes]) -> bytes:
        """Return the answer as JSON."""
        top, details = call_tree(transaction)
        return four_byte_json(top, details.precompiles).encode()


@dataclass(frozen=True, slots=True)
class PrestateDerivation:
    """prestateTracer with options."""

    config: PrestateConfig = field(default_factory=PrestateConfig)
    needs = frozenset({PRESTATE})

    @property
    def name(self) -> str:
        """The tracer and its options."""
        return f"prestateTracer {self.config}"

    def derive(self, transaction: Recorded, codes: Mapping[bytes, bytes]) -> bytes:
        """Return the answer as JSON."""
        touched = touched_accounts(transaction)
        return prestate_json(touched, self.config, code_text(codes)).encode()


@dataclass(frozen=True, slots=True)
class NoopDerivation:
    """noopTracer, which answers that there was a transaction."""

    name = "noopTracer"
    needs: frozenset[str] = frozenset()

    def derive(self, transaction: Recorded, codes: Mapping[bytes, bytes]) -> bytes:
        """Return the answer as JSON."""
        return b"{}"


@dataclass(frozen=True, slots=True)
class MuxDerivation:
    """muxTracer: several tracers in one answer."""

    tracers: tuple[tuple[str, Derivation], ...]
    """By their names, in the order of the answer."""

    @property
    def name(self) -> str:
        """The tracers and their options."""
        inner = ", ".join(derivation.name for _, derivation in self.tracers)
        return f"muxTracer [{inner}]"

    @property
    def needs(self) -> frozenset[str]:
        """What any of them needs."""
        return frozenset().union(*(derivation.needs for _, derivation in self.tracers))

    def derive(self, transaction: Recorded, codes: Mapping[bytes, bytes]) -> bytes:
        """Return the answer as JSON."""
        members = [
            b'"%b":%b' % (name.encode(), derivation.derive(transaction, codes))
            for name, derivation in self.tracers
        ]
        return b"{" + b",".join(members) + b"}"
