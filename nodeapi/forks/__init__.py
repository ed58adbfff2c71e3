"""Forks that this version does not know, and the schedule of forks (EIP-7910)."""
