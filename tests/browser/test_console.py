"""The try-it console of the documentation in a real browser, against the service."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from keys.services import get_or_create_customer, issue_key
from tests.browser.conftest import sign_in
from tests.support import web
from tests.support.browser import needs_chromium
from tests.support.live import Live

pytestmark = needs_chromium


@pytest.fixture
def refused_context(browser: Browser, live: Live) -> Iterator[BrowserContext]:
    """Return a browser whose console may only contain statuses of rejected requests."""
    faults: list[str] = []
    context = browser.new_context(base_url=live.base_url)
    context.on("console", lambda line: faults.append(line.text))
    yield context
    context.close()
    assert all(one.startswith("Failed to load resource: the") for one in faults)


def console(context: BrowserContext, place: str = "") -> Page:
    page = context.new_page()
    page.goto(f"/docs/console{place}")
    expect(page.get_by_role("button", name="Run")).to_be_visible()
    return page


def run(page: Page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("heading", name="Response")).to_be_visible()


def shown_body(page: Page) -> dict:
    return json.loads(page.locator("#body").inner_text())


OF_THE_CALLER = {
    "debug_traceBlock",
    "eth_getFilterChanges",
    "eth_getFilterLogs",
    "eth_sendRawTransaction",
    "eth_sendRawTransactionSync",
    "eth_subscribe",
    "eth_uninstallFilter",
    "eth_unsubscribe",
    "trace_rawTransaction",
}
"""Methods whose arguments do not exist on a network: blocks, signed transactions, filters. Their
examples show the form. Calls over HTTP can't subscribe."""

INVALID_PARAMS = -32602

EMPTY = {
    "debug_getBadBlocks",
    "eth_accounts",
    "eth_getUncleByBlockHashAndIndex",
    "eth_getUncleByBlockNumberAndIndex",
    "eth_pendingTransactions",
    "ots_getInternalOperations",
    "ots_getTransactionBySenderAndNonce",
    "ots_getTransactionError",
}
"""No block is bad, the node has no accounts, and the chain no uncles. The transaction of the examples has
succeeded without internal operations, and the account of the examples is a contract."""


def test_every_example_of_the_document_finds_something(live: Live) -> None:
    document = web.get(f"{live.base_url}/openrpc.json").json()
    (server,) = document["servers"]
    headers = {"Authorization": f"Bearer {live.new_key(may_trace=True)}"}
    for method in document["methods"]:
        (example,) = method["examples"]
        params = [one["value"] for one in example["params"]]
        call = {"jsonrpc": "2.0", "id": 1, "method": method["name"], "params": params}
        answer = web.post(server["url"], json=call, headers=headers)
        assert answer.status_code == 200, (method["name"], answer.text)
        if method["name"] in OF_THE_CALLER:
            error = answer.json().get("error", {})
            assert error.get("code") != INVALID_PARAMS, (method["name"], error)
            continue
        result = answer.json()["result"]
        assert (result in (None, "0x", [])) == (method["name"] in EMPTY), method["name"]


def test_call_is_answered_and_is_the_same_in_a_shell(context, live: Live) -> None:
    key = live.new_key()
    page = console(context, "?method=eth_chainId")
    run(page, key)
    assert shown_body(page) == {"jsonrpc": "2.0", "id": 1, "result": "0x31773"}
    expect(page.locator("#status")).to_contain_text("200 OK")
    page.get_by_text("Headers", exact=True).click()
    expect(page.locator("#headers")).to_contain_text("x-request-id: ")
    shell = page.locator("#curl").inner_text()
    assert key not in shell
    done = subprocess.run(
        ["sh", "-c", shell],
        env={**os.environ, "PORTCULLIS_KEY": key},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout) == shown_body(page)


def test_fields_are_filled_with_a_block_that_is_there(context, live: Live) -> None:
    page = console(context)
    page.get_by_label("Method").select_option("eth_getBlockByHash")
    block_hash = page.get_by_label("blockHash").input_value()
    page.get_by_label("fullTransactions").select_option("true")
    run(page, live.new_key())
    block = shown_body(page)["result"]
    assert block["hash"] == block_hash
    assert block["transactions"][0]["blockHash"] == block_hash


def test_what_is_left_out_and_what_is_an_object_are_sent_so(context, live) -> None:
    page = console(context, "?method=eth_getStorageAt")
    block = page.get_by_label("block")
    block.fill("")
    shell = page.locator("#curl")
    expect(shell).to_contain_text('0000001"]')
    block.fill('{"blockNumber": "it\'s"}')
    expect(shell).to_contain_text('{"blockNumber":"it\'\\\'\'s"}')
    block.fill('{"blockNumber": ')
    page.get_by_role("button", name="Run").click()
    fault = block.evaluate("field => field.validationMessage")
    assert fault.startswith("Invalid JSON")
    expect(page.get_by_role("heading", name="Response")).to_be_hidden()


def refused(page: Page, key: str, status: str, reason: str) -> None:
    """Run a call that is rejected, which the browser's console reports as well."""
    run(page, key)
    expect(page.locator("#status")).to_contain_text(status)
    link = page.get_by_role("link", name=f"What {reason} means")
    link.click()
    page.wait_for_url(f"**/docs/errors#{reason}")
    expect(page.locator(f"tr#{reason}")).to_be_in_viewport()


