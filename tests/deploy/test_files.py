"""Dockerfile, compose.yaml, nginx.conf and the systemd units match the code, and run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from config.limits import read_limits
from config.management import followers
from jsonrpc.errors import (
    BodyTooLarge,
    RpcError,
    ServiceUnavailable,
    TooManyConnections,
)
from server.time_limits import KEEP_ALIVE_SECONDS
from server.websocket import PING_SECONDS
from server.worker import GRACE_SECONDS
from tests.support import commands, web
from tests.support.ports import free_port, is_listening
from tests.support.waiting import wait_until
from tests.test_docs import environment_variables

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("portcullis*"))
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
OURS = {
    name: service
    for name, service in COMPOSE["services"].items()
    if service["image"] == "portcullis"
}
GIVEN = {
    "POSTGRES_PASSWORD": "p-0",
    "SECRET_KEY": "r7Gq2vXw9Lk4Tn8Zb1Yc6Hd3Jf5Ms0PpQuEeAaVvWwXxYyZzAb3-",
    "SITE": "node.example.org",
}
"""Variables that a site has to set for compose."""


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions."""
    text = (ROOT / "Dockerfile").read_text()
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", "")
    lines = [line for line in text.splitlines() if line.strip()]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def instructions_text() -> str:
    """Return the Dockerfile's instructions as one text."""
    return "\n".join(" ".join(one) for one in instructions())


def instruction(kind: str) -> str:
    """Return the last instruction of a kind."""
    return [rest for name, rest in instructions() if name == kind][-1]


def image_environment() -> dict[str, str]:
    found = dict(word.split("=", 1) for word in shlex.split(instruction("ENV")))
    return {name: value for name, value in found.items() if name != "PATH"}


def filled(value: Any) -> str:
    """Return a value of compose.yaml with a site's variables filled in."""

    def fill(match: re.Match[str]) -> str:
        name, kind, default = match.groups()
        return GIVEN[name] if kind == "?" else GIVEN.get(name, default)

    return re.sub(r"\$\{([A-Z_]+):([?-])([^}]*)\}", fill, str(value))


def environment(service: str) -> dict[str, str]:
    given = OURS[service]["environment"]
    return {name: filled(value) for name, value in given.items()}


def command_names() -> set[str]:
    found = {path.stem for path in ROOT.glob("*/management/commands/*.py")}
    return found | {"migrate"}


def test_image_holds_every_package_and_neither_tests_nor_secrets() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    admitted = {line[1:] for line in lines if line.startswith("!")}
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages - {"tests", "bench"} <= admitted
    assert not admitted & {"tests", "bench", "var", ".env", ".git", ".venv", "deploy"}
    assert all((ROOT / name).exists() for name in admitted)
    assert lines.index("*") < lines.index("!config")


def test_image_runs_as_an_unprivileged_user_on_a_supported_python() -> None:
    (number,) = re.findall(r"useradd --uid (\d+)", instructions_text())
    assert instruction("USER") == number
    bases = [rest.split()[0] for name, rest in instructions() if name == "FROM"]
    assert {base.partition("-")[0] for base in bases} == {"python:3.11"}
    names = set(image_environment()) - {"PYTHONUNBUFFERED"}
    assert names <= environment_variables()


