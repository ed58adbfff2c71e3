"""Sockets on a server whose application is behind middleware of other packages.

The middleware replaces `send`. The tests of sockets without middleware run here as well, such as those of limits, close
codes, rejected handshakes and clients that do not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from samples.builder import ChainBuilder
from tests.support.coroutines import scenario
from tests.support.dapps import Owner
from tests.support.live import Live, live_service
from tests.wallets import test_inbox_socket as inbox
from tests.wallets import test_socket_events as events
from tests.wallets import test_sockets as sockets
from wallets import internal_key

builder = events.builder
visitor = inbox.visitor


@pytest.fixture(scope="module")
def live(builder: ChainBuilder) -> Iterator[Live]:
    internal_key.ensure()
    wrapped = "tests.support.behind_middleware:application"
    with live_service(workers=2, application=wrapped) as live:
        yield live


@scenario
async def test_every_frame_passes_the_middleware(owner: Owner) -> None:
    async with owner.raw() as socket:
        for number in range(3):
            await socket.send(json.dumps(sockets.get_session(number)))
            assert str(await socket.recv()).endswith("}\n")


test_statuses = sockets.test_a_socket_opens_for_a_good_token_and_for_nothing_else
test_most_sockets = (
    sockets.test_a_dapp_has_no_more_sockets_than_allowed_over_all_processes
)
test_bad_frames = sockets.test_frames_that_are_no_text_or_too_long_close_the_socket
test_flood = sockets.test_a_flood_is_refused_and_ends_with_the_socket
test_calls = sockets.test_a_session_is_asked_for_used_and_revoked
test_withdrawal = sockets.test_a_request_is_withdrawn_when_its_socket_goes
test_revocation = sockets.test_a_disconnected_dapp_loses_its_sockets_in_all_processes
test_no_reader = (
    sockets.test_a_client_that_does_not_read_is_disconnected_and_delays_no_others
)

test_changes = events.test_the_last_event_has_the_current_session_after_fast_changes
test_heads = events.test_every_block_is_sent_in_order_on_every_socket

test_origins = inbox.test_it_opens_to_the_sites_own_page_alone
test_logins = inbox.test_it_opens_to_logged_in_users_only
test_inboxes = inbox.test_every_open_inbox_of_every_process_gets_the_event
test_ended_logins = inbox.test_it_is_closed_when_its_log_in_is_over
test_speakers = inbox.test_socket_that_sends_is_closed
