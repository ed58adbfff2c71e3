"""The networks served: chain id, genesis, host names, tracers offered, forkchoice."""
