"""Settings that are addresses are accepted in their usual forms, and nothing else is."""

from __future__ import annotations

import pytest

from config import setting_types as types

ACCEPTED = [
    (types.port, "0", 0),
    (types.port, "65535", 65535),
    (types.host, "0.0.0.0", "0.0.0.0"),
    (types.host, "node-1.example.org", "node-1.example.org"),
    (types.ipv4, "10.0.0.5", "10.0.0.5"),
    (types.allowed_hosts, "*", ["*"]),
    (types.allowed_hosts, ".example.org, [::1]", [".example.org", "[::1]"]),
    (
        types.origins,
        "https://a.example,http://b:81",
        ["https://a.example", "http://b:81"],
    ),
    (types.base_url, "https://rpc.example.org/", "https://rpc.example.org"),
    (types.proxies, "*", "*"),
    (types.proxies, "10.0.0.0/8, ::1", "10.0.0.0/8, ::1"),
    (types.redis_address, "redis://cache:6380/1", "redis://cache:6380/1"),
    (types.redis_address, "redis://:p%2Fw@cache", "redis://:p%2Fw@cache"),
    (types.redis_address, "rediss://cache/0", "rediss://cache/0"),
    (types.redis_address, "unix:///run/r.sock?db=2", "unix:///run/r.sock?db=2"),
    (
        types.redis_address,
        "redis+sentinel://a:1,b/main/0",
        "redis+sentinel://a:1,b/main/0",
    ),
    (types.sender, "portcullis@localhost", "portcullis@localhost"),
    (types.sender, "Node API <help@example.org>", "Node API <help@example.org>"),
    (types.slug, "sample", "sample"),
]

REFUSED = [
    (types.port, "65536", "must be a port from 0 to 65535, not 65536"),
    (types.port, "-1", "must be a port from 0 to 65535, not -1"),
    (types.port, "http", "must be an integer, not 'http'"),
    (types.host, "::1", "must be an IPv4 address or a host name, not '::1'"),
    (types.host, "0.0.0.0:80", "must be an IPv4 address or a host name"),
    (types.ipv4, "localhost", "must be an IPv4 address, not 'localhost'"),
    (types.allowed_hosts, "https://a.example", "must be host names without scheme"),
    (types.allowed_hosts, "a.example:80", "must be host names without scheme"),
    (types.origins, "a.example", "must be origins such as https://"),
    (types.origins, "https://a.example/path", "must be origins such as https://"),
    (types.api_key, "nk_abc", "must be a complete API key"),
    (types.base_url, "rpc.example.org", "must be a URL with a host only"),
    (types.base_url, "https://rpc.example.org/v3", "must be a URL with a host only"),
    (
        types.proxies,
        "nginx",
        r"must be IP addresses, networks such as 10.0.0.0/8, or \*",
    ),
    (types.proxies, "10.0.0.1/8", "must be IP addresses"),
    (types.redis_address, "http://u:secret@h", "must begin with one of redis://,"),
    (types.redis_address, "cache:6379", "must begin with one of redis://,"),
    (types.redis_address, "redis://:sec/ret@h:1", "must be a URL such as redis://"),
    (types.redis_address, "redis://h:port", "must be a URL such as redis://"),
    (types.redis_address, "redis://h/main", "must end with the number of a"),
    (types.redis_address, "redis://h/0?colour=red", "must be a URL such as redis://"),
    (
        types.redis_address,
        "redis://h/0?socket_timeout=x",
        "must be a URL such as redis://",
    ),
    (types.redis_address, "unix://", "must name a socket"),
    (types.redis_address, "redis+sentinel://a:1", "must end with the name"),
    (types.mail_address, "http://u:secret@h", "of the forms smtp://host"),
    (types.sender, "support", "must be an email address, not 'support'"),
    (types.sender, "Node API", "must be an email address"),
    (types.slug, "a b", "must be a network's slug, not 'a b'"),
]


@pytest.mark.parametrize(("parse", "given", "value"), ACCEPTED)
def test_usual_forms_are_accepted(parse, given, value):
    assert parse(given) == value


@pytest.mark.parametrize(("parse", "given", "reason"), REFUSED)
def test_other_text_is_refused_without_its_secrets(parse, given, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        parse(given)
    assert str(caught.value).startswith("must ")
    assert "sec" not in str(caught.value)
