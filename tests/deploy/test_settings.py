"""The settings of a production site, read from environment variables."""

from __future__ import annotations

from tests.support import commands

PRODUCTION = {
    "HTTPS": "1",
    "SECRET_KEY": "r7Gq2vXw9Lk4Tn8Zb1Yc6Hd3Jf5Ms0PpQuEeAaVvWwXxYyZz" + "Ab3-",
    "ALLOWED_HOSTS": "node.example.org, www.example.org",
    "CSRF_TRUSTED_ORIGINS": "https://node.example.org",
    "PUBLIC_URL": "https://node.example.org",
}

SHOWN = """
from django.conf import settings as s
print(s.ALLOWED_HOSTS, s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE,
      s.SECURE_SSL_REDIRECT, s.SECURE_HSTS_SECONDS, s.CSRF_TRUSTED_ORIGINS,
      s.SECRET_KEY_FALLBACKS)
"""


def deployment_check(environ):
    arguments = ("check", "--deploy", "--fail-level", "WARNING")
    return commands.run(*arguments, environ=environ)


def shown(environ):
    arguments = ("shell", "--verbosity=0", "--command", SHOWN)
    return commands.checked(*arguments, environ=environ).strip()


def test_the_deployment_check_finds_nothing():
    done = deployment_check(PRODUCTION)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


def test_subdomains_are_included_where_that_is_wanted_and_nothing_is_silenced_then():
    done = deployment_check({**PRODUCTION, "HSTS_SUBDOMAINS": "1"})
    assert done.returncode == 0, done.stderr
    assert "0 silenced" in done.stdout


def test_the_deployment_check_finds_what_is_missing():
    done = deployment_check({**PRODUCTION, "HTTPS": "0", "DEBUG": "1"})
    assert done.returncode == 1
    for number in ("W004", "W008", "W012", "W016", "W018"):
        assert f"security.{number}" in done.stderr


def test_a_site_behind_tls_sends_nothing_without_it(running_services):
    hosts = "['node.example.org', 'www.example.org']"
    origins = "['https://node.example.org']"
    assert shown(PRODUCTION) == f"{hosts} True True True 31536000 {origins} []"


def test_a_first_start_needs_none_of_that(running_services):
    environ = dict.fromkeys((*PRODUCTION, "SECRET_KEY_FALLBACKS"), "")
    assert shown(environ) == "['*'] False False False 0 [] []"
