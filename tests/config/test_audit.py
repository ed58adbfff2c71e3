"""`make audit` with the real pip-audit, against a service on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from config import audit
from tests.support.ports import free_port
from tests.support.sites import running_site

PACKAGES = [
    {"name": "fine", "version": "1.0", "vulns": []},
    {"name": "private", "skip_reason": "not found"},
    {
        "name": "leaky",
        "version": "2.0",
        "vulns": [
            {"id": "PYSEC-2026-1", "fix_versions": ["2.1", "3.0"]},
            {"id": "PYSEC-2026-2", "fix_versions": []},
        ],
    },
]

LEAK = {
    "id": "PYSEC-2026-1",
    "affected": [
        {
            "package": {"name": "leaky", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"fixed": "2.1"}]}],
        }
    ],
}


class Service(BaseHTTPRequestHandler):
    """Answers queries of the OSV API."""

    def __init__(self, *args: Any, status: HTTPStatus, flaws: dict[str, Any]) -> None:
        self.status, self.flaws = status, flaws
        super().__init__(*args)

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        flaw = self.flaws.get(query["package"]["name"])
        body = json.dumps({"vulns": [flaw]} if flaw else {}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def ask_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[int], None]]:
    """Return a function that runs pip-audit against a port, with two pins."""
    pins = ("fine==1.0", "leaky==2.0")
    (tmp_path / "requirements-dev.txt").write_text(
        "".join(f"{pin} --hash=sha256:{'0' * 64}\n" for pin in pins)
    )
    monkeypatch.setattr(audit, "ROOT", tmp_path)
    monkeypatch.setenv("PIP_AUDIT_VULNERABILITY_SERVICE", "osv")
    yield lambda port: monkeypatch.setenv(
        "PIP_AUDIT_OSV_URL", f"http://127.0.0.1:{port}"
    )


def service(status: HTTPStatus = HTTPStatus.OK, **flaws: Any) -> Callable[..., Service]:
    return partial(Service, status=status, flaws=flaws)


def test_each_vulnerability_is_named_with_its_remedy():
    lines, known, unknown = audit.report(PACKAGES)
    assert lines == [
        "leaky==2.0: PYSEC-2026-1, fixed in 2.1, 3.0",
        "leaky==2.0: PYSEC-2026-2, fixed in no version yet",
    ]
    assert (known, unknown) == (2, 1)


@pytest.mark.parametrize("arguments", [[], ["--optional"]])
def test_a_vulnerable_pin_fails_the_check(ask_service, arguments, capsys):
    with running_site(service(leaky=LEAK)) as port:
        ask_service(port)
        assert audit.main(arguments) == 1
    assert capsys.readouterr().out.splitlines() == [
        "leaky==2.0: PYSEC-2026-1, fixed in 2.1",
        "audit: 1 known vulnerabilities in 2 pins",
    ]


def test_pins_without_known_vulnerabilities_pass(ask_service, capsys):
    with running_site(service()) as port:
        ask_service(port)
        assert audit.main([]) == 0
    assert capsys.readouterr().out == "audit: 0 known vulnerabilities in 2 pins\n"


def check_failure(capsys: pytest.CaptureFixture[str], reason: str) -> None:
    """Run the audit twice, and expect an error, or a warning if it is optional."""
    assert audit.main([]) == audit.NOT_AUDITED != 0
    message = capsys.readouterr().err
    assert message.startswith("audit: ERROR: no pinned version was checked")
    assert reason in message
    assert audit.main(["--optional"]) == 0
    message = capsys.readouterr().err
    assert message.startswith("audit: WARNING: no pinned version was checked")
    assert reason in message


def test_a_service_that_refuses_connections_is_an_error(ask_service, capsys):
    ask_service(free_port())
    check_failure(capsys, "Connection refused")


def test_a_service_that_fails_is_an_error(ask_service, capsys):
    with running_site(service(HTTPStatus.SERVICE_UNAVAILABLE)) as port:
        ask_service(port)
        check_failure(capsys, "503")


def test_a_service_that_knows_no_package_is_an_error(monkeypatch, capsys):
    unknown = [{"name": "fine", "skip_reason": "not found"}]
    monkeypatch.setattr(audit, "ask", lambda requirements: unknown)
    check_failure(capsys, "knows none of the pinned packages")
