"""The declared environment variables are those that the service reads."""

from __future__ import annotations

import pkgutil
from dataclasses import fields
from importlib import import_module

import pytest

from config import variables
from config.env import Variable
from config.variables import execution
from config.variables.groups import GROUPS
from evm.tracers.record import RECORD_LIMIT_BYTES
from nodeapi.tracing.pool_limits import PoolLimits
from tests.test_walls import MODULES

DECLARED = [one for group in GROUPS for one in group.variables]


def test_every_variable_is_declared_once():
    """No two variables have the same name, and their groups are in GROUPS."""
    named = [
        (name, value)
        for module in pkgutil.iter_modules(variables.__path__, "config.variables.")
        for name, value in vars(import_module(module.name)).items()
        if isinstance(value, Variable)
    ]
    assert sorted(name for name, _ in named) == sorted(one.name for one in DECLARED)
    assert all(name == value.name for name, value in named)


def test_every_declared_variable_is_read():
    text = "".join(path.read_text() for path in MODULES.values())
    read = {one.name for one in DECLARED if f"{one.name}.value()" in text}
    assert {one.name for one in DECLARED} - read == set()


def test_only_the_declarations_read_settings_from_the_environment():
    """The embedded services need PATH, and `config.start` sets TZ as Django does."""
    readers = ("os.environ.get(", "os.getenv(", "os.environ[")
    found = {
        name
        for name, path in MODULES.items()
        if any(reader in path.read_text() for reader in readers)
    }
    assert found == {"config.env", "config.embedded.processes", "config.start"}


@pytest.mark.parametrize("one", DECLARED, ids=lambda one: one.name)
def test_a_default_is_accepted_as_a_value(one, monkeypatch):
    if one.default is None or one.default == "" or one.default == []:
        assert one.default_in_words or one.default is not None
        return
    default = one.default
    if isinstance(default, list):
        given = ",".join(default)
    elif isinstance(default, bool):
        given = "on" if default else "off"
    else:
        given = f"{default}"
    monkeypatch.setenv(one.name, given)
    assert one.value() == default


def test_defaults_that_other_packages_repeat_agree():
    defaults = {one.name: one.default for one in fields(PoolLimits)}
    assert defaults["workers"] == execution.NODEAPI_TRACE_WORKERS.default
    assert defaults["per_key"] == execution.NODEAPI_TRACE_CONCURRENCY.default
    assert defaults["tasks_per_key"] == execution.NODEAPI_CALL_CONCURRENCY.default
    assert defaults["seconds"] == execution.NODEAPI_TRACE_SECONDS.default
    assert defaults["memory_bytes"] == execution.NODEAPI_TRACE_MEMORY_BYTES.default
    assert defaults["result_bytes"] == execution.NODEAPI_TRACE_RESULT_BYTES.default
    assert defaults["spool_bytes"] == execution.NODEAPI_TRACE_SPOOL_BYTES.default
    assert defaults["owner_bytes"] == execution.NODEAPI_TRACE_OWNER_BYTES.default
    assert execution.NODEAPI_RECORD_LIMIT_BYTES.default == RECORD_LIMIT_BYTES
