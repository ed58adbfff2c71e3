"""Delivery time of a new head to thousands of dapps, and the memory of idle sockets.

Every client has a socket with its own subscription. Another process imports a block, and
the time is taken until the last client has received the event. The server has one core,
and the clients have the other one.
"""

from __future__ import annotations

import json
import secrets
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from statistics import median

from django.conf import settings
from django.utils import timezone

from bench.listeners import CHAIN_ID, SCOPE, Listeners, Opening, listeners
from bench.racers import Racer, racer
from bench.rows import Row
from bench.servers import SERVICE, Target, resident_mib, serving, split_cores
from bench.token_chain import build_in_process
from bench.turns import Say, rounds
from keys.services import get_or_create_customer
from wallets.models import Dapp, DappKind, DappToken, Session
from wallets.permissions import SUBSCRIPTION
from wallets.scopes import ScopeObject, to_stored
from wallets.services.presence import MAX_SOCKETS

CLIENTS = 2_000
ROUNDS = 9
IDLE = 10_000

MOST_MS = 150
MOST_IDLE_MIB = 512

PATH = "/ws/dapp"


def sockets(folder: Path, say: Say) -> list[Row]:
    """Measure the delivery time, and the memory of idle sockets."""
    say("sockets: builds its chain")
    chain = folder / "bench-sockets"
    blocks = [f"{ROUNDS + 1}x1"]
    build_in_process(chain, holders=10, blocks=blocks, chain_id=CHAIN_ID)
    server_core, client_core = split_cores()
    with (
        racer("bench.import_ours", chain, "--batch", "1") as importer,
        serving("wallet", SERVICE, cores=server_core) as target,
        listeners(client_core) as crowd,
    ):
        importer.run(1)
        seconds = _open(crowd, target, CLIENTS, _subscribe())
        say(f"sockets: {CLIENTS} clients in {seconds:.1f} s")
        found = [_round(importer, crowd) for _ in rounds(ROUNDS)]
    case = f"head to {CLIENTS:,} clients, the last one"
    return [
        Row("sockets", case, median(found), "ms", required=f"<= {MOST_MS}"),
        _idle_row(say),
    ]


def _round(importer: Racer, crowd: Listeners) -> float:
    """Import a block. Return the milliseconds from the import's start to the last client."""
    lap = importer.run(1)
    return 1000 * (crowd.receive() - lap.began)


def _open(crowd: Listeners, target: Target, count: int, frame: str | None) -> float:
    headers = [f"Authorization: Bearer {token}" for token in _tokens(count)]
    return crowd.open(Opening(target.port, PATH, headers, frame))


def _subscribe() -> str:
    request = {"method": "eth_subscribe", "params": ["newHeads"]}
    params = {"scope": SCOPE, "request": request}
    call = {"jsonrpc": "2.0", "id": 1, "method": "wallet_invokeMethod"}
    return json.dumps({**call, "params": params})


def _tokens(sockets: int) -> list[str]:
    """Return a token for each socket. Several sockets share a dapp."""
    user = get_or_create_customer(email="bench-sockets@example.org")
    granted = {SCOPE: ScopeObject(("eth_subscribe",), (SUBSCRIPTION,), ())}
    secret = [secrets.token_urlsafe(32) for _ in range(-(-sockets // MAX_SOCKETS))]
    dapps = Dapp.objects.bulk_create(
        Dapp(user=user, kind=DappKind.APP, ident=secrets.token_hex(16)) for _ in secret
    )
    Session.objects.bulk_create(
        Session(dapp=dapp, stored_scopes=to_stored(granted), version=1)
        for dapp in dapps
    )
    DappToken.objects.bulk_create(
        DappToken(
            dapp=dapp,
            digest=sha256(one.encode()).hexdigest(),
            expires_at=timezone.now() + timedelta(days=settings.WALLETS_TOKEN_DAYS),
        )
        for dapp, one in zip(dapps, secret, strict=True)
    )
    return [secret[i // MAX_SOCKETS] for i in range(sockets)]


def _idle_row(say: Say) -> Row:
    server_core, client_core = split_cores()
    with (
        serving("idle", SERVICE, cores=server_core) as target,
        listeners(client_core) as crowd,
    ):
        seconds = _open(crowd, target, IDLE, None)
        say(f"sockets: {IDLE} idle clients in {seconds:.1f} s")
        memory = resident_mib(target.pids[0])
    case = f"memory with {IDLE:,} idle sockets"
    return Row("sockets", case, memory, "MiB", required=f"<= {MOST_IDLE_MIB}")
