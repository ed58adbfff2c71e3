"""The served networks: chain id, genesis, host names, offered tracers, forkchoice."""
