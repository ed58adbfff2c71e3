"""Small wheels and a package index on this machine that serves them."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any


def write_wheel(
    folder: Path, name: str, version: str, tag: str = "py3-none-any", *needs: str
) -> str:
    """Write a wheel with one empty module; returns its SHA-256 in hex.

    tag: the Python, ABI and platform that it is for.
    needs: its requirements.
    """
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Dist: {need}" for need in needs]
    files = {
        f"{name}.py": "",
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, "RECORD"])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in files.items():
            archive.writestr(inner, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


class _Index(SimpleHTTPRequestHandler):
    """The simple repository API (PEP 503): links with the files' hashes."""

    def list_directory(self, path: Any) -> BytesIO:
        links = [
            f'<a href="{file.name}#sha256={hashlib.sha256(file.read_bytes()).hexdigest()}">'
            f"{file.name}</a>"
            for file in sorted(Path(path).glob("*.whl"))
        ]
        page = "\n".join(["<!DOCTYPE html>", *links]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        return BytesIO(page)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def package_index(folder: Path) -> Iterator[str]:
    """Serve a folder with a subfolder of wheels for each package; gives the URL."""
    handler = partial(_Index, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
