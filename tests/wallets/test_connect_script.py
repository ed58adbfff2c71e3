"""connect.js: one script that consists of several files."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

from django.http import HttpResponse
from django.test import Client

from config.static_files import StaticFiles
from wallets.pages.connect_script import FOLDER, PARTS, script

ADDRESS = "/static/wallet/connect.js"


def test_script_is_served_to_pages_of_any_origin():
    response = Client().get(ADDRESS)
    assert response.status_code == HTTPStatus.OK
    assert response["Content-Type"] == "text/javascript; charset=utf-8"
    assert response["Access-Control-Allow-Origin"] == "*"
    assert "max-age=60" in response["Cache-Control"]
    assert response.content.decode() == script()
    again = Client().get(ADDRESS, headers={"If-None-Match": response["ETag"]})
    assert again.status_code == HTTPStatus.NOT_MODIFIED


def test_every_part_is_included_once():
    assert sorted(PARTS) == sorted(path.stem for path in FOLDER.glob("*.js"))
    for path in FOLDER.glob("*.js"):
        assert script().count(path.read_text()) == 1


def test_collected_copy_of_an_older_version_is_not_served(tmp_path: Path):
    files = StaticFiles(lambda request: HttpResponse())
    older = tmp_path / "connect.js"
    older.write_text("older")
    for name in ("connect.js", "other.js"):
        files.add_file_to_dictionary(f"/static/wallet/{name}", str(older))
    assert ADDRESS not in files.files
    assert "/static/wallet/other.js" in files.files