def test_commands_of_the_image_make_and_run_a_service(tmp_path: Path) -> None:
    """All instructions of the Dockerfile except installations run in an empty folder."""
    context, port = tmp_path / "image", free_port()
    copy_context(context)
    environ = {
        **image_environment(),
        **{
            "VAR_DIR": str(tmp_path / "var"),
            "PORT": str(port),
            "HOST": "127.0.0.1",
        },
        **{"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    }
    subprocess.run(
        ["sh", "-ec", instruction("RUN")], cwd=context, env=environ, check=True
    )
    assert (tmp_path / "var" / "static" / "admin").is_dir()
    assert not (tmp_path / "var" / "secret_key").exists()
    healthcheck = json.loads("[" + instruction("HEALTHCHECK").partition("[")[2])
    start = [*json.loads(instruction("ENTRYPOINT")), *json.loads(instruction("CMD"))]
    nowhere = {
        "DATABASE_URL": "postgres://127.0.0.1:9/none",
        "REDIS_URL": "redis://127.0.0.1:9/0",
        "SECRET_KEY": GIVEN["SECRET_KEY"],
    }

    def is_healthy() -> bool:
        done = subprocess.run(healthcheck, env=environ, capture_output=True)
        return done.returncode == 0

    assert not is_healthy()
    with subprocess.Popen(start, cwd=context, env={**environ, **nowhere}) as service:
        wait_until(lambda: service.poll() is not None or is_listening(port))
        wait_until(lambda: service.poll() is not None or is_healthy())
        assert service.poll() is None
        # The page shows a file, which it reads.
        shown = web.get(f"http://127.0.0.1:{port}/docs/changelog")
        assert shown.status_code == 200
        service.terminate()
        assert service.wait(timeout=60) == 0


def copy_context(folder: Path) -> None:
    """Copy the files that .dockerignore does not exclude."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    left_out = [line.removeprefix("**/") for line in lines if line.startswith("**/")]

    def ignore(_: str, names: list[str]) -> set[str]:
        return {n for n in names if any(fnmatch(n, pattern) for pattern in left_out)}

    folder.mkdir()
    for line in lines:
        source = ROOT / line[1:]
        if line.startswith("!") and source.is_dir():
            shutil.copytree(source, folder / source.name, ignore=ignore)
        elif line.startswith("!"):
            shutil.copy(source, folder)


@pytest.mark.parametrize("service", OURS)
def test_compose_sets_nothing_but_settings_and_runs_nothing_but_commands(
    service: str,
) -> None:
    names = set(environment(service))
    assert names <= environment_variables()
    told = [*OURS[service].get("entrypoint", []), *OURS[service].get("command", [])]
    words = set(shlex.split(" ".join(told).replace(";", " ")))
    assert service == "web" or words & command_names()


def test_compose_is_ready_for_production() -> None:
    check = ("check", "--deploy", "--fail-level", "WARNING")
    done = commands.run(*check, environ=environment("web"))
    assert done.returncode == 0, done.stderr


def test_compose_asks_for_the_health_of_what_serves_pages_alone() -> None:
    """The image's health check would always fail in a service without a port."""
    asked = {name for name, service in OURS.items() if service["healthcheck"] == {}}
    assert asked == {"web"}
    left = [OURS[name]["healthcheck"] for name in OURS if name not in asked]
    assert left == [{"disable": True}] * (len(OURS) - 1)


def test_compose_has_web_trust_the_proxy_and_no_other() -> None:
    place = COMPOSE["services"]["proxy"]["networks"]["front"]["ipv4_address"]
    (network,) = COMPOSE["networks"]["front"]["ipam"]["config"]
    assert ip_address(place) in ip_network(network["subnet"])
    # Otherwise `web`, if started first, could get this address.
    assert ip_address(place) not in ip_network(network["ip_range"])
    assert environment("web")["FORWARDED_ALLOW_IPS"] == place
    assert all("ports" not in COMPOSE["services"][name] for name in (*OURS, "database"))


def test_compose_has_a_proxy_that_stays_while_web_is_replaced() -> None:
    """Compose also restarts services that depend on a replaced one, which drops clients."""
    proxy = COMPOSE["services"]["proxy"]
    assert "depends_on" not in proxy
    upstream = proxy["environment"]["PORTCULLIS_UPSTREAM"]
    assert re.search(
        r"resolver 127\.0\.0\.11 valid=1s .*server web:8000 resolve ", upstream
    )
    (zone,) = re.findall(r"zone (\w+) ", upstream)
    assert f"shared:{zone}:" not in nginx_conf()  # names of zones are global


def test_workers_have_the_time_to_leave() -> None:
    needed = int(environment("web")["DRAIN_SECONDS"]) + GRACE_SECONDS + 2
    assert int(OURS["web"]["stop_grace_period"].removesuffix("s")) > needed
    unit = (ROOT / "deploy/systemd/portcullis-web@.service").read_text()
    assert int(re.findall(r"TimeoutStopSec=(\d+)", unit)[0]) > needed


def test_followers_have_the_time_to_leave() -> None:
    grace = int(OURS["follow"]["stop_grace_period"].removesuffix("s"))
    unit = (ROOT / "deploy/systemd/portcullis-follow.service").read_text()
    assert int(re.findall(r"TimeoutStopSec=(\d+)", unit)[0]) == grace
    assert grace > followers.STOP_SECONDS


def nginx_conf() -> str:
    return (ROOT / "deploy" / "nginx.conf").read_text()


def test_nginx_waits_longer_than_the_service_and_lets_in_as_much() -> None:
    bodies = re.findall(r"client_max_body_size (\d+);", nginx_conf())
    assert {int(body) for body in bodies} == {settings.NODEAPI_MAX_BODY_BYTES}
    waits = map(int, re.findall(r"proxy_read_timeout (\d+)s;", nginx_conf()))
    (node_sockets, traces, long, sockets, _) = waits
    assert traces == long > settings.NODEAPI_SLOW_REQUEST_TIMEOUT
    assert node_sockets == sockets > 2 * PING_SECONDS
    (idle,) = re.findall(r"^    keepalive_timeout (\d+)s;\n}", nginx_conf(), re.M)
    assert int(idle) < KEEP_ALIVE_SECONDS


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("413", BodyTooLarge(settings.NODEAPI_MAX_BODY_BYTES)),
        ("429", TooManyConnections("address")),
        ("503", ServiceUnavailable()),
    ],
)
def test_nginx_refuses_in_our_own_words(status: str, error: RpcError) -> None:
    (told,) = re.findall(rf"return {status} '(.*)';", nginx_conf())
    document = json.loads(told)
    data = error.linked_data("https://$server_name")
    said = {"code": error.code, "message": error.message, "data": data}
    assert document == {"jsonrpc": "2.0", "id": None, "error": said}


