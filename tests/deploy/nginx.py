"""A real nginx with the configuration of deploy/, on ports and a certificate of ours."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_SECONDS

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

    url: where it speaks TLS. plain_url: where it does not.
    """

    def __init__(self, folder: Path, port: int, plain_port: int) -> None:
        self.url = f"https://{SITE}:{port}"
        self.plain_url = f"http://{SITE}:{plain_port}"
        self.port = port
        self.tls = ssl.create_default_context(cafile=folder / "fullchain.pem")
        self._folder = folder

    def log(self) -> str:
        """Return all that nginx has written, of requests and of errors."""
        names = ("access.log", "error.log", "start.log")
        return "".join((self._folder / name).read_text() for name in names)


@contextmanager
def nginx(upstreams: list[int]) -> Iterator[Proxy]:
    """Run nginx in front of the ports of services on this machine."""
    with tempfile.TemporaryDirectory(prefix="portcullis-nginx-") as name:
        folder = Path(name)
        _make_certificate(folder)
        port, plain_port = free_port(), free_port()
        main = folder / "nginx.conf"
        main.write_text(_MAIN.format(folder=folder))
        site = _site(upstreams, folder, port, plain_port)
        (folder / "site.conf").write_text(site)
        assert NGINX is not None
        command = [NGINX, "-p", str(folder), "-c", str(main)]
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            _wait(process, port, folder)
            yield Proxy(folder, port, plain_port)
        finally:
            process.terminate()
            process.wait()


def _site(upstreams: list[int], folder: Path, port: int, plain_port: int) -> str:
    """Return deploy/nginx.conf as a site would have it, but for places and ports."""
    text = Template((ROOT / "deploy" / "nginx.conf").read_text()).safe_substitute(
        PORTCULLIS_SITE=SITE,
        PORTCULLIS_UPSTREAM=" ".join(
            f"server 127.0.0.1:{each} max_fails=0;" for each in upstreams
        ),
    )
    text = re.sub(r"listen \[::\].*", "", text)  # not every machine has IPv6
    text = text.replace("listen 80", f"listen 127.0.0.1:{plain_port}")
    text = text.replace("listen 443", f"listen 127.0.0.1:{port}")
    text = text.replace("/etc/portcullis/tls", str(folder))
    text = text.replace("/var/log/nginx/access.log", str(folder / "access.log"))
    return text.replace("/var/log/nginx/error.log", str(folder / "error.log"))


def _wait(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            said = (folder / "output").read_text()
            assert process.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.05)


def _make_certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SITE)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(SITE)]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "fullchain.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "privkey.pem").write_bytes(
        key.private_bytes(
            pem,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
