"""Sites of other origins, which a browser visits in a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class SiteHandler(BaseHTTPRequestHandler):
    """Answers with pages of HTML, and logs nothing."""

    def send_page(self, html: str) -> None:
        body = html.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def running_site(handler: Callable[..., Any]) -> Iterator[int]:
    """Serve a site on a free port of the loopback; yield the port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as site:
        thread = Thread(target=site.serve_forever, args=[0.02])
        thread.start()
        try:
            yield site.server_port
        finally:
            site.shutdown()
            thread.join()
