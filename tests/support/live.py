"""A running service with real processes and keys, whose log is checked."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from keys.format import digest
from keys.models import ApiKey
from keys.services import get_or_create_customer, issue_key
from server.supervisor import Server
from tests.support import web
from tests.support.service import run_service

JSON_HEADERS = {"content-type": "application/json"}
BATCH_CALLS = 500

# httpx logs each request, which would be thousands of lines in a failure's report.
logging.getLogger("httpx").setLevel(logging.WARNING)


class Api:
    """Calls to one base address, over connections that are kept.

    path: `/v3/<key>` or `/<network>/v3/<key>`.
    """

    def __init__(self, base_url: str, path: str, **headers: str) -> None:
        self._client = web.Client(
            base_url=base_url,
            headers={**JSON_HEADERS, **headers},
            limits=httpx.Limits(max_keepalive_connections=64),
        )
        self._path = path
        self.worker = ""
        """The worker that sent the last response, from its request id."""

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def post(self, body: bytes | Iterable[bytes], **headers: str) -> httpx.Response:
        """Send a body unchanged."""
        response = self._client.post(self._path, content=body, headers=headers)
        self.worker = response.headers.get("x-request-id", "").partition("-")[0]
        return response

    def send(self, message: Any, **headers: str) -> httpx.Response:
        """Send JSON."""
        return self.post(json.dumps(message).encode(), **headers)

    def stream(self, message: Any) -> AbstractContextManager[httpx.Response]:
        """Send JSON, and return a context manager whose value is the response."""
        return self._client.stream("POST", self._path, content=json.dumps(message))

    def ask(self, method: str, *params: Any) -> dict[str, Any]:
        """Make one call, and return the response, which may be an error."""
        response = self.send(request(method, *params))
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def result(self, method: str, *params: Any) -> Any:
        """Make one call that must succeed, and return its result."""
        answer = self.ask(method, *params)
        assert "error" not in answer, answer
        return answer["result"]

    def error(self, method: str, *params: Any) -> tuple[int, str]:
        """Make one call that must fail; returns code and message."""
        answer = self.ask(method, *params)
        assert "result" not in answer, answer
        assert set(answer["error"]) == {"code", "message"}, answer
        return answer["error"]["code"], answer["error"]["message"]

    def results(self, calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Make calls that must succeed, in batches."""
        answers = self.batch(calls)
        failed = [answer for answer in answers if "result" not in answer]
        assert not failed, failed[:3]
        return [answer["result"] for answer in answers]

    def batch(self, calls: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
        """Make calls in batches. Return their results or errors, in the same order."""
        messages = [
            {**request(*call), "id": number} for number, call in enumerate(calls)
        ]
        answers: list[dict[str, Any]] = []
        for start in range(0, len(messages), BATCH_CALLS):
            some = messages[start : start + BATCH_CALLS]
            # JavaScript tracers are given the text of their configuration.
            body = json.dumps(some, separators=(",", ":"))
            answers += self.post(body.encode()).json()
        assert [answer.pop("id") for answer in answers] == list(range(len(messages)))
        assert all(answer.pop("jsonrpc") == "2.0" for answer in answers)
        return answers


def request(method: str, *params: Any) -> dict[str, Any]:
    """Return a request object."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}


class Live:
    """A running service, the keys created for it, and its log."""

    def __init__(self, server: Server, log_file: Path) -> None:
        self.server = server
        self.base_url = server.base_url
        self.secrets: list[str] = []
        self._log_file = log_file

    def new_key(self, **options: Any) -> str:
        """Issue a key; see `issue_key`."""
        owner = get_or_create_customer(email="owner@example.org")
        secret = issue_key(owner=owner, **options).secret
        self.secrets.append(secret)
        return secret

    def api(self, network: str = "", key: str = "", **headers: str) -> Api:
        """Return a client with a new key for a network; default: the default network."""
        prefix = f"/{network}" if network else ""
        return Api(self.base_url, f"{prefix}/v3/{key or self.new_key()}", **headers)

    @contextmanager
    def each_worker(self, network: str, key: str) -> Iterator[list[Api]]:
        """Yield a connection to each worker process."""
        with ExitStack() as stack:
            found: dict[str, Api] = {}
            for _ in range(200):
                api = stack.enter_context(self.api(network, key))
                # A request with an invalid X-Request-Id gets one from the worker.
                api.send(request("eth_chainId"), **{"x-request-id": "?"})
                found.setdefault(api.worker, api)
                if len(found) == len(self.server.pids):
                    break
            assert len(found) == len(self.server.pids)
            yield [found[worker] for worker in sorted(found)]

    def log(self) -> str:
        """Return the log of the service's processes so far."""
        return self._log_file.read_text(errors="replace")

    def check_log(self) -> None:
        """Check that the log contains no API keys."""
        log = self.log()
        for secret in self.secrets:
            # The 30 random characters, in any context.
            shown = [line for line in log.splitlines() if secret[7:-4] in line]
            assert not shown, shown[:5]


@contextmanager
def live_service(
    workers: int = 1,
    env: Mapping[str, str] | None = None,
    may_crash: bool = False,
    **options: Any,
) -> Iterator[Live]:
    """Serve the test database. At the end, the log is checked.

    may_crash: whether tracebacks are expected. options: see `run_service`.
    """
    with tempfile.TemporaryDirectory(prefix="portcullis-live-") as folder:
        log_file = Path(folder) / "service.log"
        with ExitStack() as stack:
            with _output_to(log_file):
                server = stack.enter_context(run_service(workers, env, **options))
            live = Live(server, log_file)
            yield live
        live.check_log()
        log = live.log()
        for sign in () if may_crash else ("Traceback", "was never awaited"):
            assert sign not in log, log[-5000:]


@contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """Let processes that are started within the block write to a file."""
    saved = [os.dup(descriptor) for descriptor in (1, 2)]
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for descriptor in (1, 2):
            os.dup2(file, descriptor)
        yield
    finally:
        for descriptor, original in zip((1, 2), saved, strict=True):
            os.dup2(original, descriptor)
        for descriptor in (file, *saved):
            os.close(descriptor)


def api_key_of(secret: str) -> ApiKey:
    """Return the row of a key with this secret."""
    return ApiKey.objects.get(versions__digest=digest(secret))
