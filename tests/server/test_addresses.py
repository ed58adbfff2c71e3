from __future__ import annotations

import pytest

from server.addresses import owner_of, read_address


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        (None, None),
        ("", None),
        ("unix:", None),
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
    ],
)
def test_owner_of_an_address(address: str | None, owner: str | None) -> None:
    assert owner_of(address) == owner


def test_ipv4_addresses_of_this_machine_are_its_own_in_ipv6() -> None:
    for text in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        found = read_address(text)
        assert found is not None
        assert found.is_loopback
