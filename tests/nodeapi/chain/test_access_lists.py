"""Access lists of all blocks: the same as geth's, and as the rows of the state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evm.block_access_list import ListedAccount, decode_access_list
from evm.signatures import keccak
from evm.tracers.record import unpack
from networks.models import Network
from nodeapi.models import AccountVersion, BlockAccessList, StorageVersion
from tests.support import amsterdam, chains


@dataclass
class State:
    """Accounts and slots as they are known from lists, or from rows, without zeros."""

    nonces: dict[bytes, int] = field(default_factory=dict)
    balances: dict[bytes, int] = field(default_factory=dict)
    codes: dict[bytes, bytes] = field(default_factory=dict)
    """Hashes of the code."""
    slots: dict[tuple[bytes, int], int] = field(default_factory=dict)

    def add(self, accounts: Iterable[ListedAccount]) -> None:
        """Add the last changes of a list."""
        for one in accounts:
            if one.nonces:
                put(self.nonces, one.address, one.nonces[-1][1])
            if one.balances:
                put(self.balances, one.address, one.balances[-1][1])
            if one.codes:
                code = one.codes[-1][1]
                put(self.codes, one.address, keccak(code) if code else b"")
            for slot, changes in one.storage.items():
                put(self.slots, (one.address, slot), changes[-1][1])

    def add_rows(self, network_id: int, number: int) -> None:
        """Add the accounts and slots that a block changed."""
        where = {"network_id": network_id, "block_number": number}
        for account in AccountVersion.objects.filter(**where):
            address = bytes(account.address)
            put(self.nonces, address, int(account.nonce or 0))
            put(self.balances, address, int(account.balance or 0))
            put(self.codes, address, bytes(account.code_hash or b""))
        for slot in StorageVersion.objects.filter(**where):
            key = bytes(slot.address), int.from_bytes(bytes(slot.slot), "big")
            put(self.slots, key, int.from_bytes(bytes(slot.value), "big"))


def put(values: dict[Any, Any], key: object, value: object) -> None:
    """Set a value, or remove it if it is zero or empty."""
    if value:
        values[key] = value
    else:
        values.pop(key, None)


@pytest.fixture(scope="module", autouse=True)
def networks(module_db: None) -> None:
    amsterdam.import_with_sample()


def lists(slug: str) -> dict[int, BlockAccessList]:
    """Return the stored lists by block number."""
    rows = BlockAccessList.objects.filter(block__network__slug=slug)
    return {row.block.number: row for row in rows.select_related("block")}


def backfill(*arguments: str) -> str:
    out = StringIO()
    call_command("backfill_access_lists", *arguments, stdout=out)
    return out.getvalue()


def test_lists_are_geths() -> None:
    stored = lists("amsterdam")
    for block in amsterdam.blocks()[2:]:  # those of Amsterdam
        found = unpack(bytes(stored[block["number"]].list))
        assert f"0x{found.hex()}" == block["blockAccessList"], block["title"]


@pytest.mark.parametrize("slug", ["sample", "amsterdam"])
def test_lists_give_the_state_after_each_block(slug: str) -> None:
    network = Network.objects.get(slug=slug)
    stored = lists(slug)
    assert stored.keys() == set(range((network.head_number or 0) + 1))
    listed, expected = State(), State()
    for number in range(len(stored)):
        expected.add_rows(network.pk, number)
        if number == 0:
            listed.add_rows(network.pk, number)
        accounts = list(decode_access_list(unpack(bytes(stored[number].list))))
        listed.add(accounts)
        for address, slot in listed.slots.keys() - expected.slots.keys():
            # The destruction of a contract clears slots that were never read.
            destroyed = next(one for one in accounts if one.address == address)
            assert b"" in dict(destroyed.codes).values()
            del listed.slots[address, slot]
        assert listed == expected, f"block {number}"


def test_backfill_makes_the_lists_of_import() -> None:
    before = chains.rows("sample"), chains.rows("amsterdam")
    BlockAccessList.objects.filter(block__network__slug="sample").delete()
    assert backfill("--network", "sample", "--blocks", "3-5").endswith(
        "3 lists added, blocks 3 to 5 have theirs\n"
    )
    assert lists("sample").keys() == {3, 4, 5}
    head = Network.objects.get(slug="sample").head_number or 0
    assert f"{head - 2} lists added" in backfill("--network", "sample")
    BlockAccessList.objects.filter(block__network__slug="amsterdam").delete()
    assert "35 lists added" in backfill("--network", "amsterdam")
    assert (chains.rows("sample"), chains.rows("amsterdam")) == before
    assert "0 lists added" in backfill("--network", "amsterdam")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--network", "other"], "no network 'other'"),
        (["--network", "sample", "--blocks", "5-3"], "two block numbers from 1 on"),
    ],
)
def test_backfill_refuses(arguments: list[str], error: str) -> None:
    with pytest.raises(CommandError, match=error):
        backfill(*arguments)
