from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from config import services
from config.database_url import parse_database_url
from config.embedded import places


@pytest.mark.django_db
def test_the_database_of_the_tests_is_postgresql():
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database(), version()")
        name, version = cursor.fetchone()
    assert name.startswith("test_portcullis_")
    assert version.startswith("PostgreSQL ")


def test_a_url_is_taken_apart():
    url = "postgres://us%40er:p%3A%2F%40w@db.example.org:6543/a%20b?sslmode=require"
    assert parse_database_url(url) == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "a b",
        "USER": "us@er",
        "PASSWORD": "p:/@w",
        "HOST": "db.example.org",
        "PORT": "6543",
        "OPTIONS": {"sslmode": "require"},
    }


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("postgres://db/name", "db", ""),
        ("postgres://u@[::1]:5433/name", "::1", "5433"),
        ("postgresql://u@%2FTmp%2FSockets/name", "/Tmp/Sockets", ""),
        ("postgresql://u@%2Ftmp:5433/name", "/tmp", "5433"),
        ("postgresql://u@/name?host=/var/run/pg&port=99", "/var/run/pg", "99"),
        ("postgresql:///name", "", ""),
    ],
)
def test_hosts_of_every_form_are_understood(url, host, port):
    parsed = parse_database_url(url)
    assert (parsed["HOST"], parsed["PORT"]) == (host, port)
    assert parsed["OPTIONS"] == {}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mysql://secret@db/name", "must begin with postgres://"),
        ("db.example.org", "must begin with postgres://"),
        ("postgres://u:secret@db", "must name a database"),
        ("postgres://u:secret@db/", "must name a database"),
        ("postgres://u:secret@db:port/name", "must have a number as its port"),
        ("postgres://u:sec/ret@db/name", "must have a number as its port"),
        ("postgres://u:secret@db:99999/name", "must have a port from 1 to 65535"),
        ("postgres://u:secret@/name?host=db&port=0", "must have a port from 1 to"),
        (
            "postgres://u:secret@db/name?sslmod=require",
            "options of libpq, not 'sslmod'",
        ),
        ("postgres://u:secret@db/name?sslmode=on", "as its sslmode, not 'on'"),
    ],
)
def test_a_wrong_url_is_explained_without_its_password(url, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        parse_database_url(url)
    assert "secret" not in str(caught.value)


def test_the_environment_wins(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://db/name")
    monkeypatch.setenv("REDIS_URL", "redis://cache:6380/1")
    assert services.database_url() == "postgres://db/name"
    assert services.redis_url() == "redis://cache:6380/1"


def test_addresses_follow_from_var_dir_alone(monkeypatch, tmp_path):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.setenv("VAR_DIR", "/srv/Port cullis")
    database = parse_database_url(services.database_url())
    assert database["HOST"] == "/srv/Port cullis/sockets"
    assert services.redis_url() == "unix:///srv/Port%20cullis/sockets/redis.sock"


@pytest.mark.parametrize("name", ["x" * 90, "a,b", "ümlaut", "quo'te"])
def test_sockets_of_an_unfit_var_dir_lie_in_a_short_folder(name):
    folder = places.socket_dir(Path("/srv") / name)
    assert folder.parent == Path("/tmp")
    assert len(str(folder / ".s.PGSQL.5432")) < places.SOCKET_PATH_LIMIT
    assert folder != places.socket_dir(Path("/srv") / (name + "x"))


def test_the_longest_var_dir_that_fits_keeps_its_sockets():
    inside = "/sockets/.s.PGSQL.5432"
    fits = Path("/" + "x" * (places.SOCKET_PATH_LIMIT - len(inside) - 1))
    assert places.socket_dir(fits) == fits / "sockets"
    assert places.socket_dir(Path(f"{fits}x")).parent == Path("/tmp")


def test_nothing_is_started_when_both_addresses_are_given(monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", "postgres://db/name")
    monkeypatch.setenv("REDIS_URL", "redis://cache:6380/1")
    with services.running(tmp_path / "var"):
        assert not (tmp_path / "var").exists()


def test_a_folder_that_is_a_link_is_not_trusted(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(services.ServiceError, match="belongs to another user"):
        places.make_private(tmp_path / "link", None)


def test_pool_is_added_to_a_copy():
    database = parse_database_url("postgres://db/name?sslmode=require")
    pooled = services.with_pool(database, 4)
    assert pooled["OPTIONS"]["pool"]["max_size"] == 4
    assert pooled["OPTIONS"]["sslmode"] == "require"
    assert database["OPTIONS"] == {"sslmode": "require"}
    assert services.with_pool(database, 0) == database
