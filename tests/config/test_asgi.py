"""The whole ASGI application: the endpoint and the pages."""

from __future__ import annotations

import subprocess
import sys

import pytest

from config.database_url import parse_database_url
from keys.models import User
from keys.services import issue_key
from networks.models import Network
from tests.support import web
from tests.support.service import run_service, test_database_url


def test_processes_that_serve_do_not_load_the_evm():
    """The EVM raises Python's recursion limit. Nested JSON could then crash a worker."""
    script = "import sys, config.asgi; print('evm.message_call' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert done.stdout == "False\n", done.stderr


@pytest.mark.django_db
def test_served_processes_get_the_address_of_the_test_database(settings):
    parsed = parse_database_url(test_database_url())
    ours = settings.DATABASES["default"]
    assert parsed["NAME"] == ours["NAME"]
    assert parsed["HOST"] == ours["HOST"]
    assert parsed["USER"] == ours["USER"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_test_commits_is_what_its_service_answers(workers):
    Network.objects.create(
        slug="hive", name="Hive", chain_id=3503, genesis={}, genesis_hash=b"\0" * 32
    )
    owner = User.objects.create_user("mail@example.org")
    key = issue_key(owner=owner, name="test").secret
    body = {"jsonrpc": "2.0", "id": 7, "method": "eth_chainId", "params": []}
    with run_service(workers) as running:
        for base in (running.base_url, f"{running.base_url}/hive"):
            answer = web.post(f"{base}/v3/{key}", json=body)
            assert answer.json() == {"jsonrpc": "2.0", "id": 7, "result": "0xdaf"}


def test_pages_and_their_style_come_from_the_same_process(service):
    with web.Client(base_url=service.base_url) as client:
        page = client.get("/admin/login/")
        assert page.status_code == 200
        assert "Log in" in page.text
        style = client.get("/static/admin/css/base.css")
        assert style.headers["content-type"].startswith("text/css")


def test_an_unknown_path_is_a_page_that_is_not_there(service):
    assert web.get(f"{service.base_url}/nowhere").status_code == 404
    assert web.get(f"{service.base_url}/v33/key").status_code == 404


def test_a_websocket_is_not_opened(service):
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    answer = web.get(f"{service.base_url}/socket", headers=upgrade)
    # Because uvicorn's library for it is installed.
    assert answer.status_code in {400, 403, 404}
