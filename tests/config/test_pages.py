"""Crowds of people before Django's pages, in a real process."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from django.db import connection

from config.pages import AT_ONCE
from tests.support.dapps import orm
from tests.support.service import run_service

pytestmark = pytest.mark.django_db(transaction=True)

CROWD = 200

OPEN = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def open_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute(OPEN)
        (count,) = cursor.fetchone()
    return int(count)


def test_a_crowd_takes_no_more_connections_than_there_are_turns() -> None:
    """Each of them has the database asked for a code of a pairing, behind one lock."""

    async def crowd(address: str) -> list[Any]:
        async with httpx.AsyncClient(timeout=60, limits=httpx.Limits()) as http:
            asking = [
                asyncio.create_task(http.post(address, data={"code": "BBBB-BBBB"}))
                for _ in range(CROWD)
            ]
            while not all(one.done() for one in asking):
                seen.append(await orm(open_connections))
                await asyncio.sleep(0.02)
            return [one.result() for one in asking]

    seen: list[int] = []
    with run_service() as running:
        before = open_connections()
        answers = asyncio.run(crowd(f"{running.base_url}/wallet/token"))
    assert {answer.status_code for answer in answers} == {400}
    assert 0 < max(seen) - before <= AT_ONCE + 1  # the one that counts
