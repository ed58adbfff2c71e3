"""The node: it imports blocks, executes them once, and answers JSON-RPC requests."""

from __future__ import annotations

import platform

VERSION = "0.1.0"
"""Equal to the version in pyproject.toml, which is not installed with the software."""

CLIENT_VERSION = (
    f"Portcullis/v{VERSION}/{platform.system().lower()}-{platform.machine()}"
    f"/python{platform.python_version()}"
)
