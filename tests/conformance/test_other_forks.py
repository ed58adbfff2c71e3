"""Real blocks: each transaction by its own rules and by those of Amsterdam."""

from __future__ import annotations

import pytest

from nodeapi.chain.replay import Origin
from nodeapi.fork_report.blocks import survey_block
from nodeapi.fork_report.survey import Change, Survey
from nodeapi.tracing.alarm import Alarm
from nodeapi.tracing.context import TaskTimedOut
from tests.support import real_blocks

NAMES = (
    *("holesky-02860556", "mainnet-14396881"),
    *("mainnet-12159808", "mainnet-09069000"),
)
"""From Istanbul to Cancun: blocks of moderate size, with all state that Amsterdam reads."""

pytestmark = pytest.mark.skipif(
    not real_blocks.paths(), reason="no real blocks: set CONFORMANCE_DATA"
)


def surveyed(origin: Origin, fork: str) -> Survey:
    """Return the figures of a block."""
    survey = Survey()
    alarm = Alarm(TaskTimedOut)  # no thread checks it
    survey_block(survey, origin, origin.config.named_fork(fork), alarm)
    assert survey.transactions == len(origin.block.transactions)
    return survey


def is_alike(survey: Survey) -> bool:
    """Return whether status and gas of all transactions are those of their own rules."""
    total = survey.total
    return (
        set(survey.changes) <= {Change.NONE}
        and total.gas_before == total.gas_after
        and total.transactions == survey.transactions
    )


@pytest.mark.parametrize("name", NAMES)
def test_real_transactions_by_their_own_rules_and_by_amsterdams(name: str) -> None:
    real = real_blocks.load(real_blocks.folder() / f"{name}.json.xz")
    origin = real.origin
    own = surveyed(origin, origin.fork.name)
    assert is_alike(own)
    assert own.total.gas_before == origin.block.header.gas_used
    next_fork = surveyed(origin, "amsterdam")
    # Whatever is executed by other rules is undone.
    assert next_fork.total.gas_before <= own.total.gas_before
    assert not is_alike(next_fork)
