"""The choice of the forkchoice to follow, from the reports of all upstreams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from eth_typing import Hash32

POLLS_FOR_LOWER_HEAD = 3
"""Successive polls after which a single upstream may lower the head."""

BLOCKS_KEPT = 64
"""Block hashes kept for each upstream: the newest ones, and its safe and finalized."""


class Point(NamedTuple):
    """A block's number and hash."""

    number: int
    hash: Hash32


class Head(Protocol):
    """The newest block of an upstream, such as a `BlockRef`."""

    @property
    def number(self) -> int: ...  # noqa: D102
    @property
    def hash(self) -> Hash32: ...  # noqa: D102
    @property
    def parent_hash(self) -> Hash32: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class View:
    """The known part of one upstream's chain."""

    upstream_id: int
    head: Point
    safe: Point | None = None
    finalized: Point | None = None
    blocks: Mapping[int, Hash32] = field(default_factory=dict)
    """Hashes of known blocks of the chain by number: the head, its parent, the safe and
    finalized blocks, heads before, and answers to `questions`."""
    polls_below: int = 0
    """Number of successive polls at which the head was lower than ours."""
    is_current: bool = True
    """Whether the upstream responded to the last poll."""
    newest: Point | None = None
    """The upstream's newest block, if that is of an unsupported fork. The head is then the
    last block before the fork."""

    def has(self, point: Point) -> bool:
        """Return whether a block is known to be on the upstream's chain."""
        return self.blocks.get(point.number) == point.hash

    def with_block(self, point: Point) -> View:
        """Return the view with one more known block."""
        return replace(self, blocks={**self.blocks, point.number: point.hash})

    def outdated(self) -> View:
        """Return the view after a failed poll."""
        return replace(self, is_current=False)


def polled_view(
    before: View | None,
    upstream_id: int,
    head: Head,
    safe: Point | None,
    finalized: Point | None,
    own_number: int,
) -> View:
    """Return the view after a poll of an upstream.

    before: the view after the previous poll, None at the first poll.
    own_number: number of our head.
    """
    blocks: dict[int, Hash32] = {}
    if before is not None:
        blocks = _kept(before, head)
    blocks[head.number] = head.hash
    if head.number > 0:
        blocks[head.number - 1] = head.parent_hash
    for point in (safe, finalized):
        if point is not None and point.number <= head.number:
            blocks.setdefault(point.number, point.hash)
    newest = sorted(blocks)[-BLOCKS_KEPT:]
    tagged = {point.number for point in (safe, finalized) if point is not None}
    polls = 0 if before is None else before.polls_below
    return View(
        upstream_id,
        Point(head.number, head.hash),
        safe,
        finalized,
        {number: blocks[number] for number in {*newest, *tagged} & blocks.keys()},
        polls + 1 if head.number < own_number else 0,
    )


def _kept(before: View, head: Head) -> dict[int, Hash32]:
    """Return the blocks of a view that are on the chain of a new head as well."""
    is_linked = (
        head.hash == before.head.hash
        or before.blocks.get(head.number - 1) == head.parent_hash
    )
    limit = -1
    if is_linked:
        limit = head.number
    elif before.finalized is not None:
        limit = before.finalized.number
    return {
        number: block_hash
        for number, block_hash in before.blocks.items()
        if number <= limit
    }


