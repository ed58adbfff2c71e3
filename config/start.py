"""Reads the settings when a process starts, and again after it was forked."""

from __future__ import annotations

import importlib
import os

import django
from django.apps import apps
from django.conf import settings
from django.db import connections


def read_settings() -> None:
    """Read the settings from this process's environment, and set Django up.

    In a process that was forked, Django was set up with the environment of the fork
    server. Nothing has used these settings yet.

    Raises: RuntimeError if a forked process shall have other apps.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    logging = None
    if apps.ready:
        installed, logging = settings.INSTALLED_APPS, settings.LOGGING
        module = importlib.reload(importlib.import_module(settings.SETTINGS_MODULE))
        for name, value in vars(module).items():
            if name.isupper():
                setattr(settings, name, value)
        if installed != settings.INSTALLED_APPS:
            raise RuntimeError("INSTALLED_APPS differ from those of the fork server")
        connections.settings.update(connections.configure_settings(settings.DATABASES))
        for unused in connections.all(initialized_only=True):
            del connections[unused.alias]  # models ask it for the length of names
        os.environ["TZ"] = settings.TIME_ZONE  # as Django did when it read them first
    if logging != settings.LOGGING:
        django.setup(set_prefix=False)
