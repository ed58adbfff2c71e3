"""Stacked bars and lines as SVG shapes, with axes, legend and table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, log10

from keys.charts import words
from keys.charts.windows import Window

HEIGHT = 180
"""Pixels between the top of the chart's scale and the time axis."""

TOP = 8
BOTTOM = 24
"""Pixels above and below the plot, for half a line and for a whole line of text."""

GAP = 0.16
"""Share of a bin that stays empty between two bars."""

_STEPS = 4
"""Approximate number of horizontal lines."""

MAX_LABELLED = 6
"""Bins with data up to which each value is written into the chart. A chart with so few
bars or points would otherwise be hard to read."""

_LABEL_GAP = 0.09
"""Least distance of two labels, as a share of the chart's width."""

_EDGE = 0.1
"""Share of the chart's width at each side in which labels extend inwards."""

_MINUTE, _HOUR, _DAY = 60 * 10**6, 3600 * 10**6, 86_400 * 10**6

_LONG_STEPS = tuple(
    length * count
    for length, counts in (
        (_MINUTE, (0.5, 1, 2, 5, 10, 20, 30)),
        (_HOUR, (1, 2, 5, 12)),
        (_DAY, (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)),
    )
    for count in counts
)
"""Distances between horizontal lines of durations from half a minute on, in
microseconds. Other distances are powers of ten times 1, 2 or 5."""


@dataclass(frozen=True, slots=True)
class Series:
    """One data series."""

    label: str
    css: str
    """CSS class of its shapes, which defines their colour."""
    values: Sequence[float | None]
    """One value for each bin. None if nothing was measured."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis.

    place: pixels from the top, or percent from the left.
    """

    place: str
    label: str
    is_minor: bool = False
    """Whether narrow pages omit it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An SVG path, with x coordinates in bins and y coordinates in pixels."""

    css: str
    path: str


@dataclass(frozen=True, slots=True)
class Label:
    """A value that is written into the chart.

    place: percent from the left. top: pixels from the top.
    anchor: the side on which the text touches its place: start, middle or end.
    """

    place: str
    top: str
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the legend."""

    css: str
    label: str
    figure: str


@dataclass(frozen=True, slots=True)
class TableRow:
    """The values of one bin, as text."""

    when: str
    cells: list[str]
    title: str
    """The tooltip of the bin."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart, to be rendered by `templates/charts/plot.html`."""

    name: str
    """Identifier of the chart, unique on its page."""
    title: str
    summary: str
    """Text alternative of the chart."""
    bins: int
    shapes: list[Shape]
    is_lines: bool
    across: list[Tick]
    """Ticks of the value axis, on the left."""
    along: list[Tick]
    """Ticks of the time axis."""
    labels: list[Label]
    """Values of the bins, if only a few have data."""
    legend: list[Entry]
    heads: list[str]
    table: list[TableRow]

    height: int = HEIGHT
    top: int = TOP

    @property
    def full_height(self) -> int:
        """Height in pixels, including axes and margins."""
        return TOP + HEIGHT + BOTTOM

    @property
    def bottom(self) -> int:
        """The y coordinate of the time axis, in pixels."""
        return TOP + HEIGHT

    @property
    def foot(self) -> int:
        """The y coordinate of the time axis' labels, in pixels."""
        return TOP + HEIGHT + BOTTOM - 7