@dataclass(frozen=True, slots=True)
class Own:
    """The forkchoice that is stored for our chain."""

    head: Point
    safe: Point | None = None
    finalized: Point | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The forkchoice to follow."""

    head: Point
    safe: Point | None
    finalized: Point | None
    supporters: frozenset[int]
    """Ids of the upstreams whose chain contains the head."""


def choose(views: Sequence[View], own: Own, agree: int) -> Choice | None:
    """Return the forkchoice to follow, or None if too few upstreams agree on a head.

    views: in the order in which the upstreams are preferred. A view that is not current
        can only prevent a lower head.
    agree: number of upstreams that have to agree on the head and the finalized block.

    The head is the highest head that enough upstreams have on their chain. Our own head
    stays if it is as high. A lower head needs a second upstream that is at the same
    block, or three polls of one upstream, while no other has our head. The head is never
    lower than the finalized block, which never moves back.
    """
    head = _choose_head(views, own, agree)
    if head is None:
        return None
    supporters = [view for view in views if view.is_current and view.has(head)]
    finalized = _agreed(
        [(view, view.finalized) for view in supporters], agree, head.number
    )
    if finalized is None or (
        own.finalized and finalized.number <= own.finalized.number
    ):
        finalized = own.finalized
    safe = _agreed([(view, view.safe) for view in supporters], agree, head.number)
    if safe is None and own.safe and own.safe.number <= head.number:
        safe = own.safe
    if finalized is not None and (safe is None or safe.number < finalized.number):
        safe = finalized
    return Choice(
        head, safe, finalized, frozenset(view.upstream_id for view in supporters)
    )


def _choose_head(views: Sequence[View], own: Own, agree: int) -> Point | None:
    current = [view for view in views if view.is_current]
    heads = [own.head, *(view.head for view in current)]
    eligible = [
        head
        for head in dict.fromkeys(heads)
        if _support(head, current) >= agree and not _is_behind_finalized(head, own)
    ]
    if not eligible:
        return None
    best = max(  # the first of equal ones: our own, otherwise the preferred upstream's
        eligible,
        key=lambda head: (head.number, head == own.head, _support(head, current)),
    )
    if best.number < own.head.number and not _is_lowering_confirmed(best, views, own):
        return None
    return best


def _is_behind_finalized(head: Point, own: Own) -> bool:
    if own.finalized is None:
        return False
    if head.number == own.finalized.number:
        return head.hash != own.finalized.hash
    return head.number < own.finalized.number


def _is_lowering_confirmed(head: Point, views: Iterable[View], own: Own) -> bool:
    at_head = [view for view in views if view.is_current and view.head == head]
    if len(at_head) > 1:
        return True
    if any(view.has(own.head) for view in views):
        return False
    return any(view.polls_below >= POLLS_FOR_LOWER_HEAD for view in at_head)


def _agreed(
    tagged: Sequence[tuple[View, Point | None]], agree: int, highest: int
) -> Point | None:
    """Return the newest block that enough upstreams tag safe or finalized, or None.

    tagged: the upstreams, each with its safe or its finalized block. An upstream that
        tags a later block of the same chain counts as well.
    highest: maximum number of the returned block.
    """
    return max(
        (
            point
            for _, point in tagged
            if point is not None
            and point.number <= highest
            and sum(
                view.has(point)
                for view, own_tag in tagged
                if own_tag is not None and own_tag.number >= point.number
            )
            >= agree
        ),
        default=None,
    )


def _support(point: Point, views: Iterable[View]) -> int:
    return sum(view.has(point) for view in views)


def questions(views: Iterable[View], agree: int) -> set[tuple[int, int]]:
    """Return the blocks to request, as pairs of upstream id and block number.

    An answer shows whether an upstream has the head, safe or finalized block of another
    one. If one upstream is enough, there is nothing to ask.
    """
    current = [view for view in views if view.is_current]
    if agree < 2:
        return set()
    numbers = {
        point.number
        for view in current
        for point in (view.head, view.safe, view.finalized)
        if point is not None
    }
    return {
        (view.upstream_id, number)
        for view in current
        for number in numbers
        if number <= view.head.number and number not in view.blocks
    }


def reached(views: Iterable[View], agree: int) -> Point | None:
    """Return the highest head whose number `agree` upstreams have reached, or None.

    Blocks of an unsupported fork count as well. Fewer upstreams cannot raise it with false
    heads.
    """
    heads = sorted(
        (view.newest or view.head for view in views if view.is_current), reverse=True
    )
    return heads[agree - 1] if len(heads) >= agree else None
