"""The gas flame graph: each call is a bar as wide as the gas that it used.

Callees are drawn below their caller. The part of a bar without a bar below it is the
gas of the call itself.
Source: https://www.brendangregg.com/flamegraphs.html, upside down
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from abi.addresses import checksummed
from evm.tracers.frames import CREATIONS, CallFrame
from explorer import calls
from legible import words

ROW_HEIGHT = 22
"""Pixels; the text of a bar takes 12."""
MAX_ROWS = 40
MAX_BARS = 1500
"""Most bars in a graph. They make about 450 KB of SVG."""

_NARROW = 300
"""Adjacent calls narrower than 1/300 of the graph share one bar."""
_LABELLED = 0.025, 0.12
"""Minimum widths of a bar with a label, as parts of the graph: on a screen, on a phone."""
_VISIBLE = 0.006
"""Minimum width of a drawn bar, as a part of the graph, if there is space."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A call, or several short adjacent ones."""

    x: str
    width: str
    """Width in percent of the graph, as is `x`."""
    y: int
    """Pixels."""
    kind: str
    label: str
    is_wide: bool
    """Whether the label fits on a phone as well."""
    title: str
    target: int
    """The number of the call's line in the tree; 0 if it has none."""


@dataclass(slots=True)
class Flame:
    """The graph, from the outermost call down."""

    bars: list[Bar] = field(default_factory=list)
    height: int = 0
    """Pixels."""
    left_out: int = 0
    """The number of bars that were omitted: too many, or too deep."""


def flame(frames: Sequence[CallFrame], shown: int) -> Flame:
    """Return the graph of a transaction.

    frames: all its calls, in the order of their start; the first `shown` have a line in
        the tree.
    """
    widths = _widths(frames)
    lines = {id(frame): number for number, frame in enumerate(frames[:shown], 1)}
    graph = _Graph(widths[id(frames[0])] or 1, widths, lines)
    graph.draw(frames[0])
    return graph.flame


def own_gas(frame: CallFrame) -> int:
    """Return the gas of a call without its callees, at least 0 despite refunds."""
    return max(0, frame.gas_used - sum([call.gas_used for call in frame.calls]))


def _widths(frames: Sequence[CallFrame]) -> dict[int, int]:
    """Return the width of each call in gas, by the `id` of its frame.

    A caller is at least as wide as its callees together, although refunds may make its
    gas less.
    """
    widths: dict[int, int] = {}
    for frame in reversed(frames):
        inner = sum([widths[id(call)] for call in frame.calls])
        widths[id(frame)] = max(frame.gas_used, inner)
    return widths


class _Graph:
    """Lays out bars level by level, so that the deepest ones are omitted first."""

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
            # Wide bars first, because later bars are drawn above earlier ones.
            for group, x, width in sorted(placed, key=lambda place: -place[2]):
                if self._bar(group, x, width, row + 1) and len(group) == 1:
                    waiting.append((group[0], x, row + 1))

    def _groups(
        self, frames: Sequence[CallFrame], x: int
    ) -> Iterator[tuple[Sequence[CallFrame], int, int]]:
        """Yield groups of calls with position and width; narrow neighbours are merged."""
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

    def _bar(self, frames: Sequence[CallFrame], x: int, width: int, row: int) -> bool:
        """Add a bar; return False if it was omitted."""
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
        to = "" if frame.to is None else f" {checksummed(frame.to)}"
        lines = [
            f"{frame.type}{to} {calls.function(frame)}".rstrip(),
            f"{words.number(frame.gas_used)} gas, {part:.2%}"
            f"; {words.number(own_gas(frame))} gas in the call itself",
        ]
        if frame.error is not None:
            lines.append(f"{calls.error(frame)} {calls.reason(frame)}".rstrip())
        return "\n".join(lines)


def _label(frame: CallFrame) -> str:
    named = calls.brief(frame.to)
    if frame.type in CREATIONS:
        return f"{frame.type} {named}" if frame.to else frame.type
    return f"{named} {calls.function(frame)}".rstrip()


def _merged(frames: Sequence[CallFrame]) -> str:
    failed = sum([frame.error is not None for frame in frames])
    text = words.count(len(frames), "short call")
    return f"{text}, {words.number(failed)} of them failed" if failed else text
