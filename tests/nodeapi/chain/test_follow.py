"""Changing forkchoices in a running importer: the rows correspond to each one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evm.changes import Changes, decode_changes
from networks.models import Network
from nodeapi.chain.branches import DEMOTED_SECONDS
from nodeapi.chain.database import importer_connection
from nodeapi.chain.forkchoice import (
    BelowFinalized,
    Forkchoice,
    ForkchoiceMismatch,
    Move,
    MoveKind,
    UnknownHead,
)
from nodeapi.chain.importers import FollowingImporter
from nodeapi.chain.rows import HeadMoved
from nodeapi.filters.storage import EXPIRY_SECONDS
from nodeapi.models import Block, Reorganisation
from outbox.models import Stream
from outbox.streams import blocks as blocks_stream
from samples.builder import ChainBuilder
from tests.nodeapi.chain.trees import PARENTS, Node, genesis, tree
from tests.support import chains

pytestmark = pytest.mark.django_db(transaction=True)


def following(slug: str = "net", **options: Any) -> Any:
    return chains.following_importer(slug, genesis(), **options)


def choice(
    head: str, safe: str | None = None, finalized: str | None = None
) -> Forkchoice:
    nodes = tree()
    return Forkchoice(
        nodes[head].hash,
        nodes[safe].hash if safe else None,
        nodes[finalized].hash if finalized else None,
    )


def add(importer: FollowingImporter, *names: str) -> None:
    for name in names:
        importer.add(tree()[name].raw)


def add_line(importer: FollowingImporter, name: str) -> None:
    """Add a block and its ancestors, as far as they are unknown."""
    add(importer, *(n for n in tree()[name].line if not known(importer, n)))


def known(importer: FollowingImporter, name: str) -> bool:
    return importer.is_known(tree()[name].hash)


def go(importer: FollowingImporter, head: str, **tags: str) -> Move:
    add_line(importer, head)
    return importer.follow(choice(head, **tags))


def tags(slug: str = "net") -> tuple[bytes | None, bytes | None]:
    network = Network.objects.get(slug=slug)
    return network.safe_hash, network.finalized_hash


def side_diffs(slug: str) -> dict[bytes, Changes]:
    """Return the decoded diffs, whose encoding may be in any order."""
    with importer_connection() as connection:
        return {
            row[0]: decode_changes(row[1])
            for row in connection.execute(
                "SELECT hash, diff FROM nodeapi_sidediff"
                " JOIN nodeapi_block AS block ON block.id = block_id"
                " WHERE network_id = %s",
                (chains.network_id(connection, slug),),
            )
        }


_slugs = count(1)


def assert_like_an_import(slug: str, head: str, others: Iterable[str] = ()) -> None:
    """Compare a network with an import of the same blocks from scratch."""
    nodes, straight = tree(), f"straight-{next(_slugs)}"
    line = nodes[head].line
    names = [*line, *(name for name in PARENTS if name in {*others} - {*line})]
    chains.import_blocks(
        straight,
        genesis(),
        [nodes[name].raw for name in names],
        forkchoice=choice(head),
    )
    found, expected = chains.rows(slug), chains.rows(straight)
    del found["side diffs"], expected["side diffs"]
    assert found == expected
    assert side_diffs(slug) == side_diffs(straight)


def test_each_move_is_named_and_leaves_the_rows_of_its_chain() -> None:
    with following() as importer:
        assert go(importer, "a3") == Move(MoveKind.EXTENSION, 0, 3)
        assert go(importer, "a3") == Move(MoveKind.NONE, 0, 0)
        assert go(importer, "b5") == Move(MoveKind.REORGANISATION, 2, 4)
        assert go(importer, "b3") == Move(MoveKind.REWIND, 2, 0)
        assert go(importer, "b4") == Move(MoveKind.EXTENSION, 0, 1)
        assert go(importer, "c3") == Move(MoveKind.REORGANISATION, 3, 2)
        assert importer.head.header.hash == tree()["c3"].hash
    assert_like_an_import("net", "c3", {"a3", "b2", "b3", "b4", "b5"})
    assert chains.audit_all("net") == 4


def test_a_longer_branch_changes_nothing_until_it_is_followed() -> None:
    with following() as importer:
        go(importer, "a2")
        add_line(importer, "b5")
        assert chains.head("net") == (2, tree()["a2"].hash)
        assert importer.follow(choice("b5")).depth == 1
    assert chains.head("net") == (5, tree()["b5"].hash)
    assert_like_an_import("net", "b5", {"a2"})


def test_back_and_forth_between_two_branches() -> None:
    with following() as importer:
        for head in ("a4", "b5", "a4", "b5", "a3", "e5"):
            go(importer, head)
            assert chains.head("net")[1] == tree()[head].hash
        known = ("b2", "b3", "b4", "b5")
        assert_like_an_import("net", "e5", known)
    depths = Reorganisation.objects.order_by("id").values_list("depth", "added")
    assert list(depths) == [(3, 4), (4, 3), (3, 4), (4, 2)]


def test_a_branch_that_is_shorter_can_be_followed() -> None:
    with following() as importer:
        go(importer, "b5")
        assert go(importer, "a2") == Move(MoveKind.REORGANISATION, 4, 1)
    assert_like_an_import("net", "a2", {"b2", "b3", "b4", "b5"})
    row = Reorganisation.objects.get()
    assert (row.fork_number, row.depth, row.added) == (1, 4, 1)
    assert bytes(row.old_hash) == tree()["b5"].hash
    assert bytes(row.new_hash) == tree()["a2"].hash


def test_back_to_an_ancestor_and_forward_again_without_the_blocks() -> None:
    with following() as importer:
        go(importer, "b5")
        before = chains.rows("net")
        assert importer.follow(choice("t1")) == Move(MoveKind.REWIND, 4, 0)
        assert_like_an_import("net", "t1", {"b2", "b3", "b4", "b5"})
        # Blocks that were demoted are known, and are not executed again.
        assert importer.add(tree()["b2"].raw) is None
        assert importer.follow(choice("b5")) == Move(MoveKind.EXTENSION, 0, 4)
    del before["side diffs"]
    assert before.items() <= chains.rows("net").items()
    assert Reorganisation.objects.count() == 1


def test_blocks_are_added_on_top_after_every_kind_of_move() -> None:
    """After a move, the caches have the new head's state."""
    with following() as importer:
        go(importer, "b4")
        go(importer, "a2")
        go(importer, "e5")
        go(importer, "a2")
        go(importer, "c4")
        go(importer, "b3")
        assert go(importer, "d4") == Move(MoveKind.EXTENSION, 0, 1)
    assert chains.audit_all("net") == 5
    assert_like_an_import(
        "net", "d4", {"b4", "a2", "a3", "a4", "e5", "c3", "c4", "b2", "b3"}
    )


