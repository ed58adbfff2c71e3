"""Execution of blocks: their format, the rules of forks, and the changes of the state."""
