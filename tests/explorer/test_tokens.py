"""Symbols and decimals of tokens: read from contracts that may be hostile, and shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from eth_typing import Address

from abi.addresses import checksummed
from abi.encoding import topic
from abi.erc20 import UNKNOWN, Token
from evm.addresses import SYSTEM_ADDRESS
from explorer.erc20 import PAGE_SECONDS, TokenReader
from explorer.logs import ReceiptLog
from explorer.transfers import Transfer, transfers_of
from jsonrpc.later import Later
from keys.models import User
from networks.models import Network
from nodeapi.store import Store
from nodeapi.tracing.answers import TaskAnswer
from nodeapi.tracing.jobs import TaskJob
from nodeapi.tracing.pool import TracePool
from samples.assembler import assemble
from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis
from samples.signers import Signer
from tests.support import chains
from tests.support.live import Live, live_service
from tests.support.named_token import SOURCE, call_data
from tests.support.pages import Visit
from tests.support.waiting import wait_until
from tests.support.wallet import running_wallet
from wallets.serving.wallet import Wallet

ALICE = Signer("alice")
NAMED, EARLY, HIDDEN, LONG, WIDE, ENDLESS, EMPTY = (
    bytes([0x70 + number]) * 20 for number in range(7)
)


def text(content: str, length: int | None = None) -> str:
    """Return a program that returns a string. length: a wrong one."""
    raw = content.encode()
    size = len(raw) if length is None else length
    return f"""
        PUSH 32 PUSH 0 MSTORE PUSH {size} PUSH 32 MSTORE
        PUSH32 0x{raw.ljust(32, bytes(1)).hex()} PUSH 64 MSTORE
        PUSH {64 + size} PUSH 0 RETURN
    """


PROGRAMS = {
    NAMED: SOURCE,
    EARLY: 'PUSH32 "MKR" PUSH 0 MSTORE PUSH 32 PUSH 0 RETURN',
    HIDDEN: text("A\u202eB"),
    LONG: text("A", 2**20),
    WIDE: "PUSH 255 PUSH 0 MSTORE PUSH 32 PUSH 0 RETURN",
    ENDLESS: "again: PUSH @again JUMP",
}


def import_tokens(slug: str, chain_id: int, named: bytes = NAMED) -> bytes:
    """Import a chain with the tokens. Return the hash of a transfer of 1,550 units."""
    programs = {**PROGRAMS, named: SOURCE}
    if named != NAMED:
        del programs[NAMED]
    genesis = make_genesis(
        chain_id=chain_id,
        first_blocks=from_genesis("osaka"),
        alloc={
            f"0x{ALICE.address.hex()}": {"balance": hex(10**19)},
            **{
                f"0x{address.hex()}": {
                    "balance": "0x0",
                    "code": f"0x{assemble(program).hex()}",
                }
                for address, program in programs.items()
            },
        },
    )
    builder = ChainBuilder(genesis)
    data = call_data("lie(address,uint256)", f"0x{'b0' * 20}", 1550)
    builder.send(ALICE, Address(named), data, gas=100_000)
    builder.block()
    chains.import_blocks(slug, genesis, builder.blocks)
    return bytes(builder.blocks[-1].transactions[0].hash)


@pytest.fixture(scope="module")
def transfer(module_db: None) -> bytes:
    import_tokens("other", 4245, named=EMPTY)
    return import_tokens("tokens", 4244)


@pytest.fixture(scope="module")
def parts(transfer: bytes) -> Iterator[tuple[asyncio.Runner, Wallet]]:
    with running_wallet() as started:
        yield started


class Counted:
    """Worker processes, whose tasks are counted."""

    def __init__(self, tracing: TracePool) -> None:
        self.jobs: list[TaskJob] = []
        self._tracing = tracing

    def run(self, job: TaskJob, key: object) -> Later[TaskAnswer]:
        self.jobs.append(job)
        return self._tracing.run(job, key)


class Service:
    """A reader of tokens with the event loop of a serving process."""

    def __init__(self, runner: asyncio.Runner, store: Store, tracing: Any) -> None:
        self._runner = runner
        self.reader = TokenReader(store, tracing, runner.get_loop())

    def read(self, slug: str, *addresses: bytes) -> dict[bytes, Token]:
        """Read tokens as a page does, in a thread."""
        network = Network.objects.get(slug=slug)
        reading = asyncio.to_thread(self.reader.read, network.pk, addresses)
        return self._runner.run(reading)


def test_tokens_are_read_whatever_their_contracts_do(
    parts: tuple[asyncio.Runner, Wallet],
) -> None:
    runner, wallet = parts
    tracing = Counted(wallet.node.tracing)
    service = Service(runner, wallet.node.store, tracing)
    everything = [*PROGRAMS, EMPTY]
    found: dict[bytes, Token] = {}

    def all_are_read() -> bool:
        nonlocal found
        found = service.read("tokens", *everything)
        return len(found) == len(everything)

    wait_until(all_are_read)  # the first page may be earlier than the worker processes
    assert found == {
        NAMED: Token("ABC", 2),
        EARLY: Token("MKR"),
        HIDDEN: Token("", None),
        LONG: UNKNOWN,
        WIDE: UNKNOWN,
        ENDLESS: UNKNOWN,
        EMPTY: UNKNOWN,
    }
    read = len(tracing.jobs)
    assert read == 2 * len(everything), "tokens that are being read are read once"
    assert service.read("tokens", *everything) == found
    assert len(tracing.jobs) == read, "they are remembered"


def test_tokens_of_networks_are_different(
    parts: tuple[asyncio.Runner, Wallet],
) -> None:
    runner, wallet = parts
    service = Service(runner, wallet.node.store, wallet.node.tracing)
    found: list[dict[bytes, Token]] = []

    def both_are_read() -> bool:
        found[:] = [service.read(slug, NAMED, EMPTY) for slug in ("tokens", "other")]
        return all(len(one) == 2 for one in found)

    wait_until(both_are_read)
    assert found == [
        {NAMED: Token("ABC", 2), EMPTY: UNKNOWN},
        {NAMED: UNKNOWN, EMPTY: Token("ABC", 2)},
    ]


def test_no_page_waits_long(parts: tuple[asyncio.Runner, Wallet]) -> None:
    class Hanging:
        def run(self, job: TaskJob, key: object) -> Later[TaskAnswer]:
            return Later.from_future(asyncio.get_running_loop().create_future())

    runner, wallet = parts
    service = Service(runner, wallet.node.store, Hanging())
    for _ in range(2):
        begun = time.monotonic()
        assert service.read("tokens", NAMED) == {}
        assert time.monotonic() - begun < 2 * PAGE_SECONDS + 0.5


@pytest.fixture(scope="module")
def live(transfer: bytes) -> Iterator[Live]:
    with live_service() as running:
        yield running


@pytest.mark.parametrize(
    ("units", "token_id", "name", "shown"),
    [
        (1550, "", Token("USD", 2), ("15.5", "1,550 in the smallest unit")),
        (1550, "", Token("USD"), ("1,550", "in the smallest unit")),
        (1550, "", UNKNOWN, ("1,550", "in the smallest unit")),
        (7, "", Token("USD", 0), ("7", "")),
        (7, "12", UNKNOWN, ("7", "")),
        (None, "12", UNKNOWN, ("", "")),
    ],
)
def test_amount_of_each_token_has_its_unit(
    units: int | None, token_id: str, name: Token, shown: tuple[str, str]
) -> None:
    transfer = Transfer(NAMED, "", "", "", "", "", units, token_id, name)
    assert (transfer.amount, transfer.note) == shown


def test_transfer_that_the_protocol_logs_is_of_ether() -> None:
    words = bytes(12) + b"\xa1" * 20, bytes(12) + b"\xb2" * 20
    topics = (topic("Transfer(address,address,uint256)"), *words)
    logs = [
        ReceiptLog(address, topics, (2 * 10**18).to_bytes(32, "big"), 0)
        for address in (SYSTEM_ADDRESS, NAMED)
    ]
    found = transfers_of(logs)
    assert found.contracts == [NAMED]
    ether, token = found.named({}).lines
    assert (ether.is_ether, ether.amount, ether.note) == (True, "2 ether", "")
    assert not token.is_ether


def test_page_shows_amounts_beside_addresses(live: Live, transfer: bytes) -> None:
    user = User.objects.create_user("tokens@example.org", is_staff=True)
    visit = Visit(live.base_url, user)
    path = f"/explore/tokens/tx/0x{transfer.hex()}"
    try:
        wait_until(lambda: "15.5 ABC" in visit.get(path).text)
        page = visit.get(path).text
    finally:
        visit.close()
    assert "1,550 in the smallest unit" in page
    assert "Any contract can use any symbol, so check the token's address." in page
    row = page.partition('id="transfers"')[2].partition("</table>")[0]
    assert f"/explore/tokens/address/{checksummed(NAMED)}" in row
