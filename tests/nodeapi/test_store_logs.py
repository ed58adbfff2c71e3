"""The cache of searches for logs in a block."""

from __future__ import annotations

import gc
import weakref

import pytest

from nodeapi.logs.filter import LogFilter
from tests.support import chains
from tests.support.log_filters import UNKNOWN_ADDRESS
from tests.support.serving import serving
from tests.support.tokens import GENESIS, Tokens

pytestmark = pytest.mark.django_db(transaction=True)


class Addresses(frozenset[str]):
    """A set to which weak references are possible."""


def test_cached_logs_do_not_keep_the_filter_in_memory() -> None:
    tokens = Tokens()
    (block,) = tokens.grow(tokens.chain, 1, amount=5)
    chains.import_blocks("net", GENESIS, tokens.chain.blocks)
    token = "0x" + tokens.token.hex()
    with serving() as running:
        store = running.service.store
        (network,) = running.service.directory.all()
        where = network.id, bytes(block.header.hash)
        addresses = Addresses([token])
        found = running.ask(store.logs_of_block, *where, LogFilter(addresses, ()))
        assert found.count(b'"removed":false') == 2
        kept = weakref.ref(addresses)
        del addresses
        gc.collect()
        assert kept() is None
        equal = LogFilter(frozenset({token}), ())
        assert running.at_once(store.logs_of_block, *where, equal) == found
        other = LogFilter(frozenset({UNKNOWN_ADDRESS}), ())
        assert running.at_once(store.logs_of_block, *where, other) == b"[]"


def test_different_filters_have_different_digests() -> None:
    values = ["0x" + digit * 40 for digit in "12"]
    one, two = (frozenset({value}) for value in values)
    filters = [
        LogFilter(None, ()),
        LogFilter(None, (None,)),
        LogFilter(None, (None, None)),
        LogFilter(one, ()),
        LogFilter(two, ()),
        LogFilter(one | two, ()),
        LogFilter(None, (one,)),
        LogFilter(None, (None, one)),
        LogFilter(None, (one, two)),
        LogFilter(None, (one | two,)),
        LogFilter(one, (two,)),
    ]
    assert len({each.digest() for each in filters}) == len(filters)
    assert LogFilter(frozenset(reversed(values)), ()).digest() == filters[5].digest()
