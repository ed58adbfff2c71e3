"""`manage.py`: its output and exit status."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support import commands


@pytest.mark.parametrize("command", ["list_networks", "serve"])
def test_a_database_that_does_not_answer_is_one_line(command, tmp_path):
    environ = {
        "VAR_DIR": str(tmp_path),
        "PORT": "0",
        "DATABASE_URL": f"postgres://u:secret@/x?host={tmp_path}",
        "REDIS_URL": f"unix://{tmp_path}/redis.sock",
    }
    done = commands.run(command, environ=environ)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("manage.py: the database failed: connection ")
    assert len(done.stderr.splitlines()) == 1
    assert "secret" not in done.stderr


WRONG = {
    "HOST": "::1",
    "PORT": "65536",
    "WEB_CONCURRENCY": "0",
    "DATABASE_URL": "mysql://u:secret@db/name",
    "DATABASE_POOL": "-1",
    "REDIS_URL": "http://u:secret@cache",
    "DEFAULT_NETWORK": "main net",
    "FOLLOW": "maybe",
    "DRAIN_SECONDS": "-5",
    "WORKER_TIMEOUT_SECONDS": "soon",
    "PUBLIC_URL": "node.example.org",
    "HSTS_SECONDS": "-1",
    "ALLOWED_HOSTS": "https://node.example.org",
    "CSRF_TRUSTED_ORIGINS": "node.example.org",
    "FORWARDED_ALLOW_IPS": "proxy",
    "MAIL_URL": "mail.example.org",
    "MAIL_FROM": "support",
    "NODEAPI_REQUEST_TIMEOUT": "0",
    "NODEAPI_CACHE_BYTES": "1G",
    "METRICS_PORT": "-1",
    "METRICS_HOST": "localhost",
    "LOG_LEVEL": "verbose",
    "LOG_FORMAT": "xml",
    "REQUEST_LOG": "some",
}


def manage(command, environ):
    """Run a command in a new Python."""
    return subprocess.run(
        [sys.executable, "manage.py", *command.split()],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", ["check", "serve", "web", "list_networks"])
def test_each_wrong_setting_is_one_line_with_its_name(command, tmp_path):
    done = manage(command, {"VAR_DIR": str(tmp_path), **WRONG})
    assert done.returncode == 1
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert [line.split(" must ")[0] for line in lines] == [
        f"manage.py: {name}" for name in WRONG
    ]
    assert "secret" not in done.stderr


@pytest.mark.parametrize(
    ("environ", "line"),
    [
        (
            {"METRICS_PORT": "9100", "METRICS_HOST": "0.0.0.0"},
            "METRICS_TOKEN must be set, because METRICS_HOST 0.0.0.0 is not a "
            "loopback address",
        ),
        (
            {"VAR_DIR": "/dev/null/var"},
            "VAR_DIR /dev/null/var can't be created: Not a directory",
        ),
        (
            {"VAR_DIR": "manage.py"},
            f"VAR_DIR {Path('manage.py').resolve()} can't be created: File exists",
        ),
    ],
)
def test_settings_that_do_not_fit_are_one_line(environ, line, tmp_path):
    done = manage("check", {"VAR_DIR": str(tmp_path), "METRICS_TOKEN": "", **environ})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [f"manage.py: {line}"]


def test_host_of_another_machine_is_one_line(tmp_path):
    environ = {"VAR_DIR": str(tmp_path), "HOST": "192.0.2.1", "PORT": "0"}
    done = commands.run("web", environ=environ)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "CommandError: HOST 192.0.2.1 is not an address of this machine"
    )


def test_check_warns_of_a_misspelt_setting(tmp_path):
    environ = {"VAR_DIR": str(tmp_path), "NODEAPI_MAX_LOG": "5"}
    done = commands.run("check", environ=environ)
    assert done.returncode == 0
    assert (
        "(config.W001) NODEAPI_MAX_LOG is not a setting. Do you mean NODEAPI_MAX_LOGS?"
    ) in done.stderr


def test_help_lists_the_commands_of_the_project_first(tmp_path):
    done = commands.run("help", environ={"VAR_DIR": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    ours, _, others = done.stdout.partition("Commands of Django and of other packages:")
    listed = re.findall(r"^  (\w+) +(\S.*)$", ours, re.MULTILINE)
    modules = [
        path
        for path in Path().glob("*/management/commands/*.py")
        if path.stem != "__init__"
    ]
    assert [name for name, _ in listed] == sorted(path.stem for path in modules)
    sentences = re.sub(r"\n {10,}", " ", ours)
    for line in re.findall(r"^  \w+ +(\S.*)$", sentences, re.MULTILINE):
        assert re.fullmatch(r"[A-Z`].*\.", line)
    assert "migrate" in others
    assert "flush_chains" not in others
    assert max(map(len, done.stdout.splitlines())) <= 100


SLOW = {
    *(
        "evm.rules.forks",
        "evm.blocks",
        "evm.transactions",
        "coincurve",
        "eth_utils",
        "pydantic",
    ),
    *("rest_framework.views", "rest_framework.schemas"),
    *(
        "uvicorn",
        "websockets",
        "httpx",
        "prometheus_client",
        "config.urls",
        "config.asgi",
    ),
    *(
        "nodeapi.methods",
        "nodeapi.tracing",
        "wallets.methods",
        "keys.admin",
        "explorer.views",
    ),
}
"""Modules that a command which only reads the database must not load."""


def test_commands_start_without_what_serves_and_executes(tmp_path):
    program = (
        "import django, json, sys; django.setup(); print(json.dumps([*sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "VAR_DIR": str(tmp_path),
            "DJANGO_SETTINGS_MODULE": "config.settings",
        },
        stdout=subprocess.PIPE,
        check=True,
    )
    assert set(json.loads(done.stdout)) & SLOW == set()
    assert all(map(find_spec, SLOW))
