"""Generated chains for tests, each for one error-prone part of the protocol.

A scenario is a function without arguments that returns a genesis.json and the blocks
after it. `SCENARIOS` contains them by name. `branches` is a chain with a fork.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from tests.scenarios.base import Chain
from tests.scenarios.lifecycles import (
    empty_accounts,
    failed_creations,
    random_activity,
    recreate_across_blocks,
    recreate_in_one_block,
    selfdestruct_heirs,
)
from tests.scenarios.protocol import (
    branches,
    dao_fork,
    delegations,
    system_contracts,
    withdrawals,
)
from tests.scenarios.storage import (
    nested_reverts,
    write_then_restore,
    zeroing,
)
from tests.scenarios.tracing import tracing

__all__ = ["SCENARIOS", "Chain", "Scenario", "branches"]

Scenario: TypeAlias = Callable[[], Chain]

_BY_FORK: dict[Callable[[str], Chain], tuple[str, ...]] = {
    recreate_in_one_block: (
        *("constantinople", "istanbul", "shanghai", "cancun"),
        "amsterdam",
    ),
    recreate_across_blocks: ("petersburg", "shanghai", "prague"),
    selfdestruct_heirs: (
        *("constantinople", "london", "shanghai", "cancun", "osaka"),
        "amsterdam",
    ),
    failed_creations: ("petersburg", "berlin", "shanghai", "prague"),
    random_activity: ("istanbul", "london", "shanghai", "cancun", "bpo2", "amsterdam"),
    nested_reverts: ("byzantium", "istanbul", "london", "osaka"),
    write_then_restore: ("byzantium", "constantinople", "istanbul", "london"),
    zeroing: ("frontier", "homestead", "byzantium", "istanbul", "london"),
    delegations: ("prague", "osaka"),
    withdrawals: ("shanghai", "cancun", "bpo2"),
    system_contracts: ("prague", "bpo1"),
    tracing: ("bpo2",),
}

SCENARIOS: dict[str, Scenario] = {
    "empty_accounts": empty_accounts,
    "dao_fork": dao_fork,
    **{
        f"{scenario.__name__}_{fork}": partial(scenario, fork)
        for scenario, forks in _BY_FORK.items()
        for fork in forks
    },
}
"""Scenarios by function name and fork."""
