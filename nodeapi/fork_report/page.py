"""The page of figures: a file of its own, with styles and plot inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.template.loader import render_to_string
from eth_utils.address import to_checksum_address

from abi.selectors import function_name
from evm.chain_config import LADDER
from evm.hexadecimal import to_hex
from legible.words import count, number
from nodeapi.fork_report.survey import BINS_PER_DECADE, Change, Function

if TYPE_CHECKING:
    from nodeapi.fork_report.survey import Survey

MOST_FUNCTIONS = 100
"""Functions that the page lists, those with the most transactions."""
MOST_FAILURES = 200
"""Kinds of failures that the page lists, the most frequent ones."""

SIDE = 360
"""Width and height of the plot's area, in its own units."""
LEFT, RIGHT, BELOW = 44, 20, 44
"""Room for the labels beside the area."""
TOP = 24
"""Room for the title of the vertical scale above the area."""
_TICKS = ((3, "1k"), (4, "10k"), (5, "100k"), (6, "1M"), (7, "10M"), (8, "100M"))
"""Exponents of ten with their labels."""

_CARDS = (
    (Change.FAILS, "fail"),
    (Change.REFUSED, "are not allowed"),
    (Change.NEEDS_GAS, "need a higher gas limit"),
    (Change.SUCCEEDS, "succeed that had failed"),
)
_LEGEND = {
    Change.NONE: "the same status",
    Change.NEEDS_GAS: "needs a higher gas limit",
    Change.FAILS: "fails",
    Change.SUCCEEDS: "succeeds",
}


@dataclass(frozen=True, slots=True)
class Dot:
    """A bin of the plot."""

    x: float
    y: float
    size: float
    opacity: float
    change: Change
    title: str


def report_page(survey: Survey, network: str, numbers: range, fork: str) -> str:
    """Return the page.

    network: its name. numbers: of the blocks. fork: its name.
    """
    failures = sorted(
        survey.failures.items(), key=lambda item: (-item[1].count, str(item[0]))
    )
    rows = [
        {
            **_named(function),
            "change": change,
            "error": error,
            "count": failure.count,
            "examples": [to_hex(each) for each in failure.examples],
        }
        for (function, change, error), failure in failures
    ]
    hard = [row for row in rows if row["change"] is not Change.NEEDS_GAS]
    soft = [row for row in rows if row["change"] is Change.NEEDS_GAS]
    total = survey.total
    return render_to_string(
        "reports/forks.html",
        {
            "network": network,
            "fork": fork,
            "first": numbers[0],
            "last": numbers[-1],
            "own_forks": sorted(survey.forks, key=_position),
            "blocks": count(survey.blocks, "block"),
            "transactions": count(survey.transactions, "transaction"),
            "cards": [(survey.changes[each], each, text) for each, text in _CARDS],
            "gas_before": number(total.gas_before),
            "gas_after": number(total.gas_after),
            "gas_change": _change(total.gas_before, total.gas_after),
            "plot": _plot(survey),
            "failures": hard[:MOST_FAILURES],
            "more_failures": max(0, len(hard) - MOST_FAILURES),
            "needing_gas": soft[:MOST_FAILURES],
            "more_needing_gas": max(0, len(soft) - MOST_FAILURES),
            "functions": _functions(survey),
            "more_functions": max(0, len(survey.functions) - MOST_FUNCTIONS),
        },
    )


def _position(fork: str) -> tuple[int, str]:
    """Return the sort key of a fork. Blob-parameter-only forks are the last."""
    return (list(LADDER).index(fork) if fork in LADDER else len(LADDER)), fork


def _functions(survey: Survey) -> list[dict[str, object]]:
    """Return the functions with the most transactions."""
    most = sorted(
        survey.functions.items(), key=lambda item: (-item[1].transactions, str(item[0]))
    )
    return [
        {
            **_named(function),
            "count": tally.transactions,
            "before": number(tally.gas_before // tally.transactions),
            "after": number(tally.gas_after // tally.transactions),
            "change": _change(tally.gas_before, tally.gas_after),
            "is_dearer": tally.gas_after > tally.gas_before,
        }
        for function, tally in most[:MOST_FUNCTIONS]
    ]


def _named(function: Function) -> dict[str, str]:
    """Return a contract and its function as text."""
    contract, selector = function
    if contract is None:
        return {"contract": "", "selector": "", "function": "creation"}
    name = function_name(selector) if selector else ""
    return {
        "contract": str(to_checksum_address(contract)),
        "selector": to_hex(selector) if selector else "",
        "function": name or ("" if selector else "transfer"),
    }


def _change(before: int, after: int) -> str:
    """Return a relative change, such as +3.4 %."""
    if not before:
        return "–"
    percent = 100 * (after - before) / before
    return f"{percent:+.1f} %".replace("-", "−")


def _plot(survey: Survey) -> dict[str, object] | None:
    """Return the plot of gas before and after. None without transactions."""
    if not survey.bins:
        return None
    places = [place for x, y, _ in survey.bins for place in (x, y)]
    low, high = min(places), max(places) + 1
    low -= low % BINS_PER_DECADE
    high += -high % BINS_PER_DECADE
    unit = SIDE / (high - low)
    largest = max(survey.bins.values())
    ordered = sorted(survey.bins.items(), key=lambda item: (-item[1], item[0]))
    dots = []
    for (x, y, change), found in ordered:
        share = (found / largest) ** 0.25
        size = max(unit * share, 4.0)
        middle = (x - low + 0.5) * unit, (y - low + 0.5) * unit
        gas = [int(10 ** ((each + 0.5) / BINS_PER_DECADE)) for each in (x, y)]
        title = (
            f"{count(found, 'transaction')}, about {number(gas[0])} gas before and "
            f"{number(gas[1])} after: {_LEGEND.get(change, change)}"
        )
        dots.append(
            Dot(
                round(LEFT + middle[0] - size / 2, 1),
                round(SIDE - middle[1] - size / 2, 1),
                round(size, 1),
                round(0.5 + 0.5 * share, 2),
                change,
                title,
            )
        )
    ticks = [
        (round((power * BINS_PER_DECADE - low) * unit, 1), label)
        for power, label in _TICKS
        if low <= power * BINS_PER_DECADE <= high
    ]
    return {
        "width": LEFT + SIDE + RIGHT,
        "height": TOP + SIDE + BELOW,
        "top": TOP,
        "left": LEFT,
        "side": SIDE,
        "right": LEFT + SIDE,
        "along": [(LEFT + place, label) for place, label in ticks],
        "across": [(SIDE - place, label) for place, label in ticks],
        "dots": dots,
        "legend": [
            (change, text)
            for change, text in _LEGEND.items()
            if any(each == change for _, _, each in survey.bins)
        ],
    }
