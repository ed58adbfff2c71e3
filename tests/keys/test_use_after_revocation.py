"""Revoked secrets that are used while the database is unavailable."""

from __future__ import annotations

import asyncio

import pytest
from django.db import InterfaceError, OperationalError

from keys import use_after_revocation
from keys.use_after_revocation import UsesAfterRevocation


@pytest.mark.parametrize("error", [InterfaceError, OperationalError])
def test_use_that_could_not_be_recorded_is_recorded_at_the_next_use(
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
        uses = UsesAfterRevocation()
        for _ in range(3):
            uses.note(7, "192.0.2.7")
            await uses.close()

    monkeypatch.setattr(use_after_revocation, "note_use_after_revocation", write)
    asyncio.run(note_three_times())
    assert written == [(7, "192.0.2.7")] * 2
    assert "was not recorded: connection already closed" in caplog.text


def test_failing_write_does_not_prevent_the_shutdown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def write(**_: object) -> None:
        raise RuntimeError("a bug")

    async def note() -> None:
        uses = UsesAfterRevocation()
        uses.note(7, None)
        await uses.close()

    monkeypatch.setattr(use_after_revocation, "note_use_after_revocation", write)
    asyncio.run(note())