def test_nginx_limits_connections_as_the_service_does() -> None:
    (most,) = re.findall(r"limit_conn portcullis_address (\d+);", nginx_conf())
    assert int(most) == read_limits().per_address


def test_nginx_logs_where_systemd_lets_it() -> None:
    """The output of a systemd unit is a socket, which can't be opened as /dev/stdout.

    In nginx' image, these two files are links to its output.
    """
    logs = set(re.findall(r"(?:access|error)_log (/\S+)", nginx_conf()))
    assert logs == {"/var/log/nginx/access.log", "/var/log/nginx/error.log"}


def test_units_and_commands_beside_them_write_to_the_same_folder() -> None:
    folder = ROOT / "deploy" / "systemd"
    (var,) = re.findall(r"^VAR_DIR=(.+)", (folder / "portcullis.env").read_text(), re.M)
    for name in (path.name for path in UNITS if path.suffix == ".service"):
        unit = (folder / name).read_text()
        (state,) = re.findall(r"^StateDirectory=(.+)", unit, re.M)
        assert var == f"/var/lib/{state}"
        assert "VAR_DIR" not in unit


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_units_name_settings_and_commands_that_exist(unit: Path) -> None:
    text = unit.read_text()
    pattern = r"^([A-Z_]+)=" if unit.suffix == ".env" else r"[= ]([A-Z_]{3,})="
    assert set(re.findall(pattern, text, re.M)) <= environment_variables() | {"TMPDIR"}
    named = set(re.findall(r"manage\.py (\w+)", text))
    named |= set(re.findall(r"portcullis@(\w+)", text))
    assert named <= command_names()


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd here"
)
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    for unit in UNITS:
        text = unit.read_text().replace("/srv/portcullis/.venv/bin/python", "/bin/sh")
        (tmp_path / unit.name.replace("@.", "@8001.")).write_text(text)
    names = [str(path) for path in tmp_path.iterdir() if path.suffix != ".env"]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names],
        capture_output=True,
        text=True,
    )
    complaints = [line for line in done.stderr.splitlines() if str(tmp_path) in line]
    assert complaints == []


def deploy_md() -> str:
    return (ROOT / "docs" / "deploy.md").read_text()


def steps_of_an_upgrade() -> tuple[list[str], list[str]]:
    """Return the commands in docs/upgrading.md, for systemd and for compose."""
    text = (ROOT / "docs" / "upgrading.md").read_text()
    section = text.partition("\n## Every upgrade\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    systemd, compose = ([expanded(x) for x in b.splitlines()] for b in blocks)
    return systemd, compose


def expanded(line: str) -> str:
    """Return a line as the shell reads it: `a{b,c}` is `ab ac`."""
    return subprocess.run(
        ["bash", "-c", f"echo {line.partition(';')[0]}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_upgrade_with_compose_migrates_while_no_other_command_runs() -> None:
    _, steps = steps_of_an_upgrade()
    migration = steps.index("docker compose run --rm migrate")
    kept = {n for n, service in OURS.items() if service["restart"] != "no"} - {"web"}
    assert kept == {"follow", "hourly"}
    (stop,) = [step for step in steps[:migration] if "stop" in step]
    assert set(stop.removeprefix("docker compose stop ").split()) == kept
    (up,) = steps[migration + 1 :]
    assert set(up.partition("--no-deps")[2].split()) == {"web", *kept}


def test_upgrade_with_systemd_migrates_while_no_other_command_runs() -> None:
    enabled = re.findall(r"^systemctl enable .*", deploy_md(), re.M)
    installs = " ".join(map(expanded, enabled))
    timers = {word for word in installs.split() if word.endswith(".timer")}
    jobs = {timer.removesuffix(".timer") for timer in timers}
    assert len(timers) == 2
    steps, _ = steps_of_an_upgrade()
    migration = steps.index("systemctl start portcullis@migrate")
    # Stopping a timer does not stop the job that it has started.
    (stop,) = steps[:migration]
    kept = {"portcullis-follow"}
    assert kept < set(installs.split())
    assert set(stop.removeprefix("systemctl stop ").split()) == timers | jobs | kept
    assert set(steps[-1].removeprefix("systemctl start ").split()) == timers | kept
    web = {word for word in installs.split() if word.startswith("portcullis-web@")}
    restarted = {s.split()[-1] for s in steps if s.startswith("systemctl restart ")}
    assert restarted == web
