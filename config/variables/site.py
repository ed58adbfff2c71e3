"""Addresses of the site, and its security."""

from __future__ import annotations

from config.env import Group, boolean, size, text, words
from config.setting_types import allowed_hosts, api_key, base_url, origins, proxies

SITE = Group("Site and security")

PUBLIC_URL = SITE.variable(
    "PUBLIC_URL",
    base_url,
    "",
    "Address at which browsers reach the service, such as `https://rpc.example.org`."
    " Links in emails begin with it.",
    "`http://127.0.0.1:PORT`",
)

DEMO = SITE.variable(
    "DEMO",
    boolean,
    False,
    "Whether the home page explains how to log in to the demonstration, and shows a trace"
    " of its networks. `manage.py serve` turns it on.",
)

HOME_API_KEY = SITE.variable(
    "HOME_API_KEY",
    api_key,
    "",
    "An API key that the home page shows to everyone in its examples. Give it low limits"
    " and no tracing.",
    "examples have a placeholder; `manage.py serve` creates a key",
)

HTTPS = SITE.variable(
    "HTTPS",
    boolean,
    False,
    "Whether clients reach the service through a TLS proxy. Turns on secure cookies, HSTS,"
    " and redirects from HTTP to HTTPS for pages.",
)

HSTS_SECONDS = SITE.variable(
    "HSTS_SECONDS",
    size,
    31_536_000,
    "With `HTTPS`: seconds for which browsers use HTTPS only (`max-age` of HSTS).",
)

HSTS_SUBDOMAINS = SITE.variable(
    "HSTS_SUBDOMAINS",
    boolean,
    False,
    "With `HTTPS`: whether HSTS has `includeSubDomains` and `preload`.",
)

ALLOWED_HOSTS = SITE.variable(
    "ALLOWED_HOSTS",
    allowed_hosts,
    ["*"],
    "Host names under which pages are served, separated by commas.",
)

CSRF_TRUSTED_ORIGINS = SITE.variable(
    "CSRF_TRUSTED_ORIGINS",
    origins,
    list[str](),
    "Other origins whose forms are accepted, such as `https://node.example.org`,"
    " separated by commas.",
)

FORWARDED_ALLOW_IPS = SITE.variable(
    "FORWARDED_ALLOW_IPS",
    proxies,
    "127.0.0.1",
    "Addresses of proxies, separated by commas. `X-Forwarded-For` and"
    " `X-Forwarded-Proto` are read from these proxies only.",
)

SECRET_KEY = SITE.variable(
    "SECRET_KEY",
    text,
    "",
    "Django's signing key. All processes of a site need the same one.",
    "generated once, stored in `VAR_DIR`",
)

SECRET_KEY_FALLBACKS = SITE.variable(
    "SECRET_KEY_FALLBACKS",
    words,
    list[str](),
    "Former signing keys, separated by commas. Their signatures remain valid.",
)

STAFF_SECOND_FACTOR = SITE.variable(
    "STAFF_SECOND_FACTOR",
    boolean,
    False,
    "Whether the admin requires a one-time password. It needs `requirements-otp.txt`"
    " and an enrolled device; see [keys.md](keys.md).",
)

DEBUG = SITE.variable(
    "DEBUG",
    boolean,
    False,
    "Whether Django shows debug pages. Never turn it on where others can reach the"
    " service.",
)
