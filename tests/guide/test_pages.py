"""The documentation pages match the code and the database."""

from __future__ import annotations

import html
import re
from itertools import pairwise

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.urls import reverse

from config.variables.execution import CALLS, TRACES
from config.variables.requests import REQUESTS
from guide.views import PAGES
from keys.api.documentation import document
from keys.api.problems import PROBLEMS
from keys.models import Plan, Scope
from nodeapi.methods import registry
from tests.support.rows import add_block, make_network, set_head

pytestmark = pytest.mark.django_db


def page(name: str, **headers: str) -> str:
    answer = Client(headers=headers).get(reverse(f"docs:{name}"))
    assert answer.status_code == 200
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    return html.unescape(answer.content.decode())


def test_pages_lead_from_one_to_the_next() -> None:
    for before, after in pairwise(PAGES):
        assert f'rel="next" href="{reverse(f"docs:{after.name}")}"' in page(before.name)
        assert f'rel="prev" href="{reverse(f"docs:{before.name}")}"' in page(after.name)


def test_links_between_pages_lead_to_a_page_and_a_place_on_it() -> None:
    pages = {reverse(f"docs:{one.name}"): page(one.name) for one in PAGES}
    found = 0
    for text in pages.values():
        for address, place in re.findall(
            r'href="(/docs/[^"#?]*)[^"#]*#?([^"]*)"', text
        ):
            found += 1
            assert address in pages
            assert not place or f'id="{place}"' in pages[address], place
    assert found > len(PAGES) ** 2


def test_every_method_and_its_credits_are_there() -> None:
    methods, limits = page("networks"), page("limits")
    for method in registry:
        assert f'id="{method.name}"' in methods
        row = rf"<code>{re.escape(method.name)}</code></td><td[^>]*>{method.credits}<"
        assert re.search(row, limits), method.name


def test_methods_are_in_alphabetical_order_after_those_of_eth() -> None:
    names = re.findall(r'<tr id="([^"]+)"', page("networks"))
    others = [name for name in names if not name.startswith("eth_")]
    assert names == sorted(set(names) - set(others)) + sorted(others)


def test_changelog_shows_code_as_code() -> None:
    text = page("changelog")
    assert "<code>eth_simulateV1</code> executes" in text
    assert "`" not in text


def test_changelog_shows_names_in_quotation_marks() -> None:
    text = page("changelog")
    assert "“Roll a key”" in text
    assert "*Roll a key*" not in text


def test_changelog_shows_every_entry_under_its_version_and_kind() -> None:
    text = page("changelog")
    source = (django_settings.BASE_DIR / "CHANGELOG.md").read_text()
    headings = re.findall(r"<h[23]>(.+?)</h[23]>", text)
    assert headings[:2] == ["Unreleased", "Added"]
    assert headings.count("0.1.0, 2026-11-22") == 1
    article = text.partition("<article>")[2]
    assert article.count("<li>") == len(re.findall(r"^- ", source, re.M))


def test_networks_and_plans_are_the_databases() -> None:
    make_network("alpha", tracers=["callTracer"])
    make_network("beta", tracers=[])
    Plan.objects.create(slug="gold", name="Gold", credits_per_second=777)
    text = page("networks")
    assert "<code>alpha</code>" in text
    assert re.findall(r'class="badge">(\w+Tracer)<', text) == ["callTracer"]
    assert ">none<" in text
    assert ">777<" in page("limits")


def test_quickstart_begins_with_sign_up_where_it_is_open(settings) -> None:
    settings.KEYS_SIGNUP = True
    assert '<a href="/account/signup">Sign up</a>, or log in' in page("index")
    settings.KEYS_SIGNUP = False
    assert ">Sign up</a>, or" not in page("index")


def test_quickstart_has_the_call_for_each_client() -> None:
    text = page("index", host="rpc.example")
    for name, address in (
        ("curl", '"http://rpc.example/v3/YOUR_KEY"'),
        ("web3py", 'HTTPProvider("http://rpc.example/v3/YOUR_KEY")'),
        ("viem", 'http("http://rpc.example/v3/YOUR_KEY")'),
    ):
        call = text.partition(f'id="example-{name}"')[2].partition("</pre>")[0]
        assert address in call


