"""Third-party clients, each in its own process and controlled through its input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple, Protocol

from tests.support.refusals import Row

FOLDER = Path(__file__).parent
CAST = FOLDER / "node_modules/@foundry-rs/cast-linux-amd64/bin/cast"
ANVIL = FOLDER / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"

SECONDS = 120
"""Longest wait for a program."""


class Answer(NamedTuple):
    """A result, or an error as the program reports it to its user.

    status: the HTTP status, if the program reports it.
    """

    result: Any = None
    code: int | None = None
    message: str | None = None
    status: int | None = None


class Program(Protocol):
    """The interface of all client programs.

    Calls are request objects. A program that makes no batches has `batches` False.
    """

    batches: bool

    def ask(
        self, url: str, calls: Sequence[Mapping[str, Any]], headers: Mapping[str, str]
    ) -> list[Answer]:
        """Make calls. Several calls are sent in one batch."""

    def shown(self, row: Row, *, in_batch: bool) -> Answer:
        """Return the error that the program's user should see for a rejection."""

    def requests(self, row: Row, *, in_batch: bool) -> int:
        """Return how often the program sends a rejected request, by its own rules."""


def answer_of(row: Row) -> Answer:
    """Return everything that the service's response contains about a rejected call."""
    return Answer(None, row.code, row.message)


def status_of(row: Row, *, in_batch: bool) -> int | None:
    """Return the HTTP status if it is an error."""
    status = 200 if in_batch and not row.of_request else row.status
    return status if status != HTTPStatus.OK else None


