"""Geometry and texts of charts, without a page or a database."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.charts import words
from keys.charts.plots import HEIGHT, TOP, Series, bars, lines
from keys.charts.windows import MAX_TICKS, Window

NOW = datetime(2026, 11, 21, 12, 34, 56, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

THIN = "\N{NARROW NO-BREAK SPACE}"

RECTANGLE = re.compile(r"M([\d.]+) ([\d.]+)v-([\d.]+)h([\d.]+)v[\d.]+z")


def window(count=4, step=HOUR):
    return Window.until(NOW, step, count)


def rectangles(path):
    """Return each bar of a path as its bin, its top and its bottom in pixels."""
    return [
        (int(float(left)), float(bottom) - float(height), float(bottom))
        for left, bottom, height, _ in RECTANGLE.findall(path)
    ]


def test_last_bin_is_the_one_that_is_under_way():
    hours = window()
    assert hours.start == datetime(2026, 11, 21, 9, tzinfo=UTC)
    assert hours.end == datetime(2026, 11, 21, 13, tzinfo=UTC)
    assert hours.place(NOW) == 3
    assert hours.place(hours.end) == 4
    assert hours.place(hours.start - timedelta(seconds=1)) == -1


@pytest.mark.parametrize(
    ("count", "step", "first", "labels"),
    [
        (15, MINUTE, "12:20", 8),
        (60, MINUTE, "11:40", 6),
        (24, HOUR, "15:00", 8),
        (56, 3 * HOUR, "15 Nov", 7),
        (30, DAY, "24 Oct", 6),
    ],
)
def test_marks_of_time_are_few_and_round(count, step, first, labels):
    ticks = list(window(count, step).ticks())
    assert ticks[0][1] == first
    assert len(ticks) == labels <= MAX_TICKS
    assert all(0 <= place < count for place, _ in ticks)


def test_midnight_is_named_by_the_day_that_begins():
    assert "21 Nov" in [label for _, label in window(24).ticks()]


def test_bins_are_reported_in_utc():
    assert window().words(0) == "2026-11-21 09:00–10:00"
    assert window(30, DAY).words(29) == "2026-11-21"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7, "7"),
        (999, "999"),
        (1000, f"1{THIN}k"),
        (1234, f"1.23{THIN}k"),
        (34_000, f"34{THIN}k"),
        (999_940, f"1{THIN}M"),
        (5_600_000_000, f"5.6{THIN}G"),
    ],
)
def test_counts_are_written_in_three_digits(value, text):
    assert words.short(value) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (900, "900 B"), (1200, "1.2 kB")]
)
def test_sizes_have_their_unit_beside_them(count, text):
    assert words.size(count) == text.replace(" ", THIN)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (None, "–"),
        (0, f"0{THIN}µs"),
        (0.4, f"<{THIN}1{THIN}µs"),
        (850, f"850{THIN}µs"),
        (1500, f"1.5{THIN}ms"),
        (2_345_678, f"2.35{THIN}s"),
        (90_000_000, f"1.5{THIN}min"),
        (5_400_000_000, f"1.5{THIN}h"),
        (129_600_000_000, f"1.5{THIN}d"),
    ],
)
def test_durations_have_the_unit_that_fits(microseconds, text):
    assert words.duration(microseconds) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 9, "0%"),
        (0, 0, "0%"),
        (1, 100_000, "< 0.01%"),
        (1, 80, "1.25%"),
        (1, 3, "33.3%"),
        (3, 3, "100.0%"),
    ],
)
def test_a_share_that_is_there_does_not_look_like_nothing(part, whole, text):
    assert words.share(part, whole) == text


def test_bars_stand_on_each_other():
    plot = bars(
        "volume",
        "Calls",
        window(),
        [Series("ok", "a", [4, 0, 2, 0]), Series("bad", "b", [4, 1, 0, 0])],
    )
    low, high = (rectangles(shape.path) for shape in plot.shapes)
    assert low == [(0, 90, 180), (2, 135, 180)]
    assert high == [(0, 0, 90), (1, 157.5, 180)]
    assert [tick.label for tick in plot.across] == ["0", "2", "4", "6", "8"]
    assert [tick.place for tick in plot.across][-1] == f"{TOP:.1f}"


def test_table_has_the_figures_of_the_bars():
    plot = bars("v", "Calls", window(2), [Series("ok", "a", [1200, 0])])
    assert plot.heads == ["ok"]
    assert [row.cells for row in plot.table] == [["1,200"], ["0"]]
    assert plot.table[0].title == "2026-11-21 11:00–12:00 UTC\nok: 1,200"
    assert plot.table[1].title.endswith("nothing")
    assert plot.legend[0].figure == "1,200"
    assert "total 1,200" in plot.summary


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=60))
def test_bars_stay_within_the_chart(values):
    plot = bars("v", "Calls", window(len(values)), [Series("ok", "a", values)])
    drawn = rectangles(plot.shapes[0].path)
    assert [place for place, _, _ in drawn] == [i for i, v in enumerate(values) if v]
    # A bar below a pixel is drawn higher, so that half a pixel is added.
    assert all(-0.7 <= top <= bottom <= HEIGHT for _, top, bottom in drawn)
    assert 2 <= len(plot.across) <= 6


@given(st.lists(st.none() | st.floats(0, 10**9), min_size=1, max_size=60))
def test_lines_stay_within_the_chart(values):
    plot = lines(
        "l", "Latency", window(len(values)), [Series("p50", "a", values)], [""]
    )
    heights = re.findall(r"[ML][\d.]+ (-?[\d.]+)", plot.shapes[0].path)
    assert len(heights) == sum(value is not None for value in values)
    assert all(-0.2 <= float(height) <= HEIGHT for height in heights)


def test_a_line_breaks_where_nothing_was_measured_and_shows_points_alone():
    values = [1000, 2000, None, 4000, None, None, 4000, 4000]
    plot = lines("l", "Latency", window(8), [Series("p50", "a", values)], ["2 ms"])
    assert plot.shapes[0].path == ("M0.5 135.0L1.5 90.0M3.1 0.0h0.8M6.5 0.0L7.5 0.0")
    assert [tick.label for tick in plot.across][-1] == f"4{THIN}ms"
    assert plot.table[2].cells == ["–"]


@pytest.mark.parametrize(
    ("longest_seconds", "labels"),
    [
        (40, ["0", "10 s", "20 s", "30 s", "40 s"]),
        (100, ["0", "30 s", "1 min", "1.5 min", "2 min"]),
        (900, ["0", "5 min", "10 min", "15 min"]),
        (7200, ["0", "30 min", "1 h", "1.5 h", "2 h"]),
        (400_000, ["0", "2 d", "4 d", "6 d"]),
        (40_000_000, ["0", "200 d", "400 d", "600 d"]),
    ],
)
def test_axis_of_long_durations_has_round_numbers(longest_seconds, labels):
    values = [10**6 * longest_seconds]
    plot = lines("l", "Lag", window(1), [Series("mean", "a", values)], [""])
    assert [tick.label.replace(THIN, " ") for tick in plot.across] == labels


def test_an_empty_chart_has_axes():
    assert bars("v", "Calls", window(), []).across[0].label == "0"
    empty = lines("l", "L", window(), [Series("p50", "a", [None] * 4)], ["–"])
    assert empty.shapes[0].path == ""
    assert empty.along


def test_few_values_are_written_into_the_chart() -> None:
    plot = bars(
        "v", "Calls", window(24), [Series("ok", "a", [0] * 10 + [7] + [0] * 13)]
    )
    (label,) = plot.labels
    assert (label.text, label.anchor, label.place) == ("7", "middle", "43.750%")
    assert float(label.top) < TOP + HEIGHT / 8
    values = [None] * 23 + [1500]
    plot = lines("l", "Latency", window(24), [Series("p50", "a", values)], [""])
    (label,) = plot.labels
    assert (label.text, label.anchor) == (f"1.5{THIN}ms", "end")
    line, dots = plot.shapes
    assert (line.css, dots.css) == ("a", "dot a")
    assert dots.path.startswith("M23.5 ")


def test_labels_do_not_overlap() -> None:
    values = [0] * 10 + [5, 9, 6] + [0] * 11
    plot = bars("v", "Calls", window(24), [Series("ok", "a", values)])
    assert [label.text for label in plot.labels] == ["9"]


def test_many_values_are_not_written_into_the_chart() -> None:
    plot = bars("v", "Calls", window(24), [Series("ok", "a", [1] * 24)])
    assert plot.labels == []
    plot = lines("l", "L", window(24), [Series("p50", "a", [1.0] * 24)], [""])
    assert [shape.css for shape in plot.shapes] == ["a"]
