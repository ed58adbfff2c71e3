from evm.chain_config import LADDER
from evm.tracers.details import FORK_NAMES, precompile_addresses


def test_they_are_those_that_the_forks_run():
    assert tuple(LADDER) == FORK_NAMES
    for name, fork in LADDER.items():
        assert precompile_addresses(name) == fork.precompiles.keys(), name
