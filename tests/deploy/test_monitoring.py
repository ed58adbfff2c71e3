"""The dashboard and the alert rules agree with the metrics of a running service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from keys.services import get_or_create_customer, issue_key
from tests.support import following, web
from tests.support.live import request
from tests.support.service import run_service

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((ROOT / "deploy/grafana/portcullis.json").read_text())
RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())

OF_PROMETHEUS = {"up"}
"""Metrics that Prometheus adds itself."""

OF_TARGETS = {"job", "instance"}
"""Labels that Prometheus adds itself."""

KEYWORDS = {"and", "or", "unless", "by", "without", "on", "ignoring", "bool"}
GROUPING = r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)"


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def alerts() -> list[dict[str, Any]]:
    return [rule for group in RULES["groups"] for rule in group["rules"]]


def expressions() -> Iterator[str]:
    """Yield all PromQL of the dashboard and of the rules."""
    for panel in panels():
        yield from (target["expr"] for target in panel["targets"])
    for rule in alerts():
        yield rule["expr"]


def metrics_in(expression: str) -> set[str]:
    """Return the names of the metrics in a PromQL expression."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", bare)
    bare = re.sub(GROUPING, " ", bare)
    bare = re.sub(r"\bgroup_(left|right)\b", " ", bare)
    names = re.findall(r"\b([a-zA-Z_:][\w:]*)\b(?!\s*\()", bare)
    return set(names) - KEYWORDS


def selectors_in(expression: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield metric, label, operator and value of each matcher."""
    for metric, matchers in re.findall(r"(\w+)\{([^}]*)\}", expression):
        for label, operator, value in re.findall(
            r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"', matchers
        ):
            yield metric, label, operator, value


@pytest.fixture
def labels() -> dict[str, dict[str, set[str]]]:
    """Return the labels' values of each metric of a service in use, by metric."""
    network = following.followed_network("live", url="http://127.0.0.1:9")
    following.add_import(network, 9)
    following.add_reorganisation(network, 2)
    network.genesis["config"]["futureTime"] = 2_000_000_000
    network.save(update_fields=["genesis"])
    key = issue_key(owner=get_or_create_customer(email="owner@example.org")).secret
    with run_service(with_metrics=True) as running:
        for shown in (key, f"nk_{'0' * 36}"):  # the second one is unknown
            path = f"{running.base_url}/live/v3/{shown}"
            web.post(path, json=[request("eth_chainId")])
        port = running.inner[0].getsockname()[1]
        text = web.get(f"http://127.0.0.1:{port}/metrics").text
    found: dict[str, dict[str, set[str]]] = {}
    for family in text_string_to_metric_families(text):
        # The library omits the suffix of a counter's name, even without samples.
        kinds = {
            "counter": ["_total"],
            "histogram": ["_bucket", "_sum", "_count"],
            "summary": ["_sum", "_count"],
        }
        for ending in kinds.get(family.type, [""]):
            found.setdefault(family.name + ending, {})
        for sample in family.samples:
            for label, value in sample.labels.items():
                found.setdefault(sample.name, {}).setdefault(label, set()).add(value)
    return found


def test_every_metric_and_label_that_is_named_exists(labels):
    named = set().union(*map(metrics_in, expressions()))
    assert len(named) > 30
    assert named - labels.keys() - OF_PROMETHEUS == set()
    for expression in expressions():
        for metric, label, operator, value in selectors_in(expression):
            known = labels.get(metric, {})
            if label not in OF_TARGETS:
                assert label in known, f"{metric}{{{label}}}"
                assert operator != "=" or value in known[label], f"{metric}: {value}"


def test_variables_of_the_dashboard_list_labels_that_exist(labels):
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            query = variable["query"]["query"]
            metric, label = re.fullmatch(
                r"label_values\((\w+), (\w+)\)", query
            ).groups()
            assert label in labels[metric] or label in OF_TARGETS


def test_names_of_metrics_are_found():
    """The regular expressions of the tests above find names in PromQL."""
    for expression, names in (
        ("max by (network) (a_b) > 3", {"a_b"}),
        (
            'rate(a_total{x="b c", y=~"d|e"}[5m]) / on (z) group_left sum(f)',
            {"a_total", "f"},
        ),
        ('a > 0 and on (network) max by (network) (b{c="}"}) == 1', {"a", "b"}),
        (
            "histogram_quantile(0.99, sum by (le) (rate(a_bucket[$__interval])))",
            {"a_bucket"},
        ),
    ):
        assert metrics_in(expression) == names


def test_the_dashboard_loads_unchanged():
    """Its data source is a variable, so that Grafana asks no questions at the import."""
    assert "__inputs" not in DASHBOARD
    assert DASHBOARD.get("id") is None
    (source, *_) = DASHBOARD["templating"]["list"]
    assert (source["name"], source["type"]) == ("datasource", "datasource")
    assert source["current"].keys() == {"text", "value"}
    every = DASHBOARD["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    for panel in panels():
        assert panel["title"]
        assert panel["description"]
        assert panel["datasource"]["uid"] == "${datasource}"
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)
        # A member that the schemas of Grafana 10 to 13 require.
        assert panel["type"] == "stat" or "calcs" in panel["options"]["legend"]
    taken = [
        (x, y)
        for panel in every
        for x in range(
            panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"]
        )
        for y in range(
            panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"]
        )
    ]
    assert max(x for x, _ in taken) < 24
    assert len(set(taken)) == len(taken)


def test_the_dashboard_shows_every_part_of_the_service():
    titles = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    assert titles == [
        *("State", "Requests", "Chains", "Upstreams"),
        *("Outbox, database and usage", "Workers"),
    ]


def test_alert_rules_have_what_prometheus_needs():
    names = [rule["alert"] for rule in alerts()]
    assert len(set(names)) == len(names)
    assert all(name.startswith("Portcullis") for name in names)
    for rule in alerts():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["summary"]
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
    groups = [group["name"] for group in RULES["groups"]]
    assert len(set(groups)) == len(groups)
