"""`verify_answer`: check a node's response against a trusted block hash."""

from __future__ import annotations

import json
import sys
import urllib.request
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portcullis.verify import VerificationError, verify_answer

_TIMEOUT_SECONDS = 60


class Command(BaseCommand):
    help = (
        "Verify a response of a node against a trusted block hash. The response may be a "
        "balance, nonce, code, storage value, proof, transaction or receipt. The node "
        "itself need not be trusted, because it has to prove the response."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("url", type=_url, help="URL of the node, with the API key")
        parser.add_argument("method", help="name of the method, such as eth_getBalance")
        parser.add_argument("params", type=_array, help="parameters as a JSON array")
        parser.add_argument(
            "--block-hash", required=True, type=_hash, help="hash of the trusted block"
        )
        parser.add_argument(
            "--answer",
            metavar="FILE",
            help="the result as JSON, or - for standard input; default: request it "
            "from the node",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        method, params = options["method"], options["params"]

        def request(method: str, params: list[Any]) -> Any:
            return _result(options["url"], method, params)

        try:
            answer = _answer(options["answer"], request, method, params)
            verify_answer(method, params, answer, options["block_hash"], request)
        except VerificationError as error:
            raise CommandError(f"{method}: {error}") from error
        except (OSError, ValueError) as error:
            raise CommandError(str(error)) from error
        name = options["block_hash"].hex()
        self.stdout.write(
            self.style.SUCCESS(f"{method}: block 0x{name} proves {json.dumps(answer)}")
        )


def _answer(file: str | None, request: Any, method: str, params: list[Any]) -> Any:
    if file is None:
        return request(method, params)
    return json.loads(sys.stdin.read() if file == "-" else Path(file).read_text())


def _result(url: str, method: str, params: list[Any]) -> Any:
    """Call a method. Raises: OSError, ValueError with the node's error."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    asked = urllib.request.Request(
        url,
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=_TIMEOUT_SECONDS) as response:
        found = json.load(response)
    if "error" in found:
        raise ValueError(f"{method}: {found['error'].get('message')}")
    return found["result"]


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ArgumentTypeError("must be an http or https URL")
    return text


def _array(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list):
        raise ArgumentTypeError(f"must be a JSON array, not {text!r}")
    return found


def _hash(text: str) -> bytes:
    try:
        found = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        found = b""
    if len(found) != 32:
        raise ArgumentTypeError(f"must be 32 bytes in hexadecimal, not {text!r}")
    return found
