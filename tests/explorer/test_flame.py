"""The flame graph: widths of bars by gas, and the limit of their number."""

from __future__ import annotations

from evm.tracers.frames import CallFrame
from explorer.calls import in_order
from explorer.flame import MAX_BARS, MAX_ROWS, Flame, flame, own_gas


def call(gas_used: int, *calls: CallFrame, error: str | None = None) -> CallFrame:
    return CallFrame(
        type="CALL",
        sender=b"\x01" * 20,
        to=b"\x02" * 20,
        gas=10**9,
        input=b"",
        value=0,
        depth=0,
        gas_used=gas_used,
        error=error,
        calls=list(calls),
    )


def drawn(top: CallFrame) -> Flame:
    frames = list(in_order(top))
    return flame(frames, len(frames))


def places(graph: Flame) -> set[tuple[str, str, int]]:
    return {(bar.x, bar.width, bar.y // 22) for bar in graph.bars}


def test_bars_lie_below_their_caller_one_after_the_other():
    graph = drawn(call(1000, call(500, call(250)), call(400)))
    assert places(graph) == {
        ("0.000%", "100.000%", 0),
        ("0.000%", "50.000%", 1),
        ("50.000%", "40.000%", 1),
        ("0.000%", "25.000%", 2),
    }
    assert {bar.target for bar in graph.bars} == {1, 2, 3, 4}


def test_refunds_do_not_let_calls_reach_beyond_their_caller():
    top = call(800, call(600), call(400))
    assert own_gas(top) == 0
    graph = drawn(top)
    assert ("60.000%", "40.000%", 1) in places(graph)


def test_narrow_neighbours_are_one_bar_that_counts_them():
    short = [call(10, error="execution reverted"), *(call(10) for _ in range(99))]
    graph = drawn(call(100_000, *short, call(50_000), call(10)))
    merged = next(bar for bar in graph.bars if bar.kind == "merged")
    assert (merged.x, merged.width) == ("0.000%", "1.000%")
    assert merged.title.startswith("100 short calls, 1 of them failed: 1,000 gas")
    assert merged.target == 2
    # A single narrow call has its own bar, which is wide enough to be visible.
    assert graph.bars[-1].width == "0.600%"
    assert len(graph.bars) == 4


def test_calls_that_used_nothing_are_drawn_within_the_graph():
    graph = drawn(call(0, call(0), call(0)))
    assert len(graph.bars) == 2
    assert all(float(bar.x[:-1]) <= 100 for bar in graph.bars)


def test_deep_trees_end_at_the_last_row():
    top = call(10**6)
    for _ in range(1023):
        top = call(10**6, top)
    graph = drawn(top)
    assert len(graph.bars) == MAX_ROWS
    assert graph.left_out == 1


def test_there_are_never_more_bars_than_can_be_drawn():
    def wide(depth: int) -> CallFrame:
        if not depth:
            return call(1000)
        return call(250_000, *[call(1000, call(1000, call(1000))) for _ in range(250)])

    top = wide(1)
    for _ in range(20):
        top = call(250_000, top)
    deepest = top
    while deepest.calls[0].gas_used == 250_000:
        deepest = deepest.calls[0]
    for one in deepest.calls:
        inner = one
        for _ in range(10):
            inner.calls = [call(1000)]
            inner = inner.calls[0]
    graph = drawn(top)
    assert len(graph.bars) == MAX_BARS
    assert graph.left_out > 0
