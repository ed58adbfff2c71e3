"""The usage panel of a page: two charts, totals, and links to other ranges."""

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
"""Distinguishable colours. Further series are combined into one."""

MEASURES = {"calls": "Calls", "credits": "Credits"}

_SHARES = (0.5, 0.95, 0.99)

_OUTCOME_CLASSES = {
    outcome.value: f"outcome-{outcome.value.replace('_', '-')}" for outcome in Outcome
}


class UnknownChoice(ValueError):
    """Raised when the query has an unknown range, dimension or measure."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The range, dimension and measure that the query of a page selects."""

    range: str = DEFAULT
    by: str = Dimension.METHOD
    of: str = "calls"

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Chosen:
        """Parse the query of a URL. Raises: UnknownChoice for an unknown value."""
        chosen = cls(*(query.get(name, getattr(cls(), name)) for name in _CHOICES))
        for name, known in _CHOICES.items():
            if getattr(chosen, name) not in known:
                raise UnknownChoice(f"{name} has to be one of {', '.join(known)}")
        return chosen

    def query(self, **changes: str) -> str:
        """Return the query with some parameters changed."""
        chosen = {name: getattr(self, name) for name in _CHOICES}
        return urlencode(chosen | changes)


_CHOICES: dict[str, dict[str, str]] = {
    "range": {name: each.label for name, each in RANGES.items()},
    "by": {each.value: each.value for each in Dimension},
    "of": MEASURES,
}


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another selection."""

    label: str
    query: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """A total with its name."""

    name: str
    figure: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """Content of the panel, for `templates/usage/panel.html`."""

    chosen: Chosen
    links: dict[str, list[Link]]
    facts: list[Fact]
    outcomes: list[tuple[str, str, str]]
    """Outcome, number of calls and share of all calls, as text."""
    plots: list[Plot]
    closer: Link | None
    """A link to a shorter range that contains all calls as well."""
    is_empty: bool
    since: datetime


def panel(chosen: Chosen, now: datetime, api_key: ApiKey | None = None) -> Panel:
    """Return the panel of a key, or of all keys together."""
    found = usage(RANGES[chosen.range], now, Dimension(chosen.by), api_key)
    return Panel(
        chosen=chosen,
        links={name: _links(chosen, name) for name in _CHOICES},
        facts=_facts(found),
        outcomes=_outcomes(found),
        plots=[_volume(chosen, found), _latency(found)] if found.total.calls else [],
        closer=_closer(chosen, found, now),
        is_empty=not found.total.calls,
        since=found.window.start,
    )


def _links(chosen: Chosen, name: str) -> list[Link]:
    return [
        Link(label, chosen.query(**{name: value}), getattr(chosen, name) == value)
        for value, label in _CHOICES[name].items()
    ]


def _closer(chosen: Chosen, found: Usage, now: datetime) -> Link | None:
    """Return a link to the shortest range that contains all calls, if it is shorter."""
    if not found.cells:
        return None
    first = found.window.moment(min(place for _, place in found.cells))
    for name, each in RANGES.items():
        if name == chosen.range:
            return None
        if each.window(now).start <= first:
            return Link(each.label, chosen.query(range=name), False)
    return None


def _facts(found: Usage) -> list[Fact]:
    total = found.total
    return [
        Fact("Calls", f"{total.calls:,}"),
        Fact("Credits", f"{total.credits:,}"),
        Fact(
            "Error rate",
            words.share(total.failed, total.calls),
            f"{total.failed:,} failed calls",
        ),
        *(
            Fact(f"p{share * 100:.0f} latency", words.duration(found.latency(share)))
            for share in _SHARES
        ),
        Fact("Data returned", words.size(total.bytes_out)),
    ]


def _outcomes(found: Usage) -> list[tuple[str, str, str]]:
    whole = found.total.calls
    return [
        (outcome.label, f"{counts.calls:,}", words.share(counts.calls, whole))
        for outcome in Outcome
        if (counts := found.outcomes.get(outcome.value)) is not None
    ]


def _volume(chosen: Chosen, found: Usage) -> Plot:
    """Draw the selected measure, with the largest series at the bottom."""
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
    """Draw the latencies of calls."""
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