def test_refusals_lead_to_what_they_mean(refused_context, live: Live) -> None:
    page = console(refused_context, "?method=debug_traceBlockByHash")
    granted = page.get_by_role("link", name="Needs access to tracing.")
    expect(granted).to_be_visible()
    refused(page, live.new_key(), "403", "method_not_entitled")
    page = console(refused_context)
    refused(page, "nk_wrong", "401", "key_invalid")
    page = console(refused_context)
    refused(page, "", "401", "key_required")


def test_long_answer_is_cut(context, live: Live) -> None:
    page = console(context, "?method=debug_traceBlockByNumber")
    page.get_by_label("options").fill('{"enableMemory": true}')  # the struct logger
    run(page, live.new_key(may_trace=True))
    expect(page.get_by_text("The response is cut off here.")).to_be_visible()
    assert 2**18 < len(page.locator("#body").inner_text()) < 2**21


STORED = "portcullis.console"


def test_tab_keeps_the_key_and_the_last_call_and_nothing_else_does(
    context, live: Live
) -> None:
    key = live.new_key()
    addresses: list[str] = []
    context.on("request", lambda one: addresses.append(one.url))
    page = console(context, "?method=eth_getBlockByNumber")
    page.get_by_label("block", exact=True).fill("0x7")
    run(page, key)
    kept = page.evaluate("JSON.stringify([localStorage, history.state, location.href])")
    assert key not in kept
    assert list(page.evaluate("Object.keys(sessionStorage)")) == [STORED]
    assert not [one for one in addresses if key in one]
    assert f"{live.base_url}/sample/v3" in addresses
    assert context.cookies() == []

    page.goto("/docs/console")
    expect(page.get_by_label("API key")).to_have_value(key)
    expect(page.get_by_label("Method")).to_have_value("eth_getBlockByNumber")
    expect(page.get_by_label("block", exact=True)).to_have_value("0x7")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("heading", name="Response")).to_be_visible()
    other = console(context)
    expect(other.get_by_label("API key")).to_have_value("")

    page.get_by_role("button", name="Forget the key").click()
    page.reload()
    expect(page.get_by_label("API key")).to_have_value("")
    assert key not in page.evaluate(f"sessionStorage.getItem('{STORED}')")


def test_key_of_one_user_is_not_there_for_the_next(context, live: Live) -> None:
    users = [get_or_create_customer(email=f"{name}@example.org") for name in "xy"]
    key = live.new_key()
    sign_in(context, live, users[0])
    page = console(context)
    run(page, key)
    context.clear_cookies()
    sign_in(context, live, users[1])
    page.goto("/docs/console")
    expect(page.get_by_label("API key")).to_have_value("")


def test_credits_and_duration_are_those_of_the_call(context, live: Live) -> None:
    key = live.new_key(may_trace=True)
    page = console(context, "?method=eth_chainId")
    run(page, key)
    expect(page.locator("#status")).to_have_text(
        re.compile(r"200 OK\s+\d+ ms, 1 credit,")
    )
    page = console(context, "?method=debug_traceBlockByHash")
    run(page, key)
    price = page.locator("#about").inner_text().split("Costs ")[1].split()[0]
    expect(page.locator("#status")).to_contain_text(f" ms, {price} credits,")


@pytest.mark.parametrize(
    ("language", "command"),
    [
        ("Python", [sys.executable, "-"]),
        ("TypeScript", ["node", "--input-type=module", "-"]),
    ],
)
def test_exported_call_has_the_same_response(
    context, live: Live, language: str, command: list[str]
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here")
    key = live.new_key()
    page = console(context, "?method=eth_getBlockByNumber")
    page.get_by_label("fullTransactions").select_option("true")
    run(page, key)
    page.get_by_text(language, exact=True).click()
    program = page.locator(f"#{language.lower()}").inner_text()
    assert key not in program
    done = subprocess.run(
        command,
        input=program,
        env={**os.environ, "PORTCULLIS_KEY": key},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert shown_body(page)["result"]["hash"] in done.stdout


def test_missing_access_to_tracing_leads_to_its_request(
    refused_context, live: Live
) -> None:
    issued = issue_key(owner=get_or_create_customer(email="asks@example.org"))
    live.secrets.append(issued.secret)
    sign_in(refused_context, live, issued.api_key.owner)
    page = console(refused_context, "?method=debug_traceBlockByHash")
    run(page, issued.secret)
    page.get_by_role("link", name="Request access").click()
    expect(
        page.get_by_role("heading", name="Request access to tracing on Sample chain")
    ).to_be_visible()


def test_page_of_a_key_leads_to_the_console_of_its_network(context, live: Live) -> None:
    issued = issue_key(owner=get_or_create_customer(email="a@example.org"))
    live.secrets.append(issued.secret)
    sign_in(context, live, issued.api_key.owner)
    page = context.new_page()
    page.goto(f"/dashboard/keys/{issued.api_key.pk}/connect")
    page.get_by_role("link", name="console", exact=True).click()
    expect(page.get_by_label("Network")).to_have_value("sample")


def test_answer_that_is_deep_is_laid_out_in_bounds(context, live: Live) -> None:
    page = console(context)
    deep = "[" * 50_000 + "1" + "]" * 50_000
    length = page.evaluate("text => indented(text).length", deep)
    assert len(deep) < length < 100 * len(deep)