def test_snippets_name_the_host_that_was_asked() -> None:
    make_network("alpha")
    assert "http://rpc.example/alpha/v3" in page("index", host="rpc.example")


OPERATORS_ALONE = {
    "NODEAPI_BATCHES_IN_PROGRESS_BYTES",
    "NODEAPI_CACHE_BYTES",
    "NODEAPI_DATABASE_CONNECTIONS",
    "NODEAPI_LOG_CONNECTIONS",
    "NODEAPI_QUERY_TIMEOUT",
    "NODEAPI_SUPPORT_CONTACT",
    "NODEAPI_TESTING_METHODS",
    "NODEAPI_TRACE_MEMORY_BYTES",
    "NODEAPI_TRACE_SPOOL_BYTES",
    "NODEAPI_TRACE_OWNER_BYTES",
    "NODEAPI_TRACE_WORKERS",
}
"""Settings that only concern operators; docs/settings.md lists all settings."""


def test_every_setting_that_limits_callers_is_there(settings) -> None:
    names = (one.name for group in (REQUESTS, TRACES, CALLS) for one in group.variables)
    there = {name for name in names if name.startswith("NODEAPI_")}
    assert set(re.findall(r"<code>(NODEAPI_[A-Z_]+)<", page("limits"))) == (
        there - OPERATORS_ALONE
    )
    settings.NODEAPI_MAX_BATCH_CALLS = 7777
    settings.NODEAPI_FAILED_KEYS_PER_MINUTE = 0
    assert ">7,777<" in page("limits") and ">no limit<" in page("limits")


def test_management_page_has_every_operation_scope_and_refusal() -> None:
    text = page("management")
    for path, item in document()["paths"].items():
        for method in item:
            assert f"<code>{method.upper()} {path}</code>" in text
    assert all(f"<code>{scope}</code>" in text for scope in Scope.values)
    assert all(f'id="{problem.slug}"' in text for problem in PROBLEMS)


def test_openrpc_document_is_public_and_what_discover_answers() -> None:
    found = Client().get("/openrpc.json").json()
    assert [one["name"] for one in found["methods"]] == [one.name for one in registry]
    assert "servers" not in found  # no network is served


def test_openrpc_document_names_networks_entitlements_and_examples() -> None:
    network = make_network("alpha", tracers=["prestateTracer"])
    add_block(network, "head", 7)
    set_head(network, "head", 7)
    make_network("empty", tracers=[])
    found = Client(headers={"host": "rpc.example"}).get("/openrpc.json").json()
    (alpha, empty) = found["servers"]
    assert alpha["url"] == "http://rpc.example/alpha/v3"
    assert alpha["x-tracers"] == ["prestateTracer"]
    assert empty["name"] == "empty"
    methods = {one["name"]: one for one in found["methods"]}
    assert {name for name, one in methods.items() if "x-entitlement" in one} == {
        one.name for one in registry if one.capability
    }
    trace = methods["debug_traceBlockByNumber"]
    assert trace["x-entitlement"] == "trace"
    block = {"name": "block", "value": "0x7"}
    options = {"name": "options", "value": {"tracer": "prestateTracer"}}
    assert trace["examples"] == [{"name": "alpha", "params": [block, options]}]
    # Without a transaction and without a block there is nothing to show.
    assert "examples" not in methods["debug_traceTransaction"]
    assert [one["name"] for one in methods["eth_chainId"]["examples"]] == [
        "alpha",
        "empty",
    ]


def test_openrpc_document_reads_examples_once_for_each_head(
    django_assert_num_queries,
) -> None:
    network = make_network("alpha")
    add_block(network, "head", 7)
    set_head(network, "head", 7)
    first = Client().get("/openrpc.json").json()
    with django_assert_num_queries(1):  # one query reads the networks and their heads
        assert Client().get("/openrpc.json").json() == first
    add_block(network, "next", 8)
    set_head(network, "next", 8)
    later = Client().get("/openrpc.json").json()
    (asked,) = (
        one for one in later["methods"] if one["name"] == "eth_getBlockByNumber"
    )
    (example,) = asked["examples"]
    assert example["params"][0]["value"] == "0x8"
