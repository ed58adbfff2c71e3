"""Progress of an import: a bar on a terminal, otherwise plain lines."""

from __future__ import annotations

import time
from typing import TextIO

_BAR_WIDTH = 24
_SECONDS_PER_FRAME = 0.1
_SECONDS_PER_LINE = 5.0


class Progress:
    """Shows the share of bytes read, blocks/s, Mgas/s and the remaining time."""

    def __init__(self, stream: TextIO, total_bytes: int) -> None:
        self._stream = stream
        self._total = max(total_bytes, 1)
        self._is_terminal = stream.isatty()
        self._interval = _SECONDS_PER_FRAME if self._is_terminal else _SECONDS_PER_LINE
        self._started = self._shown = time.monotonic()
        self.blocks = 0
        self.known_blocks = 0
        """Number of blocks that were imported before. The importing command counts
        them."""
        self._gas = 0

    def add(self, number: int, gas_used: int, position: int) -> None:
        """Count a block, and update the display at regular intervals.

        position: bytes read so far, of the total.
        """
        self.blocks += 1
        self._gas += gas_used
        now = time.monotonic()
        if now - self._shown >= self._interval:
            self._shown = now
            self._show(self._line(number, position, now))

    def finish(self, number: int) -> None:
        """Show the final totals."""
        elapsed = max(time.monotonic() - self._started, 1e-9)
        known = (
            f", {self.known_blocks} were already stored" if self.known_blocks else ""
        )
        line = (
            f"imported {self.blocks} blocks in {elapsed:.1f} s "
            f"({self._rates(elapsed)}){known}; the head is {number}"
        )
        self._show(line + "\n" if self._is_terminal else line)

    def _line(self, number: int, position: int, now: float) -> str:
        elapsed = max(now - self._started, 1e-9)
        share = min(position / self._total, 1.0)
        left = elapsed / share - elapsed if share else 0.0
        text = f"{share:4.0%} block {number} {self._rates(elapsed)} {_clock(left)} left"
        if not self._is_terminal:
            return text
        filled = round(share * _BAR_WIDTH)
        return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {text}"

    def _rates(self, elapsed: float) -> str:
        return f"{self.blocks / elapsed:.1f} blocks/s {self._gas / elapsed / 1e6:.2f} Mgas/s"

    def _show(self, line: str) -> None:
        # \r and "erase to the end of the line": the bar is drawn over itself.
        text = f"\r\x1b[K{line}" if self._is_terminal else f"{line}\n"
        self._stream.write(text)
        self._stream.flush()


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