class NodeProgram:
    """A library in Node.js, in a process that lives for several calls; see lines.mjs."""

    batches = True

    def __init__(self, script: str) -> None:
        self._process = subprocess.Popen(
            ["node", script],
            cwd=FOLDER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """End the process."""
        with self._process as process:
            assert process.stdin
            process.stdin.close()
            assert process.wait(SECONDS) == 0

    def order(self, url: str, actions: Sequence[Any], **options: Any) -> list[Any]:
        """Call methods of the client. Return their results or errors."""
        process = self._process
        assert process.stdin
        assert process.stdout
        order = {"url": url, "actions": actions, **options}
        print(json.dumps(order), file=process.stdin, flush=True)
        limit = Timer(SECONDS, process.kill)
        limit.start()
        try:
            answers: list[Any] = json.loads(process.stdout.readline())
        finally:
            limit.cancel()
        return answers

    def act(self, url: str, *action: Any, **options: Any) -> Any:
        """Call a method that has to succeed, and return its result."""
        (answer,) = self.order(url, [action], **options)
        assert "error" not in answer, answer
        return answer["result"]

    def _answers(self, url: str, actions: list[Any], **options: Any) -> list[Answer]:
        return [
            Answer(answer.get("result"), **_seen(answer.get("error", {})))
            for answer in self.order(url, actions, **options)
        ]


def _seen(error: Mapping[str, Any]) -> dict[str, Any]:
    return {name: error.get(name) for name in ("code", "message", "status")}


class Viem(NodeProgram):
    """viem, which repeats a request up to three times.

    The status and the error code decide about repetitions. For a batch with an error status,
    it reports only the status.
    Source: shouldRetry in viem/utils/buildRequest.ts, viem/utils/rpc/http.ts
    """

    REPEATED_STATUSES = frozenset({403, 408, 413, 429, 500, 502, 503, 504})
    REPEATED_CODES = frozenset({-1, -32005, -32603, 429, -32007})

    def __init__(self) -> None:
        super().__init__("viem.mjs")

    def ask(
        self, url: str, calls: Sequence[Mapping[str, Any]], headers: Mapping[str, str]
    ) -> list[Answer]:
        asked = [
            {"method": call["method"], "params": call.get("params")} for call in calls
        ]
        actions = [["request", call] for call in asked]
        batch = len(actions) > 1
        return self._answers(url, actions, batch=batch, headers=headers)

    def shown(self, row: Row, *, in_batch: bool) -> Answer:
        status = status_of(row, in_batch=in_batch)
        if in_batch and status:
            return Answer(None, None, HTTPStatus(status).phrase, status)
        return answer_of(row)._replace(status=status)

    def requests(self, row: Row, *, in_batch: bool) -> int:
        shown = self.shown(row, in_batch=in_batch)
        repeats = (
            shown.status in self.REPEATED_STATUSES or shown.code in self.REPEATED_CODES
        )
        return 4 if repeats else 1


class Ethers(NodeProgram):
    """ethers, which only repeats requests that are answered with status 429.

    patient: whether ethers gets a function that waits for the time in `Retry-After`.
    Source: ethers/lib.esm/utils/fetch.js
    """

    ATTEMPTS = 12

    def __init__(self) -> None:
        super().__init__("ethers.mjs")

    def ask(
        self,
        url: str,
        calls: Sequence[Mapping[str, Any]],
        headers: Mapping[str, str],
        *,
        patient: bool = False,
    ) -> list[Answer]:
        actions = [["send", call["method"], call.get("params")] for call in calls]
        return self._answers(url, actions, headers=headers, patient=patient)

    def shown(self, row: Row, *, in_batch: bool) -> Answer:
        return answer_of(row)._replace(status=status_of(row, in_batch=in_batch))

    def requests(self, row: Row, *, in_batch: bool) -> int:
        return 1


class Cast:
    """Foundry's command line, which uses alloy.

    It reports a 402 as a demand for payment. If a header is not found, it assumes a lagging
    node, and repeats the request.
    Source: RateLimitRetryPolicy and TransportErrorKind in alloy-transport
    """

    batches = False
    ATTEMPTS = 9

    def ask(
        self, url: str, calls: Sequence[Mapping[str, Any]], headers: Mapping[str, str]
    ) -> list[Answer]:
        (call,) = calls
        given = [f"--rpc-headers={name}: {value}" for name, value in headers.items()]
        params = json.dumps(call.get("params", []))
        command = [CAST, "rpc", "--rpc-url", url, *given, "--raw", call["method"]]
        done = run([*command, params])
        if done.returncode == 0:
            return [Answer(json.loads(done.stdout))]
        return [self._error(done.stderr)]

    def command(self, url: str, name: str, *arguments: str | int) -> str:
        """Run a command that has to succeed, and return its output.

        The home folder of the command is empty, so that it has no cached blocks.
        """
        given = [str(each) for each in arguments]
        with tempfile.TemporaryDirectory(prefix="portcullis-cast-") as home:
            done = subprocess.run(
                [CAST, name, "--rpc-url", url, *given],
                env={**os.environ, "HOME": home},
                cwd=home,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        assert done.returncode == 0, done.stderr
        printed: str = done.stdout.strip()
        return printed

    def _error(self, text: str) -> Answer:
        if http := re.search(r"HTTP error (\d+) with body: (.*)", text):
            error = json.loads(http[2])["error"]
            return Answer(None, error["code"], error["message"], int(http[1]))
        if rpc := re.search(r"error code (-\d+): (.*?)(, data: \{.*)?\n", text):
            return Answer(None, int(rpc[1]), rpc[2])
        return Answer(None, None, text.partition("\n")[0])

    def shown(self, row: Row, *, in_batch: bool) -> Answer:
        if row.status == HTTPStatus.PAYMENT_REQUIRED:
            text = "Error: 402 response missing WWW-Authenticate header"
            return Answer(None, None, text)
        return answer_of(row)._replace(status=status_of(row, in_batch=in_batch))

    def requests(self, row: Row, *, in_batch: bool) -> int:
        return self.ATTEMPTS if row.message == "header not found" else 1


class Curl:
    """curl, which prints responses without interpreting them."""

    batches = True

    def ask(
        self,
        url: str,
        calls: Sequence[Mapping[str, Any]],
        headers: Mapping[str, str],
        *options: str,
    ) -> list[Answer]:
        message = calls[0] if len(calls) == 1 else list(calls)
        body = self.post(url, json.dumps(message), headers, *options)
        answers = json.loads(body.result)
        return [
            Answer(
                answer.get("result"),
                answer.get("error", {}).get("code"),
                answer.get("error", {}).get("message"),
                body.status,
            )
            for answer in ([answers] if isinstance(answers, dict) else answers)
        ]

    def post(
        self, url: str, body: str, headers: Mapping[str, str], *options: str
    ) -> Answer:
        """Send any text. Return the body and the status of the response."""
        given = {"Content-Type": "application/json", **headers}
        lines = [f"-H{name}: {value}" for name, value in given.items()]
        form = ["--silent", "--write-out", "\n%{http_code}", "--data-binary", "@-"]
        done = run(["curl", url, *lines, *form, *options], body)
        assert done.returncode == 0, done.stderr
        text, _, status = done.stdout.rpartition("\n")
        code = int(status)
        return Answer(text, status=None if code == HTTPStatus.OK else code)

    def shown(self, row: Row, *, in_batch: bool) -> Answer:
        return answer_of(row)._replace(status=status_of(row, in_batch=in_batch))

    def requests(self, row: Row, *, in_batch: bool) -> int:
        return 1


def run(command: Sequence[str | Path], text: str = "") -> Any:
    """Run a program to its end."""
    return subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