def test_pending_blocks_and_their_tags_are_one_commit() -> None:
    with following() as importer:
        add(importer, "t1", "b2", "b3")
        assert chains.head("net")[0] == 0
        before = published("net")
        move = importer.follow(choice("b3", safe="b2", finalized="t1"))
        assert move == Move(MoveKind.EXTENSION, 0, 3)
        assert published("net") == before + 1
    assert chains.head("net")[0] == 3
    assert tags() == (tree()["b2"].hash, tree()["t1"].hash)


def published(slug: str) -> int:
    """Return the number of entries in the stream of a network's blocks."""
    network = Network.objects.get(slug=slug)
    return Stream.objects.get(name=blocks_stream(network.pk)).last_number


@pytest.mark.parametrize("head", ["b5", "a2", "t1"])
def test_each_move_is_published_once(head: str) -> None:
    with following() as importer:
        go(importer, "a4")
        add_line(importer, head)
        before = published("net")
        assert importer.follow(choice(head, safe=head, finalized="t1")).depth
        assert published("net") == before + 1
        # The same forkchoice is no change, but other tags are.
        importer.follow(choice(head, safe=head, finalized="t1"))
        assert published("net") == before + 1
        importer.follow(choice(head, finalized="t1"))
        assert published("net") == before + 2


def test_a_head_below_the_finalized_block_is_refused() -> None:
    with following() as importer:
        go(importer, "a4")
        add_line(importer, "b4")
        go(importer, "a4", safe="a3", finalized="a2")
        before = chains.rows("net"), tags(), published("net")
        # The block is not executed.
        with pytest.raises(BelowFinalized, match="below the finalized block 2"):
            add(importer, "b5")
        for head in ("b4", "b2", "t1"):
            with pytest.raises(BelowFinalized, match="below the finalized block 2"):
                importer.follow(choice(head))
        assert (chains.rows("net"), tags(), published("net")) == before
        # Branches above the finalized block are still accepted.
        assert go(importer, "c4", safe="a2").depth == 2
        assert importer.follow(choice("a2")) == Move(MoveKind.REWIND, 2, 0)
    assert tags() == (None, tree()["a2"].hash)


