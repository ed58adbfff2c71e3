"""The package indexes of pip's configuration, for uv, which does not read it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys

_PIP_SECTIONS = ("global", "install", ":env:")
"""Sections of pip's configuration. Later ones take precedence.

Source: https://pip.pypa.io/en/stable/topics/configuration/"""

_UV_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "no-index": ("UV_NO_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
}
"""pip setting → uv's environment variable, and the separator of several values.

Source: https://docs.astral.sh/uv/reference/environment/"""


def uv_environment() -> dict[str, str]:
    """Return the environment in which uv uses the same package indexes as pip."""
    # pip takes the best match of all its indexes, uv by default that of the first.
    found = {**os.environ, "UV_INDEX_STRATEGY": "unsafe-best-match"}
    settings = _pip_settings()
    for name, (variable, separator) in _UV_VARIABLES.items():
        if name in settings:
            found[variable] = separator.join(settings[name].split())
    return found


def _pip_settings() -> dict[str, str]:
    """Return the installation settings of pip's configuration files and variables.

    Keys are pip's names of settings. Several values are separated by white space.
    """
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    lines = re.findall(r"^([\w:]+)\.([\w-]+)=(.+)$", listed, re.MULTILINE)
    return {
        name: str(ast.literal_eval(value))
        for wanted in _PIP_SECTIONS
        for section, name, value in lines
        if section == wanted
    }
