"""The examples on pages run when they are pasted into a shell or into Python."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape

import pytest
from django.test import Client

from keys.dashboard.snippets import VARIABLE, export_line, snippets
from keys.models import User
from keys.services import create_key
from tests.keys.dashboard.conftest import shown_secret
from tests.support import web
from tests.support.live import live_service
from tests.support.rows import add_block, make_network, set_head

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")


@pytest.fixture
def shown(transactional_db: None):
    """Return the pages of a key on a running service, and the key."""
    network = make_network("alpha")
    add_block(network, "head", 7)
    set_head(network, "head", 7)
    user = User.objects.create_user("customer@example.org")
    key = create_key(owner=user, name="First")
    client = Client()
    client.force_login(user)
    with live_service() as live:
        host = live.base_url.removeprefix("http://")
        path = f"/dashboard/keys/{key.pk}"
        revealed = client.post(f"{path}/reveal", HTTP_HOST=host)
        secret = shown_secret(revealed)
        live.secrets.append(secret)
        connect = client.get(f"{path}/connect", HTTP_HOST=host)
        yield texts(revealed), texts(connect), secret


def texts(answer) -> list[str]:
    """Return the texts of a page that have a copy button."""
    found = re.findall(
        r"<pre[^>]*data-copy[^>]*>(.*?)</pre>", answer.content.decode(), re.S
    )
    return [unescape(text) for text in found]


def run(command: list[str], **env: str) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_curl
def test_call_of_the_page_that_reveals_works(shown) -> None:
    revealed, _, secret = shown
    call = next(text for text in revealed if text.startswith("curl"))
    assert secret in call
    assert json.loads(run(["sh", "-c", call]))["result"] == "0x7"


@needs_curl
def test_examples_work_with_the_line_that_is_shown(shown) -> None:
    revealed, connect, secret = shown
    line = next(text for text in revealed if text.startswith("export"))
    call = next(text for text in connect if text.startswith("curl"))
    assert secret not in call
    answer = run(["sh", "-c", f"{line}\n{call}"])
    assert json.loads(answer)["result"] == "0x7"
    (program,) = (text for text in connect if "from web3" in text)
    assert run([sys.executable, "-c", program], **{VARIABLE: secret}) == "7\n"
    base = connect[0]
    body = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
    headers = {"Authorization": f"Bearer {secret}"}
    assert web.post(base, json=body, headers=headers).json()["result"] == "0x7"


def test_examples_are_the_same_call_with_the_key_or_with_the_variable() -> None:
    base, key = "https://rpc.example.org/main/v3", "nk_x"
    with_key, with_variable = snippets(base, key), snippets(base)
    assert [one.name for one in with_key] == [one.name for one in with_variable]
    for one in with_key:
        assert f"{base}/{key}" in one.text
    for one in with_variable:
        assert VARIABLE in one.text
    assert export_line(key) == f"export {VARIABLE}={key}"
