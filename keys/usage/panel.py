"""What a page shows of usage: two charts, some figures, and links to look otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from keys.charts import words
from keys.charts.plots import Plot, Series, bars, lines
from keys.models import ApiKey, Outcome
from keys.usage.ranges import DEFAULT, RANGES
from keys.usage.sums import Dimension, Usage, usage

MAX_SERIES = 8
"""Colours that can be told apart; what is beyond is one series more."""

MEASURES = {"calls": "Calls", "credits": "Credits"}

_SHARES = (0.5, 0.95, 0.99)

_OUTCOME_CLASSES = {
    outcome.value: f"outcome-{outcome.value.replace('_', '-')}" for outcome in Outcome
}


class UnknownChoice(ValueError):
    """Raised when an address asks for what can't be shown."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the address of a page asks for."""

    range: str = DEFAULT
    by: str = Dimension.METHOD
    of: str = "calls"

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Chosen:
        """Read a query. Raises: UnknownChoice."""
        chosen = cls(*(query.get(name, getattr(cls(), name)) for name in _CHOICES))
        for name, known in _CHOICES.items():
            if getattr(chosen, name) not in known:
                raise UnknownChoice(f"{name} is one of {', '.join(known)}")
        return chosen

    def query(self, **changes: str) -> str:
        """Return the query of the page that shows something else."""
        chosen = {name: getattr(self, name) for name in _CHOICES}
        return urlencode(chosen | changes)


_CHOICES: dict[str, dict[str, str]] = {
    "range": {name: each.label for name, each in RANGES.items()},
    "by": {each.value: each.value for each in Dimension},
    "of": MEASURES,
}


@dataclass(frozen=True, slots=True)
class Link:
    """A way to look at it otherwise."""

    label: str
    query: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure with its name."""

    name: str
    figure: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """All of it, for `templates/usage/panel.html`."""

    chosen: Chosen
    links: dict[str, list[Link]]
    facts: list[Fact]
    outcomes: list[tuple[str, str, str]]
    """How calls ended, how many, and which share of all."""
    plots: list[Plot]
    is_empty: bool
    since: datetime


def panel(chosen: Chosen, now: datetime, api_key: ApiKey | None = None) -> Panel:
    """Return what is shown of a key, of all keys when none is named."""
    found = usage(RANGES[chosen.range], now, Dimension(chosen.by), api_key)
    return Panel(
        chosen=chosen,
        links={name: _links(chosen, name) for name in _CHOICES},
        facts=_facts(found),
        outcomes=_outcomes(found),
        plots=[_volume(chosen, found), _latency(found)] if found.total.calls else [],
        is_empty=not found.total.calls,
        since=found.window.start,
    )


def _links(chosen: Chosen, name: str) -> list[Link]:
    return [
        Link(label, chosen.query(**{name: value}), getattr(chosen, name) == value)
        for value, label in _CHOICES[name].items()
    ]


def _facts(found: Usage) -> list[Fact]:
    total = found.total
    return [
        Fact("Calls", f"{total.calls:,}"),
        Fact("Credits", f"{total.credits:,}"),
        Fact(
            "Error rate",
            words.share(total.failed, total.calls),
            f"{total.failed:,} calls",
        ),
        *(
            Fact(f"p{share * 100:.0f}", words.duration(found.latency(share)))
            for share in _SHARES
        ),
        Fact("Sent", words.size(total.bytes_out)),
    ]


def _outcomes(found: Usage) -> list[tuple[str, str, str]]:
    whole = found.total.calls
    return [
        (outcome.label, f"{counts.calls:,}", words.share(counts.calls, whole))
        for outcome in Outcome
        if (counts := found.outcomes.get(outcome.value)) is not None
    ]


def _volume(chosen: Chosen, found: Usage) -> Plot:
    """Draw how many there were, the largest series at the bottom."""
    ranked = sorted(
        found.names, key=lambda name: (-getattr(found.names[name], chosen.of), name)
    )
    if chosen.by == Dimension.OUTCOME:
        groups = [
            (outcome.label, _OUTCOME_CLASSES[outcome.value], [outcome.value])
            for outcome in Outcome
            if outcome.value in found.names
        ]
    else:
        groups = [
            (name, f"series-{place}", [name])
            for place, name in enumerate(ranked[:MAX_SERIES], 1)
        ]
    if rest := ranked[MAX_SERIES:]:
        groups.append((f"{len(rest)} others", "series-rest", rest))
    series = [
        Series(
            label,
            css,
            [
                sum(
                    getattr(found.cells[name, place], chosen.of)
                    for name in names
                    if (name, place) in found.cells
                )
                for place in range(found.window.count)
            ],
        )
        for label, css, names in groups
    ]
    return bars("volume", f"{MEASURES[chosen.of]} by {chosen.by}", found.window, series)


def _latency(found: Usage) -> Plot:
    """Draw how long calls took."""
    shares = _SHARES[:2]
    series = [
        Series(
            f"p{share * 100:.0f}",
            f"line-{share * 100:.0f}",
            [found.latency(share, place) for place in range(found.window.count)],
        )
        for share in shares
    ]
    figures = [words.duration(found.latency(share)) for share in shares]
    return lines("latency", "Latency", found.window, series, figures)