@pytest.mark.parametrize(
    ("safe", "finalized", "message"),
    [
        ("a3", None, "the safe block .* is not on the chain of the head"),
        ("b3", "a2", "the finalized block .* is not on the chain of the head"),
        ("e5", "b2", "the safe block .* is not on the chain of the head"),
        ("b3", "t1", "the finalized block would move back from 2 to 1"),
    ],
)
@pytest.mark.parametrize("is_added", [True, False])
def test_tags_off_the_chain_of_the_head_are_refused(
    is_added: bool, safe: str, finalized: str | None, message: str
) -> None:
    with following() as importer:
        add_line(importer, "e5")
        go(importer, "b3", safe="b2", finalized="b2")
        if is_added:
            add_line(importer, "b5")  # pending, so that the move is an extension
        go_on = choice("b5" if is_added else "b3", safe, finalized)
        before = chains.rows("net"), tags()
        with pytest.raises(ForkchoiceMismatch, match=message):
            importer.follow(go_on)
        assert (chains.rows("net"), tags()) == before
        # The importer continues with the pending blocks.
        assert go(importer, "b5").added == 2
    assert_like_an_import("net", "b5", {"a2", "a3", "a4", "e5"})


def test_a_reorganisation_with_tags_off_its_chain_is_refused() -> None:
    with following() as importer:
        go(importer, "a3", safe="t1", finalized="t1")
        add_line(importer, "b4")
        before = chains.rows("net"), tags()
        for safe, finalized in (("a2", "t1"), ("b2", "a2")):
            with pytest.raises(ForkchoiceMismatch, match="not on the chain"):
                importer.follow(choice("b4", safe, finalized))
        assert (chains.rows("net"), tags()) == before
        importer.follow(choice("b4", "b3", "b2"))
    assert tags() == (tree()["b3"].hash, tree()["b2"].hash)


def test_the_finalized_block_stays_when_the_upstreams_know_none() -> None:
    with following() as importer:
        go(importer, "b3", safe="b3", finalized="b2")
        go(importer, "b5")
    assert tags() == (None, tree()["b2"].hash)
    with following() as importer, pytest.raises(BelowFinalized):
        go(importer, "a4")


def test_a_head_that_is_not_stored_is_refused() -> None:
    with following() as importer:
        go(importer, "a2")
        with pytest.raises(UnknownHead):
            importer.follow(choice("b3"))
    assert chains.head("net")[0] == 2


def test_blocks_are_known_when_they_are_pending_or_stored() -> None:
    with following() as importer:
        assert not known(importer, "t1")
        add(importer, "t1", "a2")  # pending
        assert [known(importer, n) for n in ("t1", "a2", "b2")] == [True, True, False]
        add(importer, "b2")
        assert known(importer, "b2")
        go(importer, "t1")
        assert known(importer, "a2")
    with following() as importer:
        assert known(importer, "b2")


def test_siblings_are_added_in_any_order() -> None:
    """The branch that is kept for a line of blocks is not used for another line."""
    with following() as importer:
        go(importer, "t1")
        add(importer, "a2")
        importer.follow(choice("t1"))
        add(importer, "b2", "a3", "c3", "b3", "a4", "c4", "d4", "b4", "e5", "b5")
        for head in ("d4", "e5", "c4", "b5"):
            importer.follow(choice(head))
            assert chains.audit_all("net") == tree()[head].number + 1
    assert_like_an_import("net", "b5", PARENTS)


def test_an_import_from_a_file_continues_a_followed_network() -> None:
    """A demoted child of the head becomes canonical again, by its height."""
    with following() as importer:
        go(importer, "b5")
        importer.follow(choice("b3"))
    chains.import_blocks("net", genesis(), [tree()["b4"].raw])
    assert chains.head("net") == (4, tree()["b4"].hash)
    assert_like_an_import("net", "b4", {"b5"})


@pytest.mark.parametrize("head", ["a3", "b2", "t1"])
def test_a_head_that_another_process_has_moved_is_noticed(head: str) -> None:
    network = Network.objects.filter(slug="net")
    with following() as importer:
        go(importer, "a2")
        add_line(importer, head)
        before = chains.rows("net")
        network.update(head_hash=bytes(32))
        with pytest.raises(HeadMoved):
            importer.follow(choice(head))
    network.update(head_hash=tree()["a2"].hash)
    assert chains.rows("net") == before


def test_old_side_blocks_are_deleted_with_what_follows_them() -> None:
    with following() as importer:
        add_line(importer, "c4")
        add_line(importer, "a4")
        add(importer, "e5")
        go(importer, "b5", safe="b4", finalized="b4")
        chains.let_minutes_pass()
        assert importer.delete_side_blocks(keep=2) == 0
        # a2 is below block 3, the others follow it.
        assert importer.delete_side_blocks(keep=1) == 6
        assert importer.delete_side_blocks(keep=1) == 0
        assert not any(known(importer, name) for name in ("a2", "a3", "c4", "e5"))
    assert_like_an_import("net", "b5")


