"""The example calls that customers copy, in the clients that npm installs."""

from __future__ import annotations

import os
import subprocess

import pytest

from keys.dashboard.snippets import VARIABLE, snippets
from tests.clients.conftest import Desk
from tests.clients.programs import CAST, FOLDER, SECONDS

NODE = ["node", "--input-type=module", "--eval"]
COMMANDS = {"viem": NODE, "ethers": NODE, "cast": ["sh", "-c"]}
PRINTED = {"viem": "2n\n", "ethers": "2\n", "cast": "2\n"}


@pytest.mark.parametrize("is_written_out", [False, True])
@pytest.mark.parametrize("name", COMMANDS)
def test_snippet_prints_the_newest_block(
    desk: Desk, request: pytest.FixtureRequest, name: str, is_written_out: bool
) -> None:
    if name == "cast":
        request.getfixturevalue(name)
    key = desk.keys["plain"]
    base = f"{desk.live.base_url}/alpha/v3"
    shown = snippets(base, key if is_written_out else "")
    text = next(snippet.text for snippet in shown if snippet.name == name)
    path = f"{CAST.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [*COMMANDS[name], text],
        cwd=FOLDER,
        env={**os.environ, VARIABLE: key, "PATH": path},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.stderr, done.stdout) == ("", PRINTED[name])
