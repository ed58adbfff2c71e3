"""Links in errors begin with the site's URL, and never with an invented Host."""

from __future__ import annotations

import pytest
from django.urls import reverse

from keys.site import MAX_HOST_LENGTH, site_url, tracing_path

LOCAL = "http://127.0.0.1:8000"


@pytest.fixture(autouse=True)
def no_public_url(settings) -> None:
    settings.PORT, settings.PUBLIC_URL, settings.HTTPS = 8000, "", False
    settings.ALLOWED_HOSTS = ["*"]


@pytest.mark.parametrize(
    "host", ["node.example", "node.example:8000", "127.0.0.1:80", "[::1]:8000"]
)
def test_links_lead_to_the_host_of_the_request(settings, host: str) -> None:
    assert site_url(host) == f"http://{host}"
    settings.HTTPS = True
    assert site_url(host) == f"https://{host}"


def test_public_url_comes_before_the_host(settings) -> None:
    settings.PUBLIC_URL = "https://rpc.example"
    assert site_url("evil.example") == "https://rpc.example"
    assert site_url("") == "https://rpc.example"


@pytest.mark.parametrize(
    "host",
    [
        "",
        'a"b.example',
        "a.example/path",
        "user@a.example",
        "a.example:port",
        "a b",
        "<script>",
        "ä.example",
        "a" * (MAX_HOST_LENGTH + 1),
    ],
)
def test_malformed_host_is_not_repeated(host: str) -> None:
    assert site_url(host) == LOCAL


def test_host_without_pages_is_not_repeated(settings) -> None:
    settings.ALLOWED_HOSTS = ["node.example"]
    assert site_url("node.example:8000") == "http://node.example:8000"
    assert site_url("other.example") == LOCAL


def test_path_is_that_of_the_page_that_requests_tracing() -> None:
    assert tracing_path(7, "sample") == reverse("dashboard:ask", args=[7, "sample"])
