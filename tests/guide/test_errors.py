"""The generated page of errors matches the code."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from config.urls import sections
from guide.error_entries import EXECUTION_ERRORS, error_entries
from jsonrpc.errors import RpcError, error_classes
from keys.api.problems import PROBLEMS
from nodeapi.endpoint.endpoint import build_endpoint  # noqa: F401  # brings all errors
from nodeapi.frames import close_codes
from wallets.errors import WalletError

ROOT = Path(__file__).resolve().parents[2]

OF_TESTS = {"Denied", "denied", "Gone", "gone", "NotThere", "Wasted"}
"""Errors that other tests define in the same process."""

OF_UPSTREAMS = {-32604, -32004, -39001}
"""Codes of upstreams that the relay understands and does not report."""

END_OF_RANGE = {-38009}
"""The end of a range of codes, which does not contain it."""


@pytest.fixture(scope="module")
def page(module_db: None) -> str:
    return html.unescape(Client().get("/docs/errors").content.decode())


def test_each_reason_has_a_place_on_the_page_that_errors_point_to(page: str) -> None:
    places = re.findall(r'<tr id="([^"]+)"', page)
    assert len(places) == len(set(places))
    reasons = {error.reason for error in ours() if error.reason}
    names = {error.__name__ for error in ours() if not error.reason}
    assert set(places) - OF_TESTS == reasons | {
        one for one in names if not one.startswith("_")
    }
    assert "key_invalid" in places


def test_each_error_says_when_it_is_raised_and_what_to_do(page: str) -> None:
    for entry in error_entries():
        if entry.name in OF_TESTS:
            continue
        assert re.fullmatch(r"(When|For|Once|If|Where)\b.*\.", entry.when), entry.name
        assert re.fullmatch(r"[A-Z].*\.", entry.remedy), entry.name
        assert entry.reason or entry.message, entry.name
        assert entry.when in page and entry.remedy in page, entry.name


def test_page_has_no_markup_of_docstrings_and_no_word_for_staff(page: str) -> None:
    article = page.partition("<article")[2].partition("</article>")[0]
    assert article and "`" not in article
    assert not re.search(r"\bstaff\b", article)


def test_errors_of_the_wallet_are_on_the_page(page: str) -> None:
    for section in sections["others"]:
        for error in section().errors:
            assert re.fullmatch(r"When\b.*\.", error.when), error
            assert re.fullmatch(r"[A-Z].*\.", error.remedy), error
            assert f"<td>{error.message or '–'}</td>" in page
            assert error.remedy in page


def test_each_code_that_the_code_contains_is_on_the_page(page: str) -> None:
    codes = {code for tree in sources() for code in codes_in(tree)}
    codes |= {kind.code for kind in (*ours(), *wallet_kinds()) if hasattr(kind, "code")}
    shown = {int(code) for code in re.findall(r"<code>(-?\d+)</code>", page)}
    assert {-32000, -32601, -38014, 3, 4, 4001} <= codes | {3}
    assert codes - OF_UPSTREAMS - END_OF_RANGE <= shown
    assert {error.code for error in EXECUTION_ERRORS} <= shown


def codes_of(name: str) -> set[int]:
    """Return the error codes in a section of the page."""
    (found,) = (
        one for one in (make() for make in sections["others"]) if one.name == name
    )
    return {error.code for error in found.errors}


def test_each_close_code_is_on_the_page() -> None:
    documented = (ROOT / "docs" / "websocket.md").read_text()
    table = documented.partition("## When a socket is closed")[2].partition("\n## ")[0]
    codes = {int(code) for code in re.findall(r"^\| (\d{4}) \|", table, re.MULTILINE)}
    codes |= {code for code in vars(close_codes).values() if type(code) is int}
    assert {1009, 1012, 4401} <= codes == codes_of("closes")


def test_each_code_of_connect_js_is_on_the_page(page: str) -> None:
    scripts = [
        path.read_text() for path in (ROOT / "static/wallet/connect").glob("*.js")
    ]
    codes = {
        int(code) for text in scripts for code in re.findall(r"code[:=] ?(-?\d+)", text)
    }
    assert {-32601, 1013, 4001, 4100, 4900, 4901, 4902} <= codes
    assert codes_of("provider") <= codes
    assert codes <= {int(code) for code in re.findall(r"<code>(-?\d+)</code>", page)}


def test_problems_of_the_management_api_have_cause_and_remedy(page: str) -> None:
    assert 'href="/docs/management"' in page
    shown = html.unescape(Client().get("/docs/management").content.decode())
    for problem in PROBLEMS:
        for text in (problem.when, problem.remedy):
            assert re.fullmatch(r"[A-Z].*\.", text), problem.slug
            assert text in shown


@pytest.mark.django_db
def test_referrer_policy_hides_pages_from_other_sites_and_keeps_the_origin_of_forms() -> (
    None
):
    # From a page with no-referrer, browsers send "Origin: null", which CSRF rejects.
    assert Client().get("/docs/errors")["Referrer-Policy"] == "same-origin"


def ours() -> list[type[RpcError]]:
    """Return the error classes of the service, without those of tests."""
    return [one for one in error_classes() if not one.__module__.startswith("tests.")]


def wallet_kinds() -> Iterator[type[WalletError]]:
    waiting = WalletError.__subclasses__()
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting += kind.__subclasses__()


def sources() -> Iterator[ast.AST]:
    for package in ("jsonrpc", "keys", "nodeapi", "wallets", "evm"):
        for path in (ROOT / package).rglob("*.py"):
            yield ast.parse(path.read_text())


def codes_in(tree: ast.AST) -> Iterator[int]:
    """Yield the integers of a module in the range of JSON-RPC's and geth's codes."""
    for node in ast.walk(tree):
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
                if 32000 <= number < 40000 and number != 2**15:
                    yield -number
