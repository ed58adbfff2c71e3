"""Revoked secrets that are still tried, while the database does not answer."""

from __future__ import annotations

import asyncio

import pytest
from django.db import InterfaceError, OperationalError

from keys import late_use
from keys.late_use import LateUses


@pytest.mark.parametrize("error", [InterfaceError, OperationalError])
def test_attempt_that_could_not_be_put_down_is_at_the_next_one(
    error: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    written = []

    def write(*, version_id: int, ip: str | None) -> None:
        written.append((version_id, ip))
        if len(written) == 1:
            raise error("connection already closed")

    async def note_three_times() -> None:
        uses = LateUses()
        for _ in range(3):
            uses.note(7, "192.0.2.7")
            await uses.close()

    monkeypatch.setattr(late_use, "note_use_after_revocation", write)
    asyncio.run(note_three_times())
    assert written == [(7, "192.0.2.7")] * 2
    assert "not on record: connection already closed" in caplog.text


def test_what_crashes_does_not_keep_the_process_from_leaving(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def write(**_: object) -> None:
        raise RuntimeError("a bug")

    async def note() -> None:
        uses = LateUses()
        uses.note(7, None)
        await uses.close()

    monkeypatch.setattr(late_use, "note_use_after_revocation", write)
    asyncio.run(note())