def test_side_blocks_that_were_deleted_can_be_added_again() -> None:
    with following() as importer:
        add_line(importer, "a3")
        go(importer, "b5")
        chains.let_minutes_pass()
        assert importer.delete_side_blocks(keep=5) == 0
        assert importer.delete_side_blocks(keep=2) == 2
        add_line(importer, "e5")
        importer.follow(choice("e5"))
    assert_like_an_import("net", "e5", {"b2", "b3", "b4", "b5"})


def test_side_blocks_are_deleted_in_portions_from_their_ends() -> None:
    start = genesis()
    chain = ChainBuilder(start)
    chain.block()
    side = chain.fork()
    for _ in range(20):
        side.block(extra_data=b"side")
    for _ in range(3):
        chain.block()
    chains.import_blocks("net", start, chain.blocks)
    wanted = Forkchoice(chain.head.hash, None, None)
    chains.import_blocks("net", start, side.blocks, forkchoice=wanted)
    with following() as importer:
        assert importer.delete_side_blocks(keep=0) == 16
        left = Block.objects.filter(is_canonical=False).order_by("number")
        assert [block.number for block in left] == list(range(2, 6))
        assert importer.delete_side_blocks(keep=0) == 4
        assert importer.delete_side_blocks(keep=0) == 0
    assert Block.objects.count() == 5


def test_demoted_blocks_are_kept_while_filters_may_ask_for_their_logs() -> None:
    assert DEMOTED_SECONDS > EXPIRY_SECONDS
    with following() as importer:
        go(importer, "a4")
        go(importer, "b5")
        assert importer.delete_side_blocks(keep=0) == 0
        chains.let_minutes_pass()
        # A later reorganisation above them does not keep them.
        go(importer, "d4")
        assert importer.delete_side_blocks(keep=0) == 3
        assert known(importer, "b4")
    assert_like_an_import("net", "d4", {"b4", "b5"})


_heads = st.sampled_from(sorted(PARENTS))
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), _heads, st.none()),
        st.tuples(st.just("follow"), _heads, st.none()),
        st.tuples(st.just("follow"), _heads, st.sampled_from(["t1", "a2", "b2"])),
        st.tuples(st.just("restart"), st.just("t1"), st.none()),
    ),
    min_size=1,
    max_size=12,
)


@given(steps=_steps, batch_blocks=st.sampled_from([1, 2, 8]))
@settings(
    max_examples=15,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_after_any_moves_the_rows_are_those_of_the_head(
    steps: list[tuple[str, str, str | None]], batch_blocks: int
) -> None:
    slug = f"moves-{next(_slugs)}"
    head: Node | None = None
    followed, finalized, added = 0, 0, set[str]()
    with ExitStack() as stack:
        importer = stack.enter_context(following(slug, batch_blocks=batch_blocks))
        for step, name, final in steps:
            if step == "restart":
                importer.commit()
                stack.close()
                importer = stack.enter_context(
                    following(slug, batch_blocks=batch_blocks)
                )
                followed = head.number if head else 0
                continue
            node = tree()[name]
            for each in node.line:
                if each in added:
                    continue
                if common(head, tree()[each]) < finalized:
                    with pytest.raises(BelowFinalized):
                        importer.add(tree()[each].raw)
                    break
                importer.add(tree()[each].raw)
                added.add(each)
                if PARENTS[each] == (head.name if head else None):
                    head = tree()[each]
            if step == "add" or name not in added:
                continue
            assert head is not None
            shared = common(head, node)
            number = tree()[final].number if final else finalized
            forkchoice = choice(name, finalized=final)
            if node.name == head.name:
                shared = node.number
            if shared < finalized:
                with pytest.raises(BelowFinalized):
                    importer.follow(forkchoice)
            elif (final and final not in node.line) or number < finalized:
                with pytest.raises(ForkchoiceMismatch):
                    importer.follow(forkchoice)
            else:
                depth, rise = head.number - shared, node.number - shared
                if node.name == head.name:
                    rise = node.number - followed
                assert importer.follow(forkchoice) == Move.of(depth, rise)
                head, followed, finalized = node, node.number, number
        importer.commit()
    if head is not None:
        assert_like_an_import(slug, head.name, added)


def common(one: Node | None, other: Node) -> int:
    """Return the number of the newest block that two branches share."""
    if one is None:
        return 0
    return sum(a == b for a, b in zip(one.line, other.line, strict=False))
