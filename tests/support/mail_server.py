"""A mail server that keeps the mails it accepts."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class MailServer(socketserver.ThreadingTCPServer):
    """Accepts mails by RFC 5321.

    mails: the lines of each accepted mail. may_answer: cleared, the server accepts
    connections and does not greet. is_failing: it rejects all recipients.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.url = f"smtp://127.0.0.1:{self.server_address[1]}"
        self.mails: list[list[str]] = []
        self.connections = 0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.is_failing = False


class _Session(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self.server.connections += 1
        self.server.may_answer.wait()
        self.wfile.write(b"220 mail.example\r\n")
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            command = line.partition(" ")[0].upper()
            if command == "RCPT" and self.server.is_failing:
                self.wfile.write(b"450 try again later\r\n")
            elif command == "DATA":
                self.wfile.write(b"354 go on\r\n")
                mail = []
                while (text := self.rfile.readline()) not in (b".\r\n", b""):
                    mail.append(text.decode().rstrip("\r\n"))
                self.server.mails.append([line, *mail])
                self.wfile.write(b"250 accepted\r\n")
            elif command == "QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 ok\r\n")


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """Run a mail server on a free port of loopback."""
    with MailServer() as server:
        running = threading.Thread(target=server.serve_forever, daemon=True)
        running.start()
        try:
            yield server
        finally:
            server.may_answer.set()
            server.shutdown()
            running.join()
