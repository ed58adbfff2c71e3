from __future__ import annotations

import pytest

from networks.masking import mask_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
        ("http://127.0.0.1:8545/", "http://127.0.0.1:8545"),
        ("wss://node.example/v3/SECRET", "wss://node.example/…"),
        ("https://node.example:8443/?key=SECRET", "https://node.example:8443/…"),
        ("https://node.example?key=SECRET", "https://node.example/…"),
        ("https://user:SECRET@node.example", "https://node.example/…"),
        ("https://SECRET@node.example/", "https://node.example/…"),
        ("https://node.example/#SECRET", "https://node.example/…"),
        ("ws://[::1]:8546/SECRET", "ws://[::1]:8546/…"),
        ("HTTP://NODE.example/SECRET", "http://node.example/…"),
        ("http://node:port/SECRET", "…"),
        ("http://[::/SECRET", "…"),
        ("SECRET", "…"),
        ("http:///SECRET", "…"),
        ("", "…"),
    ],
)
def test_only_scheme_host_and_port_are_shown(url: str, shown: str) -> None:
    assert mask_url(url) == shown
