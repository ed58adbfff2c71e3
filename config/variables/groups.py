"""All settings, and the checks of their values."""

from __future__ import annotations

import os

from config.env import InvalidSetting
from config.variables.accounts import ACCOUNTS
from config.variables.clients import CLIENTS
from config.variables.execution import CALLS, TRACES
from config.variables.operation import OPERATION, open_metrics
from config.variables.processes import SERVICES, var_dir
from config.variables.requests import REQUESTS
from config.variables.site import SITE
from config.variables.wallet import WALLET

GROUPS = (
    SERVICES,
    SITE,
    ACCOUNTS,
    REQUESTS,
    TRACES,
    CALLS,
    CLIENTS,
    WALLET,
    OPERATION,
)


def problems() -> list[str]:
    """Return a sentence for each setting that is invalid; each begins with its name."""
    found = []
    for group in GROUPS:
        for variable in group.variables:
            try:
                variable.value()
            except InvalidSetting as error:
                found.append(str(error))
    return found or [*_unusable_folder(), *open_metrics()]


def _unusable_folder() -> list[str]:
    """Create VAR_DIR. Return a sentence if the service can't write there."""
    folder = var_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return [f"VAR_DIR {folder} can't be created: {error.strerror}"]
    if not os.access(folder, os.W_OK | os.X_OK):
        return [f"VAR_DIR {folder} must be a folder that this user can write to"]
    return []
