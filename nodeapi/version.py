"""What this software calls itself."""

from __future__ import annotations

import platform

VERSION = "0.1.0"
"""As in pyproject.toml, which is not installed with the software."""

CLIENT_VERSION = (
    f"Portcullis/v{VERSION}/{platform.system().lower()}-{platform.machine()}"
    f"/python{platform.python_version()}"
)
