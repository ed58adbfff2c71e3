"""Bars that stand on each other, and lines, as shapes with their axes and a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, log10

from keys.charts import words
from keys.charts.windows import Window

HEIGHT = 180
"""Pixels between the highest value that fits and the axis."""

TOP = 8
BOTTOM = 24
"""Pixels above and below, for half a line of text and for a whole one."""

GAP = 0.16
"""Part of a bin that stays empty, so that bars can be told apart."""

_STEPS = 4
"""Lines across the chart, about."""


@dataclass(frozen=True, slots=True)
class Series:
    """One thing over time."""

    label: str
    css: str
    """Class of its shapes, which gives them their colour."""
    values: Sequence[float | None]
    """For each bin; None: there was nothing to measure."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis. place: pixels from the top, or percent from the left."""

    place: str
    label: str
    is_minor: bool = False
    """Whether it is left out where there is little room."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A path in bins and pixels."""

    css: str
    path: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the legend."""

    css: str
    label: str
    figure: str


@dataclass(frozen=True, slots=True)
class TableRow:
    """What the chart shows of one bin."""

    when: str
    cells: list[str]
    title: str
    """All of it in a few lines, for whoever points at the bin."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart, ready to be written into a page by `templates/charts/plot.html`."""

    name: str
    """Tells the charts of a page apart."""
    title: str
    summary: str
    """What it shows, for those who don't see it."""
    bins: int
    shapes: list[Shape]
    is_lines: bool
    across: list[Tick]
    """The axis at the left."""
    along: list[Tick]
    """The axis of time."""
    legend: list[Entry]
    heads: list[str]
    table: list[TableRow]

    height: int = HEIGHT
    top: int = TOP

    @property
    def full_height(self) -> int:
        """Pixels with everything around."""
        return TOP + HEIGHT + BOTTOM

    @property
    def bottom(self) -> int:
        """Where the axis of time is, in pixels."""
        return TOP + HEIGHT

    @property
    def foot(self) -> int:
        """Where the labels of the axis of time stand, in pixels."""
        return TOP + HEIGHT + BOTTOM - 7


def bars(name: str, title: str, window: Window, series: Sequence[Series]) -> Plot:
    """Draw counts that add up, each series standing on those before it."""
    values = [[value or 0 for value in one.values] for one in series]
    sums = [sum(column) for column in zip(*values, strict=True)] or [0] * window.count
    total = sum(sums)
    scale = _Scale(max(sums), 1)
    base = [0.0] * window.count
    shapes = []
    for one, heights in zip(series, values, strict=True):
        shapes.append(Shape(one.css, _bars(scale, base, heights)))
        base = [low + more for low, more in zip(base, heights, strict=True)]
    legend = [
        Entry(one.css, one.label, f"{sum(heights):,.0f}")
        for one, heights in zip(series, values, strict=True)
    ]
    peak = f"the highest bar {words.short(max(sums))}"
    return _plot(
        name=name,
        title=title,
        summary=f"{_stretch(window)}; in all {total:,.0f}, {peak}.",
        window=window,
        series=series,
        shapes=shapes,
        scale=scale,
        write=words.short,
        legend=legend,
        cell=lambda value: f"{value or 0:,.0f}",
    )


def lines(
    name: str,
    title: str,
    window: Window,
    series: Sequence[Series],
    figures: Sequence[str],
) -> Plot:
    """Draw durations in microseconds.

    figures: for the legend, what each series is over the whole time.
    """
    known = [value for one in series for value in one.values if value is not None]
    scale = _Scale(max(known, default=0), 0)
    legend = [
        Entry(one.css, one.label, figure)
        for one, figure in zip(series, figures, strict=True)
    ]
    peak = f"the longest {words.duration(max(known, default=None))}"
    return _plot(
        name=name,
        title=title,
        summary=f"{_stretch(window)}; {peak}.",
        window=window,
        series=series,
        shapes=[Shape(one.css, _line(scale, one.values)) for one in series],
        scale=scale,
        write=words.duration,
        legend=legend,
        cell=words.duration,
        is_lines=True,
    )


class _Scale:
    """Turns values into pixels from the top; round figures lie on its marks."""

    def __init__(self, highest: float, least_step: float) -> None:
        self.step = max(least_step, _round_up(highest / _STEPS)) or 1
        self.count = max(1, ceil(highest / self.step))

    def place(self, value: float) -> float:
        return HEIGHT - HEIGHT * value / (self.step * self.count)

    def marks(self) -> list[float]:
        return [self.step * number for number in range(self.count + 1)]


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, … that is no less; 0 for nothing."""
    if value <= 0:
        return 0
    power: float = 10.0 ** ceil(log10(value) - 1)
    return next(part * power for part in (1, 2, 5, 10) if part * power >= value * 0.999)


def _bars(scale: _Scale, base: Sequence[float], heights: Sequence[float]) -> str:
    """Return the rectangles of one series."""
    parts = []
    for number, (low, more) in enumerate(zip(base, heights, strict=True)):
        if more:
            top, bottom = scale.place(low + more), scale.place(low)
            height = max(bottom - top, 0.6)  # what there is can be seen
            parts.append(
                f"M{number + GAP / 2:.2f} {bottom:.1f}v{-height:.1f}h{1 - GAP:.2f}v{height:.1f}z"
            )
    return "".join(parts)


def _line(scale: _Scale, values: Sequence[float | None]) -> str:
    """Return a line through the middles of the bins, broken where there is nothing."""
    parts = []
    for number, value in enumerate(values):
        if value is None:
            continue
        place = f"{scale.place(value):.1f}"
        before = values[number - 1] if number else None
        after = values[number + 1] if number + 1 < len(values) else None
        if before is not None:
            parts.append(f"L{number + 0.5} {place}")
        elif after is not None:
            parts.append(f"M{number + 0.5} {place}")
        else:  # a point alone would not be seen
            parts.append(f"M{number + 0.1} {place}h0.8")
    return "".join(parts)


def _plot(
    *,
    name: str,
    title: str,
    summary: str,
    window: Window,
    series: Sequence[Series],
    shapes: list[Shape],
    scale: _Scale,
    write: Callable[[float], str],
    legend: list[Entry],
    cell: Callable[[float | None], str],
    is_lines: bool = False,
) -> Plot:
    across = [
        Tick(f"{TOP + scale.place(mark):.1f}", write(mark) if mark else "0")
        for mark in scale.marks()
    ]
    return Plot(
        name=name,
        title=title,
        summary=summary,
        bins=window.count,
        shapes=shapes,
        is_lines=is_lines,
        across=across,
        along=list(_along(window)),
        legend=legend,
        heads=[one.label for one in series],
        table=[_row(window, number, series, cell) for number in range(window.count)],
    )


def _row(
    window: Window,
    number: int,
    series: Sequence[Series],
    cell: Callable[[float | None], str],
) -> TableRow:
    when = window.words(number)
    cells = [cell(one.values[number]) for one in series]
    told = [
        f"{one.label}: {text}"
        for one, text in zip(series, cells, strict=True)
        if one.values[number]
    ]
    return TableRow(when, cells, "\n".join([f"{when} UTC", *(told or ["nothing"])]))


def _along(window: Window) -> Iterator[Tick]:
    """Yield the marks of time; every other one may be left out."""
    for number, (place, label) in enumerate(window.ticks()):
        yield Tick(f"{place / window.count:.3%}", label, is_minor=number % 2 == 1)


def _stretch(window: Window) -> str:
    return f"From {window.start:%Y-%m-%d %H:%M} to {window.end:%Y-%m-%d %H:%M} UTC"
