"""The gas flame graph: each call is a bar as wide as the gas that it used.

Calls lie below their caller. What of a bar has no bar below it is the call's own gas.
Source: https://www.brendangregg.com/flamegraphs.html, turned upside down
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from nodeapi.explore import calls, words
from nodeapi.tracers.frames import CREATIONS, CallFrame

ROW_HEIGHT = 22
"""Pixels; the text in a bar has 12."""
MAX_ROWS = 40
MAX_BARS = 1500
"""Some 450 KB of SVG."""

_NARROW = 300
"""Calls of less than this part of the whole are put together with their neighbours."""
_LABELLED = 0.025, 0.12
"""Parts of the whole from which on a bar has room for a word; the second on a phone."""
_VISIBLE = 0.006
"""As wide as a bar is drawn at least, if it has room."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A call, or several short ones beside each other."""

    x: str
    width: str
    """Both in percent of the graph."""
    y: int
    """Pixels."""
    kind: str
    label: str
    is_wide: bool
    """Whether the label has room on a phone, too."""
    title: str
    target: int
    """The number of the call's line in the tree; 0: it has none there."""


@dataclass(slots=True)
class Flame:
    """The graph, from the top down."""

    bars: list[Bar] = field(default_factory=list)
    height: int = 0
    """Pixels."""
    left_out: int = 0
    """How many bars had no room: too many of them, or too deep."""


def flame(frames: list[CallFrame], shown: int) -> Flame:
    """Return the graph of a transaction.

    frames: all its calls, in the order in which they began; the first `shown` have a
    line in the tree.
    """
    widths = _widths(frames)
    lines = {id(frame): number for number, frame in enumerate(frames[:shown], 1)}
    graph = _Graph(widths[id(frames[0])] or 1, widths, lines)
    graph.draw(frames[0])
    return graph.flame


def own_gas(frame: CallFrame) -> int:
    """Return what a call used itself; refunds may have made it less than nothing."""
    return max(0, frame.gas_used - sum([call.gas_used for call in frame.calls]))


def _widths(frames: list[CallFrame]) -> dict[int, int]:
    """Return the width of each call in gas, by its id.

    Refunds make the outermost call cheaper than what lies within it.
    """
    widths: dict[int, int] = {}
    for frame in reversed(frames):
        inner = sum([widths[id(call)] for call in frame.calls])
        widths[id(frame)] = max(frame.gas_used, inner)
    return widths


class _Graph:
    """Lays bars out level by level, so that what has no room is what is deep."""

    def __init__(
        self, total: int, widths: dict[int, int], lines: dict[int, int]
    ) -> None:
        self.flame = Flame()
        self._total = total
        self._widths = widths
        self._lines = lines

    def draw(self, top: CallFrame) -> None:
        waiting = deque([(top, 0, 0)])
        self._bar([top], 0, self._widths[id(top)], 0)
        while waiting:
            frame, start, row = waiting.popleft()
            placed = list(self._groups(frame.calls, start))
            # The wide ones first: what is drawn later lies above.
            for group, x, width in sorted(placed, key=lambda place: -place[2]):
                if self._bar(group, x, width, row + 1) and len(group) == 1:
                    waiting.append((group[0], x, row + 1))

    def _groups(
        self, frames: list[CallFrame], x: int
    ) -> Iterator[tuple[list[CallFrame], int, int]]:
        """Yield the calls with their places and widths, narrow neighbours together."""
        by_size = groupby(
            frames, lambda call: self._widths[id(call)] * _NARROW < self._total
        )
        for is_narrow, neighbours in by_size:
            calls_there = list(neighbours)
            groups = [calls_there] if is_narrow else [[call] for call in calls_there]
            for group in groups:
                width = sum([self._widths[id(call)] for call in group])
                yield group, x, width
                x += width

    def _bar(self, frames: list[CallFrame], x: int, width: int, row: int) -> bool:
        """Draw a bar; False when there is no room for it."""
        if row >= MAX_ROWS or len(self.flame.bars) >= MAX_BARS:
            self.flame.left_out += 1
            return False
        part, start = width / self._total, x / self._total
        if len(frames) == 1:
            kind, label = calls.kind(frames[0]), _label(frames[0])
            title = self._title(frames[0], part)
        else:
            kind, label = "merged", f"{words.number(len(frames))} ×"
            title = f"{_merged(frames)}: {words.number(width)} gas, {part:.2%}"
        self.flame.bars.append(
            Bar(
                x=f"{min(start, 1 - _VISIBLE):.3%}",
                width=f"{max(part, _VISIBLE):.3%}",
                y=row * ROW_HEIGHT,
                kind=kind,
                label=label if part >= _LABELLED[0] else "",
                is_wide=part >= _LABELLED[1],
                title=title,
                target=self._lines.get(id(frames[0]), 0),
            )
        )
        self.flame.height = max(self.flame.height, (row + 1) * ROW_HEIGHT)
        return True

    def _title(self, frame: CallFrame, part: float) -> str:
        to = "" if frame.to is None else f" 0x{frame.to.hex()}"
        lines = [
            f"{frame.type}{to} {calls.selector(frame)}".rstrip(),
            f"{words.number(frame.gas_used)} gas, {part:.2%}"
            f"; {words.number(own_gas(frame))} of its own",
        ]
        if frame.error is not None:
            lines.append(f"{calls.error(frame)} {calls.reason(frame)}".rstrip())
        return "\n".join(lines)


def _label(frame: CallFrame) -> str:
    named = words.brief(frame.to)
    if frame.type in CREATIONS:
        return f"{frame.type} {named}" if frame.to else frame.type
    return f"{named} {calls.selector(frame)}".rstrip()


def _merged(frames: list[CallFrame]) -> str:
    failed = sum([frame.error is not None for frame in frames])
    text = words.count(len(frames), "short call")
    return f"{text}, {words.number(failed)} of them failed" if failed else text
