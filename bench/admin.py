"""Response times of the admin's pages with very many keys and usage rows.

A logged-in superuser requests the pages one after the other. The first responses count
like later ones, because the service caches no pages.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from pathlib import Path
from statistics import median

import httpx
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from bench import admin_rows
from bench.rows import Row
from bench.servers import SERVICE, serving
from bench.turns import Say, rounds
from keys.admin.key_actions import KEY_ACTIONS
from keys.models import AccessRequest, ApiKey, KeyEvent, KeyVersion, UsageBucket, User
from networks.models import Network
from networks.services import create_network

NETWORKS = 4
ROUNDS = 5
REQUIRED = "<= 200"
CSV = "its usage as CSV"

KEYS = "/admin/keys/apikey/"
REQUESTS = "/admin/keys/accessrequest/"
EVENTS = "/admin/keys/keyevent/"
USAGE = "/admin/keys/usagebucket/"

STATES = ("active", "expiring", "expired", "revoked", "unrevealed", "disabled")


def admin(folder: Path, say: Say) -> list[Row]:
    """Return the median time to the last byte of each page."""
    for number in range(NETWORKS):
        create_network(
            slug=f"network-{number}",
            name=f"Network {number}",
            chain_id=9_000 + number,
            genesis={"config": {"chainId": 9_000 + number}},
            genesis_hash=bytes([number] * 32),
        )
    say(f"admin: {admin_rows.KEYS:,} keys, {admin_rows.ROWS:,} rows of usage")
    admin_rows.fill(say)
    found: dict[str, list[float]] = {}
    with serving("admin", SERVICE) as target, staff(target.port) as person:
        for number in rounds(ROUNDS):
            say(f"admin: round {number} of {ROUNDS}")
            for name, address in pages().items():
                found.setdefault(name, []).append(milliseconds(person, address))
    return [
        Row("admin", name, median(times), "ms", required=_required(name))
        for name, times in found.items()
    ]


def _required(name: str) -> str | None:
    """Return the requirement of a page; None for the CSV file of 60,000 lines."""
    return None if name == CSV else REQUIRED


def pages() -> dict[str, str]:
    """Return a dict from the description of each measured page to its URL."""
    owner = f"owner{admin_rows.OWNERS // 2}@customers.example"
    version = KeyVersion.objects.latest("id")
    event = KeyEvent.objects.latest("id")
    bucket = UsageBucket.objects.latest("id")
    asked = AccessRequest.objects.filter(status="pending").latest("id")
    network = Network.objects.latest("id")
    busy = ApiKey.objects.get(pk=admin_rows.BUSY)
    quiet = ApiKey.objects.get(pk=admin_rows.KEYS // 2)
    return {
        "index": "/admin/",
        "keys": KEYS,
        "keys, page 20": f"{KEYS}?p=20",
        **{f"keys, {state}": f"{KEYS}?state={state}" for state in STATES},
        "keys, deleted": f"{KEYS}?state=deleted",
        "keys, never used": f"{KEYS}?use=never",
        "keys, unused for 90 days": f"{KEYS}?use=idle",
        "keys, of a network": f"{KEYS}?networks__id__exact=1",
        "keys, that trace": f"{KEYS}?tracing=network-1",
        "keys, without expiry": f"{KEYS}?expires_at__isempty=1",
        "keys, by owner": f"{KEYS}?o=3",
        "keys, search of a hint": f"{KEYS}?q={version.hint}",
        "keys, search of an owner": f"{KEYS}?q={owner}",
        "keys, search of a name": f"{KEYS}?q=bot+4711",
        "keys, search of nothing": f"{KEYS}?q=nobody",
        "key": f"{KEYS}{quiet.pk}/change/",
        "key that is always used": f"{KEYS}{admin_rows.BUSY}/change/",
        "its usage of 30 days": f"{KEYS}{admin_rows.BUSY}/change/?range=30d",
        CSV: f"/dashboard/keys/{admin_rows.BUSY}/usage.csv?range=30d",
        **{
            f"key, {name}": f"{KEYS}{quiet.pk}/do/{name}/"
            for name, action in KEY_ACTIONS.items()
            if action.form
        },
        "users": "/admin/keys/user/",
        "users, search": f"/admin/keys/user/?q={owner}",
        "user": f"/admin/keys/user/{quiet.owner_id}/change/",
        "user with many keys": f"/admin/keys/user/{busy.owner_id}/change/",
        "members": "/admin/keys/membership/",
        "members, search": f"/admin/keys/membership/?q={owner}",
        "events": EVENTS,
        "events, of a type": f"{EVENTS}?type__exact=key.rolled",
        "events, of a rare type": f"{EVENTS}?type__exact=key.deleted",
        "events, search of a key": f"{EVENTS}?q={quiet.pk}",
        "events, search of an owner": f"{EVENTS}?q={owner}",
        "event": f"{EVENTS}{event.pk}/change/",
        "requests for access": REQUESTS,
        "requests, pending": f"{REQUESTS}?status__exact=pending",
        "requests, search of an owner": f"{REQUESTS}?q={owner}",
        "request": f"{REQUESTS}{asked.pk}/change/",
        "request, approve": f"{REQUESTS}{asked.pk}/do/approve/",
        "request, decline": f"{REQUESTS}{asked.pk}/do/decline/",
        "plans": "/admin/keys/plan/",
        "limits": "/admin/keys/keylimits/",
        "networks": "/admin/networks/network/",
        "network": f"/admin/networks/network/{network.pk}/change/",
        "network, status": f"/admin/networks/network/{network.pk}/status/",
        "usage": USAGE,
        "usage, by day": f"{USAGE}?span__exact=86400",
        "usage, of an outcome": f"{USAGE}?outcome__exact=timeout",
        "usage, of a network": f"{USAGE}?network__id__exact=3",
        "usage, search of a key": f"{USAGE}?q={quiet.pk}",
        "usage, search of the key always used": f"{USAGE}?q={admin_rows.BUSY}",
        "row of usage": f"{USAGE}{bucket.pk}/change/",
    }


def staff(port: int) -> httpx.Client:
    """Return the HTTP client of a superuser, who owns the busy key."""
    person = User.objects.create_superuser(email="bench-staff@example.org")
    # One in a hundred keys belongs to one customer: a reseller.
    ApiKey.objects.filter(pk__lt=admin_rows.KEYS // 100).update(owner=person)
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    cookies = {settings.SESSION_COOKIE_NAME: str(session.session_key)}
    return httpx.Client(
        base_url=f"http://127.0.0.1:{port}", cookies=cookies, timeout=30
    )


def milliseconds(person: httpx.Client, address: str) -> float:
    """Request a page, and return the time to its last byte in milliseconds."""
    began = time.perf_counter()
    answer = person.get(address)
    took = 1000 * (time.perf_counter() - began)
    assert answer.status_code == HTTPStatus.OK, (address, answer.status_code)
    return took
