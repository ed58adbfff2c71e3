"""The uploaded definitions that a page may use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Q

from abi.definitions import Definition, parse_definition
from abi.selectors import Definitions
from keys.models import User
from keys.selectors import account_ids
from networks.models import Network
from nodeapi.models import AbiEntry

MAX_ENTRIES = 2000
"""Definitions that are read for a page."""

_ANY = b""
"""Replaces an address for definitions that are valid for all contracts."""


class Abis:
    """Uploaded definitions by contract, for one visitor.

    The order of precedence: the visitor's own definitions for the contract, those for
    everyone for the contract, the visitor's own for all contracts, those for everyone for
    all contracts.
    """

    def __init__(self, network: Network, user: Any) -> None:
        """Create it without definitions. user: the visitor, who may be anonymous."""
        self._network = network
        self._owner = user if isinstance(user, User) else None
        self._entries: dict[bytes, list[tuple[bool, bytes, Definition]]] = {}
        self._by_address: dict[bytes, Definitions] = {}

    def read(self, keys: Iterable[bytes]) -> None:
        """Read the definitions with these selectors and topics from the database.

        Those of an earlier call are dropped.
        """
        visible = Q(abi__owner=None)
        if self._owner is not None:
            visible |= Q(abi__owner__in=account_ids(self._owner))
        found = AbiEntry.objects.filter(
            visible, abi__network=self._network, key__in=sorted(set(keys))
        )
        rows = found.order_by("-abi_id").values_list(
            "abi__address", "abi__owner", "key", "line"
        )
        self._entries, self._by_address = {}, {}
        for address, owner, key, line in rows[:MAX_ENTRIES]:
            self._entries.setdefault(bytes(address), []).append(
                (owner is None, bytes(key), parse_definition(line))
            )

    def of(self, address: bytes | None) -> Definitions | None:
        """Return the definitions for a contract, None if there are none."""
        place = address if address in self._entries else _ANY
        assert place is not None
        if place not in self._by_address:
            own, general = self._entries.get(place, []), self._entries.get(_ANY, [])
            ordered = sorted(own, key=lambda entry: entry[0])
            if place != _ANY:
                ordered += sorted(general, key=lambda entry: entry[0])
            keyed = ((key, definition) for _, key, definition in ordered)
            self._by_address[place] = Definitions(keyed)
        return self._by_address[place] if self._entries else None
