"""The choice of the forkchoice: examples of each rule, and properties."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256

from eth_typing import Hash32
from hypothesis import given
from hypothesis import strategies as st

from nodeapi.follower.choice import (
    BLOCKS_KEPT,
    Own,
    Point,
    View,
    choose,
    polled_view,
    questions,
    reached,
)


def block_hash(number: int, branch: str = "") -> Hash32:
    return Hash32(sha256(f"{number}{branch}".encode()).digest())


def point(number: int, branch: str = "") -> Point:
    return Point(number, block_hash(number, branch))


@dataclass(frozen=True)
class Ref:
    number: int
    hash: Hash32
    parent_hash: Hash32


def ref(number: int, branch: str = "", forked_at: int = -1) -> Ref:
    """Return a block of a branch that leaves the main one after block `forked_at`."""
    parent = block_hash(number - 1, branch if number - 1 > forked_at else "")
    return Ref(number, block_hash(number, branch if number > forked_at else ""), parent)


def view(
    upstream: int,
    number: int,
    branch: str = "",
    *,
    forked_at: int = -1,
    safe: Point | None = None,
    finalized: Point | None = None,
    **options: bool | int,
) -> View:
    """Return the view of an upstream of which all blocks are known."""
    chain = {
        n: block_hash(n, branch if n > forked_at else "") for n in range(number + 1)
    }
    return View(
        upstream,
        Point(number, chain[number]),
        safe,
        finalized,
        chain,
        **options,  # type: ignore[arg-type]
    )


# The head


def test_one_upstream_decides_by_default() -> None:
    found = choose([view(1, 10)], Own(point(7)), 1)
    assert found is not None
    assert (found.head, found.supporters) == (point(10), {1})


def test_the_highest_head_is_chosen() -> None:
    found = choose([view(1, 10), view(2, 12), view(3, 11)], Own(point(7)), 1)
    assert found is not None
    assert found.head == point(12)


def test_two_of_three_agree_on_the_lower_of_their_heads() -> None:
    views = [view(1, 10), view(2, 11), view(3, 15, "lie", forked_at=5)]
    found = choose(views, Own(point(7)), 2)
    assert found is not None
    assert (found.head, found.supporters) == (point(10), {1, 2})


def test_too_few_agree() -> None:
    views = [view(1, 10), view(2, 12, "other", forked_at=3)]
    assert choose(views, Own(point(7)), 2) is None or (
        choose(views, Own(point(7)), 2).head == point(7)  # type: ignore[union-attr]
    )
    assert choose([view(1, 10)], Own(point(7)), 2) is None


def test_of_two_heads_of_the_same_height_ours_stays() -> None:
    views = [view(1, 10, "b", forked_at=9), view(2, 10)]
    found = choose(views, Own(point(10)), 1)
    assert found is not None
    assert found.head == point(10)
    found = choose(views, Own(point(9)), 1)
    assert found is not None
    assert found.head == point(10, "b"), "the preferred upstream's"


def test_a_reorganisation_of_the_same_height_is_followed() -> None:
    found = choose([view(1, 10, "b", forked_at=9)], Own(point(10)), 1)
    assert found is not None
    assert found.head == point(10, "b")


def test_a_lower_head_needs_three_looks() -> None:
    own = Own(point(10))
    for polls in (0, 1, 2):
        assert choose([view(1, 8, polls_below=polls)], own, 1) is None
    found = choose([view(1, 8, polls_below=3)], own, 1)
    assert found is not None
    assert found.head == point(8)


def test_a_lower_head_needs_a_second_upstream_at_the_same_block() -> None:
    own = Own(point(10))
    found = choose([view(1, 8), view(2, 8)], own, 1)
    assert found is not None
    assert found.head == point(8)
    assert choose([view(1, 8), view(2, 7)], own, 1) is None


def test_a_head_that_another_upstream_has_is_not_lowered() -> None:
    views = [view(1, 30, polls_below=9), view(2, 100)]
    found = choose(views, Own(point(100)), 1)
    assert found is not None
    assert found.head == point(100)


def test_a_head_that_an_unavailable_upstream_had_is_not_lowered() -> None:
    views = [view(1, 30, polls_below=9), view(2, 100, is_current=False)]
    assert choose(views, Own(point(100)), 1) is None


def test_never_behind_finalized() -> None:
    own = Own(point(10), point(6), point(6))
    for number in (3, 5):
        assert choose([view(1, number, polls_below=9)], own, 1) is None
    assert choose([view(1, 6, "b", forked_at=5, polls_below=9)], own, 1) is None
    found = choose([view(1, 6, polls_below=9)], own, 1)
    assert found is not None
    assert found.head == point(6)


# Safe and finalized


def test_safe_and_finalized_come_from_an_upstream_with_the_head() -> None:
    views = [
        view(1, 10, safe=point(8), finalized=point(5)),
        view(2, 9, "b", forked_at=3, safe=point(9, "b"), finalized=point(7, "b")),
    ]
    found = choose(views, Own(point(7)), 1)
    assert found is not None
    assert (found.safe, found.finalized) == (point(8), point(5))


def test_finalized_needs_agreement() -> None:
    views = [
        view(1, 10, safe=point(9), finalized=point(9)),  # has not finalized it
        view(2, 10, safe=point(8), finalized=point(5)),
        view(3, 10, safe=point(8), finalized=point(4)),
    ]
    found = choose(views, Own(point(7)), 2)
    assert found is not None
    assert (found.safe, found.finalized) == (point(8), point(5))


def test_finalized_never_moves_back() -> None:
    own = Own(point(10), point(8), point(6))
    for finalized in (point(4), point(6, "b"), None):
        found = choose([view(1, 11, finalized=finalized)], own, 1)
        assert found is not None
        assert (found.head, found.finalized) == (point(11), point(6))


def test_finality_may_not_exist_yet() -> None:
    found = choose([view(1, 11)], Own(point(10)), 1)
    assert found is not None
    assert (found.safe, found.finalized) == (None, None)


def test_tags_above_the_head_are_ignored() -> None:
    views = [view(1, 10, safe=point(12), finalized=point(11))]
    found = choose(views, Own(point(9)), 1)
    assert found is not None
    assert (found.safe, found.finalized) == (None, None)


def test_safe_is_at_least_finalized() -> None:
    views = [view(1, 10, safe=point(4), finalized=point(7))]
    found = choose(views, Own(point(9)), 1)
    assert found is not None
    assert (found.safe, found.finalized) == (point(7), point(7))


# Views


def test_a_view_keeps_blocks_of_the_same_chain_only() -> None:
    first = polled_view(None, 1, ref(10), point(6), point(4), 9)
    assert first.blocks == {n: block_hash(n) for n in (4, 6, 9, 10)}
    second = polled_view(first, 1, ref(11), point(6), point(4), 9)
    assert second.blocks == {n: block_hash(n) for n in (4, 6, 9, 10, 11)}
    third = polled_view(second, 1, ref(11, "b", forked_at=9), point(6), point(4), 9)
    assert third.blocks == {
        4: block_hash(4),
        6: block_hash(6),
        10: block_hash(10, "b"),
        11: block_hash(11, "b"),
    }


def test_a_view_counts_polls_below_our_head() -> None:
    seen = None
    for count, number in enumerate((8, 9, 7), 1):
        seen = polled_view(seen, 1, ref(number), None, None, 10)
        assert seen.polls_below == count
    assert polled_view(seen, 1, ref(10), None, None, 10).polls_below == 0


def test_a_view_is_bounded() -> None:
    seen = None
    for number in range(300):
        seen = polled_view(seen, 1, ref(number), point(3), point(2), 0)
    assert seen is not None
    assert seen.blocks.keys() == {2, 3, *range(300 - BLOCKS_KEPT, 300)}


def test_questions_ask_for_the_blocks_of_others() -> None:
    views = [
        polled_view(None, 1, ref(10), None, None, 0),
        polled_view(None, 2, ref(7), None, point(4), 0),
    ]
    assert questions(views, 1) == set()
    assert questions(views, 2) == {(1, 7), (1, 4)}
    views[0] = views[0].with_block(point(7)).with_block(point(4))
    assert questions(views, 2) == set()
    found = choose(views, Own(point(1)), 2)
    assert found is not None
    assert found.head == point(7)


def test_the_height_that_was_reached_needs_agreement_as_well() -> None:
    views = [view(1, 10), view(2, 9), view(3, 50, "lie")]
    assert [reached(views, agree) for agree in (1, 2, 3, 4)] == [
        point(50, "lie"),
        point(10),
        point(9),
        None,
    ]


# Properties

HONEST = 30

points = st.builds(point, st.integers(0, 40), st.sampled_from(["", "x", "y"]))
tags = st.none() | points
any_views = st.builds(
    lambda upstream, number, branch, forked_at, safe, finalized, polls: view(
        upstream,
        number,
        branch,
        forked_at=forked_at,
        safe=safe,
        finalized=finalized,
        polls_below=polls,
    ),
    st.integers(0, 9),
    st.integers(0, 60),
    st.sampled_from(["", "x", "y"]),
    st.integers(-1, 40),
    tags,
    tags,
    st.integers(0, 5),
)
owns = st.integers(0, HONEST).flatmap(
    lambda head: st.integers(0, head).map(
        lambda finalized: Own(point(head), point(finalized), point(finalized))
    )
)


@st.composite
def honest_views(draw: st.DrawFn) -> View:
    number = draw(st.integers(1, HONEST))
    safe = draw(st.integers(0, number))
    finalized = draw(st.integers(0, safe))
    return view(
        draw(st.integers(10, 19)), number, safe=point(safe), finalized=point(finalized)
    )


@given(st.lists(any_views, max_size=5), owns, st.integers(1, 3))
def test_what_always_holds(views: list[View], own: Own, agree: int) -> None:
    found = choose(views, own, agree)
    if found is None:
        return
    assert own.finalized is not None
    assert found.finalized is not None
    assert found.safe is not None
    assert found.finalized.number >= own.finalized.number
    assert found.finalized.number <= found.safe.number
    assert found.safe.number <= max(found.head.number, own.finalized.number)
    assert found.head.number >= own.finalized.number
    assert len([v for v in views if v.has(found.head)]) >= agree
    if found.finalized != own.finalized:
        agreeing = [
            v
            for v in views
            if v.has(found.finalized)
            and v.finalized
            and v.finalized.number >= found.finalized.number
        ]
        assert len(agreeing) >= agree
        assert found.finalized.number <= found.head.number


@given(
    st.lists(any_views, max_size=2),
    st.lists(honest_views(), min_size=1, max_size=4),
    owns,
    st.randoms(),
)
def test_fewer_liars_than_agree_never_choose_the_head(
    liars: list[View], honest: list[View], own: Own, random: object
) -> None:
    views = [*liars, *honest]
    random.shuffle(views)  # type: ignore[attr-defined]
    found = choose(views, own, len(liars) + 1)
    if found is not None:
        for chosen in (found.head, found.safe, found.finalized):
            assert chosen is not None
            assert chosen == point(chosen.number), "on the honest chain"
            assert chosen.number <= HONEST


@given(st.lists(honest_views(), min_size=1, max_size=5), owns, st.data())
def test_unavailable_upstreams_choose_nothing(
    views: list[View], own: Own, data: st.DataObject
) -> None:
    """Views that are not current do not change the choice, but can keep the head."""
    agree = data.draw(st.integers(1, len(views)))
    away = [replace(v, is_current=False) for v in views]
    assert choose(away, own, agree) is None
    with_away = choose([*views, *away], own, agree)
    alone = choose(views, own, agree)
    assert with_away is None or with_away == alone
