"""Errors of a simulation as a whole.

Source: go-ethereum internal/ethapi/errors.go
"""

from __future__ import annotations

SERVER_ERROR = -32000
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
BLOCK_NUMBER_INVALID = -38020
BLOCK_TIMESTAMP_INVALID = -38021
CLIENT_LIMIT_EXCEEDED = -38026


class SimulationError(Exception):
    """Raised when a simulation is rejected or aborted. code, text: geth's."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        self.text = text
        super().__init__(text)
