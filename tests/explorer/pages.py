"""Paths of pages about the chain of `tests.explorer.chain`, and their parsing."""

from __future__ import annotations

from html.parser import HTMLParser
from http import HTTPStatus

from django.http import HttpResponse
from django.test import Client

from keys.models import User
from nodeapi.models import Block, Transaction

REVERTED, TURNED, OWN_ERROR, WIDE, DEEP, MIXED, CREATION, MARKED = range(8)
"""The transactions of block 1, in their order."""

PASSWORD = "a password"

VOID = {"meta", "link", "input", "br", "hr", "img", "rect"}


def block_hash(number: int) -> str:
    canonical = Block.objects.filter(network__slug="hard", is_canonical=True)
    block = canonical.get(number=number)
    return "0x" + bytes(block.hash).hex()


def block_path(number: int = 1, slug: str = "hard") -> str:
    return f"/explore/{slug}/block/{block_hash(number)}"


def row(index: int) -> Transaction:
    blocks = Block.objects.filter(network__slug="hard", is_canonical=True)
    return Transaction.objects.get(block=blocks.get(number=1), index=index)


def transaction_path(index: int, slug: str = "hard") -> str:
    return f"/explore/{slug}/tx/0x{bytes(row(index).hash).hex()}"


def text(response: HttpResponse) -> str:
    assert response.status_code == HTTPStatus.OK
    return response.content.decode()


def see(user: User, path: str) -> HttpResponse:
    client = Client()
    client.force_login(user)
    return client.get(path)


class Balanced(HTMLParser):
    """Checks that every HTML element is closed in the right place."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.depth = 0
        self.scripts = 0
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script" or any(
            name.startswith("on") for name, _ in attrs
        )
        assert "style" not in dict(attrs)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.opened.append(tag)
            self.depth = max(self.depth, len(self.opened))

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.opened.pop() == tag


def parsed(page: str) -> Balanced:
    parser = Balanced()
    parser.feed(page)
    parser.close()
    assert parser.opened == []
    assert len(parser.ids) == len(set(parser.ids))
    return parser
