"""A client for pages of the running service, like a browser without scripts."""

from __future__ import annotations

import re

import httpx
from django.test import Client

from keys.models import User
from tests.support import web


def boxes(text: str) -> dict[str, list[str]]:
    """Return the form data that a browser sends for an unchanged consent page."""
    found: dict[str, list[str]] = {}
    pattern = r'name="(scope|account|group)" value="([^"]+)" checked'
    for name, value in re.findall(pattern, text):
        found.setdefault(name, []).append(value)
    digest = re.search(r'name="digest" value="([0-9a-f]{64})"', text)
    assert digest
    return {**found, "digest": [digest[1]]}


class Visit:
    """A logged-in test client that submits the fields of the last form."""

    def __init__(self, base_url: str, user: User) -> None:
        client = Client()
        client.force_login(user)
        self.session = client.cookies["sessionid"].value
        self._http = web.Client(base_url=base_url, cookies={"sessionid": self.session})
        self._token = ""

    def get(self, path: str) -> httpx.Response:
        """Request a page."""
        response = self._http.get(path)
        found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', response.text)
        self._token = found[1] if found else ""
        return response

    def post(self, path: str, token: str | None = None, **form: object) -> int:
        """Send a form; return the status. token: in place of the CSRF token."""
        csrf = self._token if token is None else token
        data = {"csrfmiddlewaretoken": csrf, **form}
        return self._http.post(path, data=data).status_code

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
