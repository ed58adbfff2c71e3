"""Delivery time of a new head to thousands of dapps, and the memory of idle sockets.

Every client has a socket with its own subscription. Another process imports a block, and
the time is taken until the last client has received the event. The wallet's sockets are
compared with a Channels consumer for each client. Both use the same database and channel
layer. The server has one core, and the clients have the other one.
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

from bench.endpoint import SERVICE, Target, serving, split_cores
from bench.importing import Say
from bench.listeners import CHAIN_ID, SCOPE, Listeners, Opening, listeners
from bench.racers import Racer, racer
from bench.rows import Row, median_ratio
from bench.token_chain import build_in_process
from keys.services import get_or_create_customer
from wallets.models import Dapp, DappKind, DappToken, Session
from wallets.permissions import SUBSCRIPTION
from wallets.scopes import ScopeObject, to_stored
from wallets.services.presence import MAX_SOCKETS

CLIENTS = 2_000
ROUNDS = 9
IDLE = 10_000

MOST_MS = 150
LEAST_RATIO = 4
MOST_IDLE_MIB = 512

PATH = "/ws/dapp"
CONSUMER = "bench.consumer:application"


def sockets(folder: Path, say: Say) -> list[Row]:
    """Measure the delivery time of both servers, and the memory of our idle sockets."""
    say("sockets: builds its chain")
    chain = folder / "bench-sockets"
    blocks = [f"{2 * (ROUNDS + 2)}x1"]
    build_in_process(chain, holders=10, blocks=blocks, chain_id=CHAIN_ID)
    with racer("bench.import_ours", chain, "1") as importer:
        importer.run(1)
        ours = _deliver("wallet", SERVICE, importer, say)
        plain = _deliver("consumer", CONSUMER, importer, say)
    return [*_fan_out_rows(ours, plain), *_idle_rows(say)]


def _deliver(
    name: str, application: str, importer: Racer, say: Say
) -> list[tuple[float, float, float]]:
    """Return per round the milliseconds until the first, median and last delivery."""
    server_core, client_core = split_cores()
    with (
        serving(name, application, cores=server_core) as target,
        listeners(client_core) as crowd,
    ):
        seconds = _open(crowd, target, CLIENTS, _subscribe())
        say(f"sockets: {name}: {CLIENTS} clients in {seconds:.1f} s")
        return [_round(importer, crowd) for _ in range(ROUNDS)]


def _round(importer: Racer, crowd: Listeners) -> tuple[float, float, float]:
    """Import a block. The time starts with the import, before the commit."""
    lap = importer.run(1)
    arrivals = crowd.receive()
    first, middle, last = (
        1000 * (moment - lap.began)
        for moment in (arrivals.first, arrivals.median, arrivals.last)
    )
    return first, middle, last


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


def _fan_out_rows(
    ours: list[tuple[float, float, float]], plain: list[tuple[float, float, float]]
) -> list[Row]:
    rows = []
    for name, rounds in (("wallet", ours), ("a group for each", plain)):
        for index, which in enumerate(("first", "middle", "last")):
            value = median(one[index] for one in rounds)
            case = f"head to {CLIENTS:,} clients, {name}, the {which} one"
            is_ours = name == "wallet" and which == "last"
            required = f"<= {MOST_MS}" if is_ours else None
            rows.append(Row("sockets", case, value, "ms", required=required))
    ratio = median_ratio([one[2] for one in plain], [one[2] for one in ours])
    last = rows[-1]
    rows[-1] = Row(
        last.bench, last.case, last.value, "ms", ratio, "wallet", f">= {LEAST_RATIO}"
    )
    return rows


def _idle_rows(say: Say) -> list[Row]:
    server_core, client_core = split_cores()
    with serving("idle", SERVICE, cores=server_core) as target:
        before = resident_mib(target.pids[0])
        with listeners(client_core) as crowd:
            seconds = _open(crowd, target, IDLE, None)
            say(f"sockets: {IDLE} idle clients in {seconds:.1f} s")
            after = resident_mib(target.pids[0])
    return [
        Row("sockets", "memory of a process without sockets", before, "MiB"),
        Row(
            "sockets",
            f"memory with {IDLE:,} idle sockets",
            after,
            "MiB",
            required=f"<= {MOST_IDLE_MIB}",
        ),
        Row("sockets", f"{IDLE:,} handshakes", IDLE / seconds, "sockets/s"),
    ]


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process in MiB.

    Source: https://man7.org/linux/man-pages/man5/proc_pid_status.5.html
    """
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has ended")
