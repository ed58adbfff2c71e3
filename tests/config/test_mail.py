"""MAIL_URL, the address of the mail server."""

from __future__ import annotations

import socketserver
import threading

import pytest
from django.core.mail import send_mail
from django.test import override_settings

from config.mail import mail_settings


def test_address_becomes_what_django_asks_for() -> None:
    assert mail_settings("")["EMAIL_BACKEND"].endswith("console.EmailBackend")
    found = mail_settings("smtps://post%40example.org:a%2Fb@mail.example.org")
    assert found["EMAIL_HOST"] == "mail.example.org"
    assert (found["EMAIL_PORT"], found["EMAIL_USE_SSL"]) == (465, True)
    assert found["EMAIL_HOST_USER"] == "post@example.org"
    assert found["EMAIL_HOST_PASSWORD"] == "a/b"
    later = mail_settings("smtp+starttls://mail.example.org:2525")
    assert (later["EMAIL_PORT"], later["EMAIL_USE_TLS"]) == (2525, True)
    assert not later["EMAIL_USE_SSL"]


@pytest.mark.parametrize(
    "url", ["mail.example.org", "http://u:secret@h", "smtp://", "smtp://u:secret@h:x"]
)
def test_what_is_no_mail_server_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        mail_settings(url)
    assert "secret" not in str(caught.value)


class Postbox(socketserver.StreamRequestHandler):
    """A server that receives an email (RFC 5321)."""

    lines: list[str] = []

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        is_text = False
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            self.lines.append(line)
            if line.upper() == "DATA":
                self.wfile.write(b"354 go on\r\n")
                while (text := self.rfile.readline()) != b".\r\n":
                    self.lines.append(text.decode().rstrip("\r\n"))
                is_text = True
            self.wfile.write(
                b"221 bye\r\n" if line.upper() == "QUIT" else b"250 ok\r\n"
            )
        assert is_text


def test_mail_arrives_at_the_server_that_is_named() -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), Postbox) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        port = server.server_address[1]
        with override_settings(**mail_settings(f"smtp://127.0.0.1:{port}")):
            send_mail("Hello", "A text.", "from@example.org", ["to@example.org"])
    assert "rcpt to:<to@example.org>" in [line.lower() for line in Postbox.lines]
    assert "Subject: Hello" in Postbox.lines
    assert "A text." in Postbox.lines