def bars(name: str, title: str, window: Window, series: Sequence[Series]) -> Plot:
    """Draw counts as stacked bars, in the order of the series."""
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
    peak = f"highest bar {words.short(max(sums))}"
    return _plot(
        name=name,
        title=title,
        summary=f"{_stretch(window)}; total {total:,.0f}, {peak}.",
        window=window,
        series=series,
        shapes=shapes,
        heights=[value or None for value in sums],
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
    """Draw durations in microseconds as lines.

    figures: one total for each series, for the legend.
    """
    known = [value for one in series for value in one.values if value is not None]
    scale = _Scale(max(known, default=0), 0, _LONG_STEPS)
    legend = [
        Entry(one.css, one.label, figure)
        for one, figure in zip(series, figures, strict=True)
    ]
    peak = f"longest {words.duration(max(known, default=None))}"
    shapes = [Shape(one.css, _line(scale, one.values)) for one in series]
    columns = [
        list(column) for column in zip(*(one.values for one in series), strict=True)
    ]
    heights = [
        max((value for value in column if value is not None), default=None)
        for column in columns
    ]
    if _is_sparse(heights):
        shapes += [Shape(f"dot {one.css}", _dots(scale, one.values)) for one in series]
    return _plot(
        name=name,
        title=title,
        summary=f"{_stretch(window)}; {peak}.",
        window=window,
        series=series,
        shapes=shapes,
        heights=heights,
        scale=scale,
        write=words.duration,
        legend=legend,
        cell=words.duration,
        is_lines=True,
    )


class _Scale:
    """Maps values to y coordinates in pixels. Its ticks are round numbers."""

    def __init__(
        self, highest: float, least_step: float, steps: Sequence[float] = ()
    ) -> None:
        """Cover values from 0 to `highest`.

        steps: round numbers in ascending order that are used as distances of ticks
            within their range.
        """
        self.step = max(least_step, _round_up(highest / _STEPS, steps)) or 1
        self.count = max(1, ceil(highest / self.step))

    def place(self, value: float) -> float:
        return HEIGHT - HEIGHT * value / (self.step * self.count)

    def marks(self) -> list[float]:
        return [self.step * number for number in range(self.count + 1)]


def _round_up(value: float, steps: Sequence[float]) -> float:
    """Return the least round number that is at least `value`; 0 for 0.

    That is one of `steps` within their range, otherwise 1, 2, 5, 10, 20, …
    """
    if value <= 0:
        return 0
    if steps and steps[0] / 2 < value <= steps[-1]:
        return next(step for step in steps if step >= value)
    power: float = 10.0 ** ceil(log10(value) - 1)
    return next(part * power for part in (1, 2, 5, 10) if part * power >= value * 0.999)


def _bars(scale: _Scale, base: Sequence[float], heights: Sequence[float]) -> str:
    """Return the SVG path of one series' bars."""
    parts = []
    for number, (low, more) in enumerate(zip(base, heights, strict=True)):
        if more:
            top, bottom = scale.place(low + more), scale.place(low)
            height = max(bottom - top, 0.6)  # a small value remains visible
            parts.append(
                f"M{number + GAP / 2:.2f} {bottom:.1f}v{-height:.1f}h{1 - GAP:.2f}v{height:.1f}z"
            )
    return "".join(parts)


def _line(scale: _Scale, values: Sequence[float | None]) -> str:
    """Return the SVG path of a line through the centres of the bins.

    None interrupts it.
    """
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
        else:  # a single point would be invisible
            parts.append(f"M{number + 0.1} {place}h0.8")
    return "".join(parts)


def _dots(scale: _Scale, values: Sequence[float | None]) -> str:
    """Return the SVG path of a dot for each value."""
    return "".join(
        f"M{number + 0.5} {scale.place(value):.1f}h0"
        for number, value in enumerate(values)
        if value is not None
    )


def _is_sparse(heights: Sequence[float | None]) -> bool:
    """Return whether only a few bins have data."""
    return 0 < sum(height is not None for height in heights) <= MAX_LABELLED


def _labels(
    scale: _Scale, heights: Sequence[float | None], write: Callable[[float], str]
) -> Iterator[Label]:
    """Yield the labels of a sparse chart, those of high values first.

    Values whose labels would overlap others have none.
    """
    taken: list[float] = []
    known = [(height, n) for n, height in enumerate(heights) if height is not None]
    for height, number in sorted(known, reverse=True):
        place = (number + 0.5) / len(heights)
        if all(abs(place - other) >= _LABEL_GAP for other in taken):
            taken.append(place)
            anchor = "middle"
            if place > 1 - _EDGE:
                place, anchor = (number + 1) / len(heights), "end"
            elif place < _EDGE:
                place, anchor = number / len(heights), "start"
            top = TOP + scale.place(height) - 6
            yield Label(f"{place:.3%}", f"{top:.1f}", write(height), anchor)


def _plot(
    *,
    name: str,
    title: str,
    summary: str,
    window: Window,
    series: Sequence[Series],
    shapes: list[Shape],
    heights: Sequence[float | None],
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
        labels=list(_labels(scale, heights, write)) if _is_sparse(heights) else [],
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
    texts = [
        f"{one.label}: {text}"
        for one, text in zip(series, cells, strict=True)
        if one.values[number]
    ]
    return TableRow(when, cells, "\n".join([f"{when} UTC", *(texts or ["nothing"])]))


def _along(window: Window) -> Iterator[Tick]:
    """Yield the ticks of the time axis. Every other tick is minor."""
    for number, (place, label) in enumerate(window.ticks()):
        yield Tick(f"{place / window.count:.3%}", label, is_minor=number % 2 == 1)


def _stretch(window: Window) -> str:
    return f"From {window.start:%Y-%m-%d %H:%M} to {window.end:%Y-%m-%d %H:%M} UTC"
