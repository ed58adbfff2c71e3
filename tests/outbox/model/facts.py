"""The facts that members write, and names that the test uses as well."""

from __future__ import annotations

from random import Random

import psycopg

BUSY = ("access", "blocks.1", "blocks.2", "wallet.1", "wallet.2")

WITHOUT_MESSAGES = "wallet.3"
"""A stream that is written in SQL only."""

STREAMS = (*BUSY, WITHOUT_MESSAGES)

QUIET = "quiet"
"""The command after which the process writes nothing."""

INSERT = "INSERT INTO model_fact (stream, subject) VALUES (%s, %s)"

Facts = list[tuple[str, str]]
"""Pairs of a stream and a subject. Each pair is written once."""


def follower_name(index: int) -> str:
    """Return the `application_name` of the connections with which a member follows."""
    return f"follower-{index}"


def plan(random: Random, prefix: str) -> tuple[Facts, Facts]:
    """Return the facts of a transaction, and of a savepoint that is rolled back."""
    streams = random.sample(BUSY, random.randrange(1, 4))
    facts = [
        (stream, f"{prefix}.{number}")
        for stream in streams
        for number in range(random.choice((1, 1, 1, 2, 5)))
    ]
    random.shuffle(facts)
    undone = [(random.choice(BUSY), f"{prefix}.undone")]
    return facts, undone if random.random() < 0.2 else []


def is_outage(error: Exception) -> bool:
    """Return whether an error means that the database is unavailable."""
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    state = getattr(cause, "sqlstate", None) or ""
    is_operational = isinstance(
        cause, psycopg.OperationalError | psycopg.InterfaceError
    )
    return is_operational and (not state or state.startswith(("08", "57P")))
