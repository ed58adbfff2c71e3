"""The results as an SVG bar chart, with colours for light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from bench.report import number
from bench.rows import Row

WIDTH = 760
LABEL_WIDTH = 330
BAR_WIDTH = 320
LINE = 22
BAR_HEIGHT = 14
TOP = 34

_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; }
  .note { fill: #59636e; }
  .ours { fill: #2f6fb4; } .other { fill: #a9b4c0; }
  .limit { stroke: #b3541e; stroke-width: 2; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .note { fill: #9198a1; }
    .ours { fill: #5b9bdc; } .other { fill: #57606a; }
    .limit { stroke: #e8894f; }
  }
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a panel, with its label."""

    label: str
    length: float
    text: str
    is_ours: bool
    limit: float | None = None
    """The required value, drawn as a line; in the unit of the bar length."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A group of bars that share one scale."""

    title: str
    bars: Sequence[Bar]


def plot(rows: Sequence[Row]) -> str:
    """Return an SVG of the results."""
    panels = [panel for panel in _panels(rows) if panel.bars]
    height = sum(TOP + LINE * len(panel.bars) for panel in panels) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' role="img" aria-label="Benchmark results">',
        f"<style>{_STYLE}</style>",
    ]
    y = 0
    for panel in panels:
        parts += _draw(panel, y)
        y += TOP + LINE * len(panel.bars)
    return "\n".join([*parts, "</svg>", ""])


def _panels(rows: Sequence[Row]) -> Iterable[Panel]:
    yield Panel(
        "Requests a second as a share of the ceiling's, 64 connections",
        [
            Bar(
                row.case.replace("64 connections, ", ""),
                row.ratio,
                f"{row.ratio:.2f}  ({number(row.value)}/s)",
                True,
                _limit(row),
            )
            for row in rows
            if row.bench == "endpoint"
            and row.unit == "requests/s"
            and row.ratio is not None
            and row.required is not None
            and "64 connections" in row.case
        ],
    )
    for bench, unit, title in (
        ("import", "blocks/s", "Blocks imported a second, 150 token transfers each"),
        ("growth", "ms/block", "Milliseconds a block, as the state grows"),
    ):
        chosen = [row for row in rows if row.bench == bench and row.unit == unit]
        yield Panel(
            title,
            [
                Bar(row.case, row.value, number(row.value), row.ratio is not None)
                for row in chosen
            ],
        )


def _limit(row: Row) -> float | None:
    return None if row.required is None else float(row.required.split()[1])


def _draw(panel: Panel, y: int) -> list[str]:
    """Return a panel's elements."""
    longest = max(max(bar.length, bar.limit or 0) for bar in panel.bars)
    scale = BAR_WIDTH / longest
    parts = [f'<text class="title" x="12" y="{y + 22}">{escape(panel.title)}</text>']
    for i, bar in enumerate(panel.bars):
        top = y + TOP + i * LINE
        base = top + BAR_HEIGHT - 3
        end = LABEL_WIDTH + bar.length * scale
        kind = "ours" if bar.is_ours else "other"
        parts += [
            f'<text x="12" y="{base}">{escape(bar.label)}</text>',
            f'<rect class="{kind}" x="{LABEL_WIDTH}" y="{top}" rx="2"'
            f' width="{bar.length * scale:.1f}" height="{BAR_HEIGHT}"/>',
        ]
        if bar.limit is not None:
            x = LABEL_WIDTH + bar.limit * scale
            parts.append(
                f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 2}"'
                f' y2="{top + BAR_HEIGHT + 2}"/>'
            )
            end = max(end, x)
        parts.append(
            f'<text class="note" x="{end + 6:.1f}" y="{base}">{escape(bar.text)}</text>'
        )
    return parts
