"""Static files, served by the real server."""

from __future__ import annotations

from django.contrib.staticfiles import finders

from tests.support import web
from tests.support.live import live_service

STYLE = "portcullis/site.css"


def test_files_come_whole_in_part_and_not_again(transactional_db) -> None:
    path = finders.find(STYLE)
    assert path is not None
    with open(path, "rb") as file:
        whole = file.read()
    with live_service() as live, web.Client(base_url=live.base_url) as client:
        answer = client.get(f"/static/{STYLE}")
        assert answer.content == whole
        assert answer.headers["content-type"] == 'text/css; charset="utf-8"'
        place = f"/static/{STYLE}"
        head = client.head(place)
        assert head.headers["content-length"] == str(len(whole))
        part = client.get(place, headers={"range": "bytes=10-19"})
        assert (part.status_code, part.content) == (206, whole[10:20])
        beyond = client.get(place, headers={"range": f"bytes={len(whole)}-"})
        assert beyond.status_code == 416
        again = client.get(place, headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert client.post(place).status_code == 405
        icon = client.get("/favicon.ico", follow_redirects=True)
        assert icon.headers["content-type"] == "image/svg+xml"
        # Django warns if it has to read a file in a thread.
        assert "StreamingHttpResponse" not in live.log()
