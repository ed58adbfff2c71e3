"""A real nginx with the configuration of deploy/, and with test ports and a certificate."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from string import Template

from tests.support.certificates import make_certificate
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_SECONDS, wait_until

ROOT = Path(__file__).resolve().parents[2]
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")
SITE = "localhost"

_MAIN = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/start.log;
events {{ worker_connections 512; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


class Proxy:
    """A running nginx.

    url: its base URL with TLS. plain_url: the one without TLS.
    """

    def __init__(self, folder: Path, port: int, plain_port: int, pid: int) -> None:
        self.url = f"https://{SITE}:{port}"
        self.plain_url = f"http://{SITE}:{plain_port}"
        self.port = port
        self.tls = ssl.create_default_context(cafile=folder / "fullchain.pem")
        self._folder = folder
        self._pid = pid

    def connect(self, source: str) -> ssl.SSLSocket:
        """Open a TLS connection from a loopback address."""
        plain = socket.create_connection(
            ("127.0.0.1", self.port), PATIENCE_SECONDS, (source, 0)
        )
        return self.tls.wrap_socket(plain, server_hostname=SITE)

    def temporary_bytes(self) -> int:
        """Return the bytes in nginx' temporary files, including deleted files."""
        size = 0
        for descriptor in Path(f"/proc/{self._pid}/fd").iterdir():
            # The file may have been closed in the meantime.
            with suppress(FileNotFoundError):
                target = os.readlink(descriptor)
                if target.startswith((f"{self._folder}/body", f"{self._folder}/proxy")):
                    size += descriptor.stat().st_size
        return size

    def log(self) -> str:
        """Return the content of nginx' access and error logs."""
        names = ("access.log", "error.log", "start.log")
        return "".join((self._folder / name).read_text() for name in names)


@contextmanager
def nginx(upstreams: list[int], replace: tuple[str, str] = ("", "")) -> Iterator[Proxy]:
    """Run nginx in front of the ports of services on this machine.

    replace: texts of the configuration, and their replacements.
    """
    with tempfile.TemporaryDirectory(prefix="portcullis-nginx-") as name:
        folder = Path(name)
        make_certificate(folder, SITE)
        port, plain_port = free_port(), free_port()
        main = folder / "nginx.conf"
        main.write_text(_MAIN.format(folder=folder))
        site = _site(upstreams, folder, port, plain_port)
        assert replace[0] in site
        site = site.replace(*replace) if replace[0] else site
        (folder / "site.conf").write_text(site)
        assert NGINX is not None
        command = [NGINX, "-p", str(folder), "-c", str(main)]
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            _wait(process, port, folder)
            yield Proxy(folder, port, plain_port, process.pid)
        finally:
            process.terminate()
            process.wait()


def _site(upstreams: list[int], folder: Path, port: int, plain_port: int) -> str:
    """Return deploy/nginx.conf as a site uses it, with other paths and ports."""
    text = Template((ROOT / "deploy" / "nginx.conf").read_text()).safe_substitute(
        PORTCULLIS_SITE=SITE,
        PORTCULLIS_UPSTREAM=" ".join(
            f"server 127.0.0.1:{each} max_fails=0;" for each in upstreams
        ),
    )
    text = re.sub(r"listen \[::\].*", "", text)  # the machine may lack IPv6
    text = text.replace("listen 80", f"listen 127.0.0.1:{plain_port}")
    text = text.replace("listen 443", f"listen 127.0.0.1:{port}")
    text = text.replace("/etc/portcullis/tls", str(folder))
    text = text.replace("/var/log/nginx/access.log", str(folder / "access.log"))
    return text.replace("/var/log/nginx/error.log", str(folder / "error.log"))


def _wait(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    def is_open() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert process.poll() is None, (folder / "output").read_text()
            return False
        return True

    wait_until(is_open)
