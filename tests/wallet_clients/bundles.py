"""Pages with published libraries, bundled like those of a dapp."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.sites import SiteHandler
from tests.wallet_clients.conftest import FOLDER

PAGE = """<!doctype html><title>Dapp</title>{before}<script src="/bundle.js"></script>
<button>Connect</button>"""


def bundle(name: str, folder: Path) -> bytes:
    """Return the script of `pages/<name>.mjs` with all that it imports."""
    target = folder / f"{name}.js"
    options = ["--bundle", "--format=iife", "--target=es2022", "--log-level=error"]
    program = FOLDER / "node_modules" / ".bin" / "esbuild"
    entry = FOLDER / "pages" / f"{name}.mjs"
    options += ["--define:global=window", f"--outfile={target}"]
    subprocess.run([program, entry, *options], cwd=FOLDER, check=True)
    return target.read_bytes()


class BundlePage(SiteHandler):
    """A site with one page, which includes the wallet's script before the bundle."""

    def __init__(self, *args: Any, script: bytes, before: str, **kwargs: Any) -> None:
        self._script = script
        self._page = PAGE.format(before=before)
        super().__init__(*args, **kwargs)

    def do_GET(self) -> None:
        if self.path != "/bundle.js":
            self.send_page(self._page)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript")
        self.send_header("Content-Length", str(len(self._script)))
        self.end_headers()
        self.wfile.write(self._script)


def site(name: str, folder: Path, before: str) -> Any:
    """Return the handler of a site. before: elements before the bundle's."""
    return partial(BundlePage, script=bundle(name, folder), before=before)
